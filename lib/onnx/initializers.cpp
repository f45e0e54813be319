#include "lib/onnx/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <ostream>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/onnx/external_data.h"
#include "lib/onnx/file.h"
#include "lib/onnx/host_tensor.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

constexpr protozero::pbf_tag_type graph_field = 7, initializer_field = 5;
constexpr protozero::pbf_tag_type data_field = 9, documentation_field = 12, metadata_field = 16;  // of a tensor

HostTensor host_of(const data::Array& array) {
  HostTensor out{type_of(array.dtype), array.shape, std::vector<char>(array.bytes.size())};
  if (!array.bytes.empty()) std::memcpy(out.bytes.data(), array.bytes.data(), array.bytes.size());
  return out;
}

data::Array array_of(const HostTensor& host, std::string_view name) {
  data::Array array(host.shape, dtype_of(host.type), std::string(name));
  const auto take = [&](const HostTensor& from) {
    if (!array.bytes.empty()) std::memcpy(array.bytes.data(), from.bytes.data(), array.bytes.size());
  };
  const auto own = type_of(array.dtype);
  if (size_of(own) == size_of(host.type))
    take(host);
  else
    take(HostTensor::of(own, host.shape, host.integers()));
  if (host.type == ElementType::u64)
    for (const auto number : host.integers())
      if (number < 0) throw Unsupported(fmt::format("tensor {} of uint64 holds a value that is not i64", in_quotes(name)));
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
  const auto& sparse = file.graph.sparse_initializers;
  return has_external_attribute(file.graph.nodes) ||
         std::any_of(sparse.begin(), sparse.end(),
                     [](const auto& each) { return each.values.external || each.indices.external; }) ||
         std::any_of(file.functions.begin(), file.functions.end(), [](const auto& function) {
           return has_external_attribute(function.nodes) ||
                  std::any_of(function.default_attributes.begin(), function.default_attributes.end(), has_external_tensor);
         });
}

/// The fields of a tensor that say no more than texts, as the file has them.
std::string texts_of(std::string_view tensor) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (protozero::pbf_reader reader(tensor.data(), tensor.size()); reader.next();) {
    const auto tag = reader.tag();
    if (tag == documentation_field || tag == metadata_field)
      writer.add_bytes(tag, reader.get_view());
    else
      reader.skip();
  }
  return out;
}

/// Whether the array may have the initializer's place; what a conversion loses is not looked for.
void require_same_kind(const data::Array& array, const TensorData& initializer) {
  const auto what = fmt::format("tensor {}", in_quotes(array.name));
  if (array.shape.extents() != initializer.dims)
    throw Error(fmt::format("{} has the shape {}, the model's initializer {}", what, to_string(array.shape),
                            to_string(Shape(initializer.dims))));
  const auto type = type_of(array.dtype);
  if (type == initializer.type) return;
  if (is_floating(type) || is_floating(initializer.type) || type == ElementType::boolean ||
      initializer.type == ElementType::boolean)
    throw Error(fmt::format("{} is {}, the model's initializer {}", what, to_string(type), to_string(initializer.type)));
}

