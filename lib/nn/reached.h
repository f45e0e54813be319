// The values of parameters that a loss was built with.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet::nn {

/// The leaf of each parameter that a gradient of the loss reaches: its present value or an older one. Undefined where it reaches
/// none. Throws Error where it reaches one parameter at two values.
std::vector<Tensor> leaves_of(std::string_view who, const Tensor& loss, const NamedParameters& parameters);
/// The same for an optimizer: also undefined where a parameter is frozen. Throws Error where the loss reaches none at all.
std::vector<Tensor> reached_leaves(std::string_view optimizer, const Tensor& loss, const NamedParameters& parameters);

}  // namespace clnet::nn
