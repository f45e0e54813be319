// DetectAnomaly: evaluations operation by operation, until one makes a NaN.
#pragma once

#include <memory>
#include <span>

#include "clnet/tensor.h"
#include "lib/cl/context.h"

namespace clnet::exec {

/// While this thread looks for anomalies, evaluates copies of all that the tensors need one operation after the other, where an
/// evaluation on `wanted` would, and throws Error at the first that makes one; nothing otherwise. The tensors have no value
/// afterwards that they had not before.
void look_for_anomaly(std::span<const Tensor> tensors, const std::shared_ptr<ocl::Context>& wanted);

}  // namespace clnet::exec
