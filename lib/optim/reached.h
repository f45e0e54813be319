// Which values of parameters a loss was built with.
#pragma once

#include <string_view>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"

namespace clnet::optim {

/// The leaf of each parameter that the loss reaches; undefined where it reaches none and where the parameter is frozen. Throws
/// Error when it reaches none at all, or one at two values.
std::vector<Tensor> reached_leaves(std::string_view optimizer, const Tensor& loss, const nn::NamedParameters& parameters);

}  // namespace clnet::optim
