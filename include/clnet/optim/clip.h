// Bounds of gradients.
#pragma once

#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// What is done to the gradients of a step before they are used; 0: nothing. Values first, where both are given.
struct Clipping {
  double norm = 0;   ///< all are scaled down together to at most this norm
  double value = 0;  ///< each element is moved to within -value..value
  double p = 2;      ///< which norm, above 0: as of global_norm()
  bool operator==(const Clipping&) const = default;
};

/// The gradients scaled down together so that their joint norm, global_norm(gradients, p), is at most `max_norm` (PyTorch's
/// clip_grad_norm_).
CLNET_API std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double max_norm, double p = 2);
/// Each element within -max_value..max_value (PyTorch's clip_grad_value_).
CLNET_API std::vector<Tensor> clip_by_value(const std::vector<Tensor>& gradients, double max_value);

}  // namespace clnet::optim
