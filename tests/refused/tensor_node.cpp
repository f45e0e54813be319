// refused: no member named 'node'
#include <clnet/clnet.h>

auto hidden() { return clnet::Tensor().node(); }
