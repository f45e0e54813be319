#include "lib/onnx/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/onnx/file.h"
#include "lib/onnx/host_tensor.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

constexpr std::uint64_t largest_model = (std::uint64_t{1} << 31) - 1;  ///< bytes of a protobuf message
constexpr protozero::pbf_tag_type graph_field = 7, initializer_field = 5, sparse_field = 15;
constexpr protozero::pbf_tag_type documentation_field = 12, metadata_field = 16;  // of a tensor

HostTensor host_of(const data::Array& array) {
  HostTensor out{type_of(array.dtype), array.shape, std::vector<char>(array.bytes.size())};
  if (!array.bytes.empty()) std::memcpy(out.bytes.data(), array.bytes.data(), array.bytes.size());
  return out;
}

data::Array array_of(const HostTensor& host, std::string_view name) {
  data::Array array(host.shape, dtype_of(host.type), std::string(name));
  const auto own = type_of(array.dtype);
  const auto widened = size_of(own) == size_of(host.type) ? host : HostTensor::of(own, host.shape, host.integers());
  if (host.type == ElementType::u64)
    for (const auto number : widened.integers())
      if (number < 0) throw Unsupported(fmt::format("tensor {} of uint64 holds a value that is not i64", in_quotes(name)));
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), widened.bytes.data(), array.bytes.size());
  return array;
}

/// Other tensors in files beside the model, whose names the new file would have wrong.
bool has_external_attribute(const std::vector<NodeInfo>& nodes);
bool has_external_tensor(const Attribute& attribute) {
  const auto is_external = [](const auto& tensor) { return tensor.external.has_value(); };
  return std::any_of(attribute.tensors.begin(), attribute.tensors.end(), is_external) ||
         std::any_of(attribute.graphs.begin(), attribute.graphs.end(), [&](const auto& graph) {
           return std::any_of(graph->initializers.begin(), graph->initializers.end(), is_external) ||
                  has_external_attribute(graph->nodes);
         });
}
bool has_external_attribute(const std::vector<NodeInfo>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), has_external_tensor);
  });
}

bool has_external_attribute(const ModelFile& file) {
  return has_external_attribute(file.graph.nodes) ||
         std::any_of(file.functions.begin(), file.functions.end(), [](const auto& function) {
           return has_external_attribute(function.nodes) ||
                  std::any_of(function.default_attributes.begin(), function.default_attributes.end(), has_external_tensor);
         });
}

void copy_field(protozero::pbf_reader& reader, protozero::pbf_writer& writer) {
  switch (reader.wire_type()) {
    case protozero::pbf_wire_type::varint: return writer.add_uint64(reader.tag(), reader.get_uint64());
    case protozero::pbf_wire_type::fixed64: return writer.add_fixed64(reader.tag(), reader.get_fixed64());
    case protozero::pbf_wire_type::fixed32: return writer.add_fixed32(reader.tag(), reader.get_fixed32());
    default: return writer.add_bytes(reader.tag(), reader.get_view());
  }
}

/// A tensor with other values, and with the texts of the one that it replaces.
std::string rewritten(const HostTensor& host, std::string_view name, protozero::data_view before) {
  auto out = write_tensor(host, name);
  protozero::pbf_writer writer(out);
  for (protozero::pbf_reader reader(before); reader.next();)
    if (reader.tag() == documentation_field || reader.tag() == metadata_field)
      copy_field(reader, writer);
    else
      reader.skip();
  return out;
}

