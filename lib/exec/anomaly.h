// DetectAnomaly: evaluations operation by operation, until one makes a NaN.
#pragma once

#include <functional>
#include <span>

#include "clnet/tensor.h"

namespace clnet::exec {

/// Whether this thread looks for anomalies now.
bool is_looking_for_anomaly();
/// While it does, evaluates copies of all that the tensors need one operation after the other by `evaluate`, and throws Error at
/// the first that makes one; nothing otherwise. The tensors have no value afterwards that they had not before.
void look_for_anomaly(std::span<const Tensor> tensors, const std::function<void(std::span<const Tensor>)>& evaluate);

}  // namespace clnet::exec
