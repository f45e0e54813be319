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

std::string write_sequence(const std::vector<HostTensor>& tensors, std::string_view name) {
  constexpr int of_tensors = 1;
  std::string out;
  protozero::pbf_writer writer(out);
  if (!name.empty()) writer.add_string(1, name.data(), name.size());
  writer.add_int32(2, of_tensors);
  for (const auto& tensor : tensors) writer.add_message(3, write_tensor(tensor, {}));
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