/// The array as the initializer that it replaces.
HostTensor as_initializer(const data::Array& array, const TensorData& initializer) {
  const auto what = fmt::format("tensor {}", in_quotes(array.name));
  if (array.shape.extents() != initializer.dims)
    throw Error(fmt::format("{} has the shape {}, the model's initializer {}", what, to_string(array.shape),
                            to_string(Shape(initializer.dims))));
  auto host = host_of(array);
  if (host.type == initializer.type) return host;
  if (is_floating(host.type) || is_floating(initializer.type) || (host.type == ElementType::boolean) ||
      initializer.type == ElementType::boolean)
    throw Error(fmt::format("{} is {}, the model's initializer {}", what, to_string(host.type), to_string(initializer.type)));
  const auto numbers = host.integers();
  auto out = HostTensor::of(initializer.type, host.shape, numbers);
  if (out.integers() != numbers)
    throw Error(fmt::format("{} holds a value that is not {}, as the model's initializer", what, to_string(initializer.type)));
  return out;
}

}  // namespace

std::vector<data::Array> read_initializers(const std::filesystem::path& path) {
  const auto model = read_model(path);
  std::vector<data::Array> arrays;
  for (const auto& data : model.graph.initializers)
    arrays.push_back(array_of(content_of(data, model.folder, model.name), data.name));
  for (const auto& data : model.graph.sparse_initializers)
    arrays.push_back(array_of(content_of(data, model.folder, model.name), data.values.name));
  return arrays;
}

Replaced replace_initializers(const std::filesystem::path& model, const std::vector<data::Array>& arrays,
                              const std::filesystem::path& target) {
  const auto file = read_model(model);
  if (has_external_attribute(file))
    throw Unsupported(fmt::format("{}: a node's attribute has its data in another file", file.name));
  Replaced result;
  std::map<std::string_view, const data::Array*> by_name;
  for (const auto& array : arrays)
    if (!by_name.emplace(array.name, &array).second)
      throw Error(fmt::format("{}: tensor {} is given twice", target.string(), in_quotes(array.name)));
  std::set<std::string_view> used;

  // Initializers in the file's order; read_model() has them in the same.
  auto initializer = file.graph.initializers.begin();
  const auto written_initializer = [&](protozero::data_view as_it_is) {
    if (initializer == file.graph.initializers.end()) throw FileError(fmt::format("{}: has two graphs", file.name));
    const auto& data = *initializer++;
    const auto found = by_name.find(data.name);
    std::string out;
    if (found != by_name.end()) {
      ++result.replaced;
      used.insert(data.name);
      out = rewritten(as_initializer(*found->second, data), data.name, as_it_is);
    } else {
      ++result.kept;
      out = data.external ? rewritten(content_of(data, file.folder, file.name), data.name, as_it_is)
                          : std::string(as_it_is.data(), as_it_is.size());
    }
    return out;
  };
  const auto written_graph = [&](protozero::data_view view) {
    std::string out;
    protozero::pbf_writer writer(out);
    protozero::pbf_reader reader(view);
    while (reader.next()) {
      if (reader.tag() == initializer_field)
        writer.add_bytes(initializer_field, written_initializer(reader.get_view()));
      else
        copy_field(reader, writer);
      if (reader.tag() == sparse_field) ++result.kept;
      if (out.size() > largest_model) throw Error(fmt::format("{}: would have more than 2 GiB", target.string()));
    }
    return out;
  };

  bool has_graph = false;
  std::string out;
  protozero::pbf_writer writer(out);
  protozero::pbf_reader reader(file.bytes->data(), file.bytes->size());
  while (reader.next()) {
    if (reader.tag() != graph_field) {
      copy_field(reader, writer);
      continue;
    }
    if (std::exchange(has_graph, true)) throw FileError(fmt::format("{}: has two graphs", file.name));
    writer.add_bytes(graph_field, written_graph(reader.get_view()));
  }
  for (const auto& array : arrays)
    if (!used.contains(array.name)) result.unknown.push_back(array.name);
  if (result.replaced == 0) throw Error(fmt::format("{}: no tensor has the name of an initializer", file.name));
  if (out.size() > largest_model) throw Error(fmt::format("{}: would have more than 2 GiB", target.string()));
  file::replace(target, out);
  return result;
}

}  // namespace clnet::onnx
