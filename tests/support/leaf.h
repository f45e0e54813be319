// Leaves for graphs that are only planned.
#pragma once

#include <memory>

#include "clnet/tensor.h"
#include "lib/graph/node.h"

namespace clnet::test {

/// A leaf that lies on no device and is no scalar of the host.
inline Tensor leaf(const Shape& shape, Dtype dtype = Dtype::f32) {
  struct Somewhere : Value {};
  return make_leaf({shape, dtype}, std::make_shared<Somewhere>());
}

}  // namespace clnet::test
