// refused: could not convert|no viable conversion|not contextually convertible
#include <clnet/clnet.h>

bool same(const clnet::Tensor& a, const clnet::Tensor& b) {
  if (a == b) return true;
  return false;
}
