// What gradients of slices look like.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/tensor.h"

namespace clnet::ops {

/// `x` with zeros around it along one dimension: `before` of them in front.
struct ZeroPadding {
  Tensor x;
  int dim = 0;
  std::int64_t before = 0;
};

/// What the tensor is, if it is that and not computed yet.
std::optional<ZeroPadding> zero_padding(const Tensor& tensor);

}  // namespace clnet::ops
