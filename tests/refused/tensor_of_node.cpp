// refused: is private within this context|calling a private constructor
#include <clnet/clnet.h>

clnet::Tensor tensor(std::shared_ptr<clnet::Node>(), 0);