/// The array as the initializer that it replaces.
HostTensor as_initializer(const data::Array& array, const TensorData& initializer) {
  require_same_kind(array, initializer);
  auto host = host_of(array);
  if (host.type == initializer.type) return host;
  const auto numbers = host.integers();
  auto out = HostTensor::of(initializer.type, host.shape, numbers);
  if (out.integers() != numbers)
    throw Error(fmt::format("tensor {} holds a value that is not {}, as the model's initializer", in_quotes(array.name),
                            to_string(initializer.type)));
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

namespace {

/// A part of the new file: a text, bytes of the old file, and the data of a tensor, which are made when they are written.
struct Piece {
  std::string text = {};
  std::string_view old = {};
  std::function<HostTensor()> content = {};
  std::uint64_t content_bytes = 0;

  std::uint64_t bytes() const { return text.size() + old.size() + content_bytes; }
};

std::uint64_t bytes_of(const std::vector<Piece>& pieces) {
  std::uint64_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.bytes();
  return bytes;
}

/// The tag and the length of a field, which are before its bytes.
std::string start_of_field(protozero::pbf_tag_type tag, std::uint64_t bytes) {
  constexpr std::uint64_t tag_step = 8, has_length = 2, most_in_byte = 0x7f, more_follow = 0x80;
  std::string out;
  for (auto number : {tag * tag_step + has_length, bytes}) {
    for (; number > most_in_byte; number /= more_follow) out += static_cast<char>(number % more_follow + more_follow);
    out += static_cast<char>(number);
  }
  return out;
}

/// A TensorProto without its data, which follow.
std::string start_of_tensor(ElementType type, const Shape& shape, std::string_view name) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(1, shape.begin(), shape.end());
  writer.add_int32(2, static_cast<std::int32_t>(type));
  writer.add_string(8, name.data(), name.size());
  return out;
}

/// The fields of a message in their order: those of `tag` as `replaced` gives them, the others as they are.
template <class F>
std::vector<Piece> fields_of(std::string_view message, protozero::pbf_tag_type tag, const F& replaced) {
  std::vector<Piece> out;
  protozero::pbf_reader reader(message.data(), message.size());
  for (const auto* begin = message.data(); reader.next(); begin = reader.data().data()) {
    if (reader.tag() == tag) {
      const auto view = reader.get_view();
      replaced(std::string_view(view.data(), view.size()), out);
    } else {
      reader.skip();
      out.push_back({.old = {begin, static_cast<std::size_t>(reader.data().data() - begin)}});
    }
  }
  return out;
}

/// Whether clnet knows how many bytes an element has.
bool has_size(ElementType type) {
  return (type >= ElementType::f32 && type <= ElementType::i64) || type == ElementType::boolean ||
         (type >= ElementType::f16 && type <= ElementType::u64) || type == ElementType::bf16;
}

class Replacing {
 public:
  /// Throws Error as replace_initializers(), before anything is written.
  Replacing(const ModelFile& file, const std::vector<data::Array>& arrays, const std::filesystem::path& target,
            std::uint64_t most)
      : file_(file), target_(target), beside_(target) {
    for (const auto& array : arrays)
      if (!by_name_.emplace(array.name, &array).second)
        throw Error(fmt::format("{}: tensor {} is given twice", target.string(), in_quotes(array.name)));
    std::set<std::string_view> used;
    std::uint64_t bytes = 0;
    for (const auto& data : file.graph.initializers) {
      if (has_size(data.type)) bytes += data.raw ? data.raw->size() : bytes_of_data(data);
      const auto* array = array_for(data);
      if (!array) continue;
      used.insert(data.name);
      require_same_kind(*array, data);
      if (type_of(array->dtype) != data.type) (void)as_initializer(*array, data);
    }
    is_apart_ = bytes > most;
    for (const auto& array : arrays)
      if (!used.contains(array.name)) result_.unknown.push_back(array.name);
    if (used.empty()) throw Error(fmt::format("{}: no tensor has the name of an initializer", file.name));
    pieces_ = fields_of(*file.bytes, graph_field, [&](std::string_view graph, auto& out) { add_graph(graph, out); });
    if (bytes_of(pieces_) > largest_model)
      throw Error(fmt::format("{}: would have more than 2 GiB without the data of its initializers", target.string()));
  }

  /// Whether data go into a file of their own.
  bool is_apart() const { return !beside_.is_empty(); }

  Replaced write() {
    beside_.write([&] {
      file::replace(target_, [&](std::ostream& out) {
        const auto put = [&](const auto& bytes) { out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); };
        for (const auto& piece : pieces_) {
          put(piece.text);
          put(piece.old);
          if (piece.content) put(piece.content().bytes);
        }
      });
    });
    if (!beside_.is_empty()) result_.beside = beside_.location();
    return std::move(result_);
  }

 private:
  Shape shape_of(const TensorData& data) const try { return Shape(data.dims); } catch (const ShapeError& error) {
    throw FileError(fmt::format("{}: tensor {}: {}", file_.name, in_quotes(data.name), error.what()));
  }
  std::uint64_t bytes_of_data(const TensorData& data) const {
    return static_cast<std::uint64_t>(shape_of(data).numel()) * size_of(data.type);
  }
  const data::Array* array_for(const TensorData& data) const {
    const auto found = by_name_.find(data.name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  void add_graph(std::string_view graph, std::vector<Piece>& out) {
    if (std::exchange(has_graph_, true)) throw FileError(fmt::format("{}: has two graphs", file_.name));
    // read_model() has the initializers in the same order.
    auto next = file_.graph.initializers.begin();
    auto fields = fields_of(graph, initializer_field, [&](std::string_view as_it_is, std::vector<Piece>& inner) {
      if (next == file_.graph.initializers.end()) throw FileError(fmt::format("{}: has two graphs", file_.name));
      inner.push_back(initializer(*next++, as_it_is));
    });
    result_.kept += file_.graph.sparse_initializers.size();
    out.push_back({.text = start_of_field(graph_field, bytes_of(fields))});
    std::move(fields.begin(), fields.end(), std::back_inserter(out));
  }

  Piece initializer(const TensorData& data, std::string_view as_it_is) {
    const auto* array = array_for(data);
    ++(array ? result_.replaced : result_.kept);
    const bool goes_out = is_apart_ && has_size(data.type);
    if (!array && !data.external && !goes_out)
      return {.text = start_of_field(initializer_field, as_it_is.size()), .old = as_it_is};
    std::function<HostTensor()> content = [this, &data] { return content_of(data, file_.folder, file_.name); };
    if (array) content = [array, &data] { return as_initializer(*array, data); };
    const auto texts = texts_of(as_it_is);
    const auto shape = shape_of(data);
    if (goes_out) {
      const auto message = beside_.add(data.name, data.type, shape, std::move(content)) + texts;
      return {.text = start_of_field(initializer_field, message.size()) + message};
    }
    const auto bytes = bytes_of_data(data);
    const auto start = start_of_tensor(data.type, shape, data.name) + texts + start_of_field(data_field, bytes);
    return {.text = start_of_field(initializer_field, start.size() + bytes) + start,
            .content = std::move(content),
            .content_bytes = bytes};
  }

  const ModelFile& file_;
  const std::filesystem::path& target_;
  ExternalData beside_;
  std::map<std::string_view, const data::Array*> by_name_;
  bool is_apart_ = false, has_graph_ = false;
  std::vector<Piece> pieces_;
  Replaced result_;
};

}  // namespace

/// Where the data of the result go, there must be none of the model that is read, unless it is that model's place.
void require_own_data(const std::filesystem::path& model, const ModelFile& file, const std::filesystem::path& target,
                      const std::string& location) {
  std::error_code none;
  if (std::filesystem::equivalent(model, target, none)) return;
  const auto written = target.parent_path() / location;
  for (const auto& data : file.graph.initializers)
    if (data.external && std::filesystem::equivalent(file.folder / data.external->location, written, none))
      throw FileError(fmt::format("{}: its data are in {}, which those of {} would replace; give the result another name",
                                  file.name, written.string(), target.string()));
}

Replaced replace_initializers(const std::filesystem::path& model, const std::vector<data::Array>& arrays,
                              const std::filesystem::path& target, std::uint64_t most) {
  const auto file = read_model(model);
  if (has_external_attribute(file))
    throw Unsupported(fmt::format("{}: a node's attribute, or a sparse initializer, has its data in another file", file.name));
  Replacing replacing(file, arrays, target, most);
  if (replacing.is_apart()) require_own_data(model, file, target, ExternalData(target).location());
  return replacing.write();
}

}  // namespace clnet::onnx
