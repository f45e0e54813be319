// refused: no member named 'context'
#include <clnet/clnet.h>

auto hidden(const clnet::Device& device) { return device.context(); }
