// refused: no member named 'slot'
#include <clnet/clnet.h>

auto hidden(const clnet::nn::Parameter& parameter) { return parameter.slot(); }
