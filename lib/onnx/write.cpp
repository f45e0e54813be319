#include "lib/onnx/write.h"

#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>

#include "clnet/error.h"
#include "clnet/onnx.h"
#include "lib/base/file.h"

namespace clnet::onnx {
namespace {

/// The type of this name; that of the dtype where there is none.
ElementType named_type(const Value& value) {
  const auto named = element_type_of(value.type);
  return named == ElementType::undefined ? type_of(value.tensor.dtype()) : named;
}

}  // namespace

std::string write_tensor(const HostTensor& tensor, std::string_view name) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(1, tensor.shape.begin(), tensor.shape.end());
  writer.add_int32(2, static_cast<std::int32_t>(tensor.type));
  if (!name.empty()) writer.add_string(8, name.data(), name.size());
  writer.add_bytes(9, tensor.bytes.data(), tensor.bytes.size());
  return out;
}

std::string write_entry(std::string_view key, std::string_view value) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(1, key.data(), key.size());
  writer.add_string(2, value.data(), value.size());
  return out;
}

std::string write_external_tensor(ElementType type, const Shape& shape, std::string_view name, const DataPlace& place) {
  constexpr int external = 1;
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(1, shape.begin(), shape.end());
  writer.add_int32(2, static_cast<std::int32_t>(type));
  writer.add_string(8, name.data(), name.size());
  writer.add_message(13, write_entry("location", place.location));
  writer.add_message(13, write_entry("offset", std::to_string(place.offset)));
  writer.add_message(13, write_entry("length", std::to_string(place.bytes)));
  writer.add_int32(14, external);
  return out;
}

std::string write_sequence(const std::vector<HostTensor>& tensors, std::string_view name) {
  constexpr int of_tensors = 1;
  std::string out;
  protozero::pbf_writer writer(out);
  if (!name.empty()) writer.add_string(1, name.data(), name.size());
  writer.add_int32(2, of_tensors);
  for (const auto& tensor : tensors) writer.add_message(3, write_tensor(tensor, {}));
  return out;
}

namespace {

/// AttributeProto.AttributeType.
enum class AttributeKind : std::int32_t { real = 1, integer = 2, text = 3, integers = 7, texts = 8 };

template <class Add>
std::string attribute_message(std::string_view name, AttributeKind kind, const Add& add) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(1, name.data(), name.size());
  add(writer);
  writer.add_int32(20, static_cast<std::int32_t>(kind));
  return out;
}

}  // namespace

std::string write_attribute(std::string_view name, std::int64_t value) {
  return attribute_message(name, AttributeKind::integer, [&](auto& writer) { writer.add_int64(3, value); });
}
std::string write_attribute(std::string_view name, double value) {
  return attribute_message(name, AttributeKind::real, [&](auto& writer) { writer.add_float(2, static_cast<float>(value)); });
}
std::string write_attribute(std::string_view name, std::string_view value) {
  return attribute_message(name, AttributeKind::text, [&](auto& writer) { writer.add_string(4, value.data(), value.size()); });
}
std::string write_attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  return attribute_message(name, AttributeKind::integers, [&](auto& writer) {
    for (const auto value : values) writer.add_int64(8, value);
  });
}
std::string write_attribute(std::string_view name, const std::vector<std::string>& values) {
  return attribute_message(name, AttributeKind::texts, [&](auto& writer) {
    for (const auto& value : values) writer.add_string(9, value);
  });
}

std::string write_value_info(std::string_view name, ElementType type, const std::vector<WrittenExtent>& extents) {
  std::string shape, tensor, kind, out;
  for (const auto& extent : extents) {
    std::string dimension;
    if (!extent.name.empty())
      protozero::pbf_writer(dimension).add_string(2, extent.name.data(), extent.name.size());
    else if (extent.value >= 0)
      protozero::pbf_writer(dimension).add_int64(1, extent.value);
    protozero::pbf_writer(shape).add_message(1, dimension);
  }
  protozero::pbf_writer writer(tensor);
  writer.add_int32(1, static_cast<std::int32_t>(type));
  writer.add_message(2, shape);
  protozero::pbf_writer(kind).add_message(1, tensor);
  protozero::pbf_writer named(out);
  named.add_string(1, name.data(), name.size());
  named.add_message(2, kind);
  return out;
}

void save_tensor(const std::filesystem::path& path, const Value& value, const std::string& name) {
  if (!value.is_sequence) {
    if (!value.tensor.defined()) throw Error(fmt::format("save_tensor: the tensor for {} is undefined", path.string()));
    file::replace(path, write_tensor(to_host(value.tensor, named_type(value)), name));
    return;
  }
  std::vector<HostTensor> tensors;
  for (const auto& element : value.elements) {
    if (!element.tensor.defined()) throw Error(fmt::format("save_tensor: an element for {} is no tensor", path.string()));
    tensors.push_back(to_host(element.tensor, named_type(element)));
  }
  file::replace(path, write_sequence(tensors, name));
}

}  // namespace clnet::onnx
