// Clipping of gradients.
#pragma once

#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// Clipping of a step's gradients; 0 switches a bound off. Values are clipped before the norm.
struct Clipping {
  double norm = 0;   ///< the joint norm is scaled down to at most this
  double value = 0;  ///< each element is limited to -value..value
  double p = 2;      ///< order of the norm, above 0: see global_norm()
  bool operator==(const Clipping&) const = default;
};

/// Scales the gradients down so that their joint norm, global_norm(gradients, p), is at most `max_norm` (PyTorch's
/// clip_grad_norm_). Throws Error unless max_norm is positive.
CLNET_API std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double max_norm, double p = 2);
/// Limits each element to -max_value..max_value (PyTorch's clip_grad_value_). Throws Error unless max_value is positive.
CLNET_API std::vector<Tensor> clip_by_value(const std::vector<Tensor>& gradients, double max_value);

}  // namespace clnet::optim
