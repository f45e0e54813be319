// Which values of parameters a loss was built with.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet::nn {

/// The leaf of each parameter that a gradient of the loss arrives at: its present value or an older one. Undefined where it
/// reaches none. Throws Error when it reaches one at two values.
std::vector<Tensor> leaves_of(std::string_view who, const Tensor& loss, const NamedParameters& parameters);
/// The same for an optimizer: undefined, too, where a parameter is frozen. Throws Error when the loss reaches none at all.
std::vector<Tensor> reached_leaves(std::string_view optimizer, const Tensor& loss, const NamedParameters& parameters);

}  // namespace clnet::nn
