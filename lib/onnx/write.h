// Writes ONNX's protobuf messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/onnx/host_tensor.h"

namespace clnet::onnx {

/// A TensorProto with raw data.
std::string write_tensor(const HostTensor& tensor, std::string_view name);
/// Where the data of a tensor lie in another file.
struct DataPlace {
  std::string_view location;
  std::uint64_t offset = 0, bytes = 0;
};
std::string write_external_tensor(ElementType type, const Shape& shape, std::string_view name, const DataPlace& place);
/// A SequenceProto of tensors.
std::string write_sequence(const std::vector<HostTensor>& tensors, std::string_view name);

/// A StringStringEntryProto.
std::string write_entry(std::string_view key, std::string_view value);

/// An AttributeProto.
std::string write_attribute(std::string_view name, std::int64_t value);
std::string write_attribute(std::string_view name, double value);
std::string write_attribute(std::string_view name, std::string_view value);
std::string write_attribute(std::string_view name, const std::vector<std::int64_t>& values);
std::string write_attribute(std::string_view name, const std::vector<std::string>& values);

/// An extent of a ValueInfoProto: a number, or the name of one that each run binds; neither: unknown.
struct WrittenExtent {
  std::int64_t value = -1;
  std::string_view name = {};
};
/// The ValueInfoProto of a tensor.
std::string write_value_info(std::string_view name, ElementType type, const std::vector<WrittenExtent>& extents);

}  // namespace clnet::onnx
