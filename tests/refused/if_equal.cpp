// refused: could not convert .* to .bool|not contextually convertible to 'bool'
#include <clnet/clnet.h>

bool same(const clnet::Tensor& a, const clnet::Tensor& b) {
  if (a == b) return true;
  return false;
}
