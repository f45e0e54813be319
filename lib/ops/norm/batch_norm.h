// Batch norm for modules: what a graph says of training where it is built for inference.
#pragma once

#include <optional>

#include "clnet/tensor.h"

namespace clnet::ops {

/// batch_norm_inference() of a layer whose statistics follow those of batches in training. `kept` is the share of the old ones,
/// as ONNX has it; std::nullopt: it changes. Whoever writes the graph into a file learns of it, and nothing else does.
Tensor batch_norm_of_layer(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                           double eps, std::optional<double> kept);

}  // namespace clnet::ops
