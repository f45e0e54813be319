// refused: no matching function|no matching constructor
#include <clnet/clnet.h>

clnet::nn::Conv2d layer{1, 32};
