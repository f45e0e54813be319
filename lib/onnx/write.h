// Writes ONNX's protobuf messages.
#pragma once

#include <string>
#include <vector>

#include "lib/onnx/host_tensor.h"

namespace clnet::onnx {

/// A TensorProto with raw data.
std::string write_tensor(const HostTensor& tensor, std::string_view name);
/// A SequenceProto of tensors.
std::string write_sequence(const std::vector<HostTensor>& tensors, std::string_view name);

}  // namespace clnet::onnx
