// Operators of shapes on the host: what exporters write to compute an extent costs no kernel.
#pragma once

#include <optional>

#include "lib/onnx/operators.h"

namespace clnet::onnx {

/// The outputs of a node whose inputs are all constant; nothing: it is left to the device.
std::optional<Outputs> fold(const Call& call);

}  // namespace clnet::onnx
