// Reads ONNX's protobuf messages. Each field's wire type is checked, unknown fields are skipped, and nesting is bounded.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/onnx/file.h"

namespace clnet::onnx {
namespace {

constexpr int deepest_message = 64;                                  // graphs in nodes of graphs, sequences of sequences
constexpr std::uint64_t largest_message = (std::uint64_t{1} << 31);  // bytes of a protobuf message

// What the parts of a file take in memory, about: an empty node is two bytes of the file and a hundred times as many here. Graphs
// of 100,000 nodes stay below it.
constexpr std::uint64_t bytes_of_message = 256, bytes_of_text = 16, most_bytes_of_parts = std::uint64_t{1} << 27;

/// What is wrong, without the file's name.
struct Malformed {
  std::string reason;
};

/// The fields of one message.
class Message {
 public:
  /// `parts` counts what the whole file's parts take.
  Message(std::string_view bytes, std::string what, std::uint64_t& parts, int depth = 0)
      : reader_(bytes.data(), bytes.size()), what_(std::move(what)), parts_(&parts), depth_(depth) {
    if (depth > deepest_message) fail(fmt::format("is nested more than {} deep", deepest_message));
    count(bytes_of_message);
  }

  /// The next field's number; 0: there is none.
  std::uint32_t next() { return reader_.next() ? reader_.tag() : 0; }
  void skip() { reader_.skip(); }

  std::string_view text() {
    require(protozero::pbf_wire_type::length_delimited);
    const auto view = reader_.get_view();
    count(bytes_of_text);
    return {view.data(), view.size()};
  }
  Message message(std::string what) { return {text(), std::move(what), *parts_, depth_ + 1}; }
  std::int64_t integer() {
    require(protozero::pbf_wire_type::varint);
    return reader_.get_int64();
  }
  float real() {
    require(protozero::pbf_wire_type::fixed32);
    return reader_.get_float();
  }
  /// One element of a repeated field, or a packed run of them.
  template <class T>
  void add_integers(std::vector<T>& to) {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
      for (const auto value : reader_.get_packed_int64()) to.push_back(static_cast<T>(value));
    } else {
      to.push_back(static_cast<T>(integer()));
    }
  }
  void add_unsigned(std::vector<std::uint64_t>& to) {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
      for (const auto value : reader_.get_packed_uint64()) to.push_back(value);
    } else {
      require(protozero::pbf_wire_type::varint);
      to.push_back(reader_.get_uint64());
    }
  }
  void add_reals(std::vector<float>& to) {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const auto run = reader_.get_packed_float();
      to.insert(to.end(), run.begin(), run.end());
    } else {
      to.push_back(real());
    }
  }
  void add_doubles(std::vector<double>& to) {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const auto run = reader_.get_packed_double();
      to.insert(to.end(), run.begin(), run.end());
    } else {
      require(protozero::pbf_wire_type::fixed64);
      to.push_back(reader_.get_double());
    }
  }
  template <class T>
  T enumeration(std::int64_t last) {
    const auto value = integer();
    if (value < 0 || value > last) fail(fmt::format("has the unknown type {}", value));
    return static_cast<T>(value);
  }

  [[noreturn]] void fail(std::string_view reason) const { throw Malformed{fmt::format("{} {}", what_, reason)}; }

 private:
  void count(std::uint64_t bytes) {
    *parts_ += bytes;
    if (*parts_ > most_bytes_of_parts) fail("is one of too many parts of the file");
  }
  void require(protozero::pbf_wire_type type) {
    if (reader_.wire_type() != type)
      fail(fmt::format("has field {} of wire type {} instead of {}", reader_.tag(), static_cast<int>(reader_.wire_type()),
                       static_cast<int>(type)));
  }

  protozero::pbf_reader reader_;
  std::string what_;
  std::uint64_t* parts_;
  int depth_;
};

std::pair<std::string_view, std::string_view> read_entry(Message message) {
  std::pair<std::string_view, std::string_view> entry;
  while (const auto field = message.next()) {
    if (field == 1)
      entry.first = message.text();
    else if (field == 2)
      entry.second = message.text();
    else
      message.skip();
  }
  return entry;
}

std::uint64_t read_number(std::string_view text, const Message& of) {
  std::uint64_t number = 0;
  if (text.empty() || text.size() > 18) of.fail(fmt::format("has the offset or length {}", in_quotes(text)));
  for (const char digit : text) {
    if (digit < '0' || digit > '9') of.fail(fmt::format("has the offset or length {}", in_quotes(text)));
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

TensorData read_tensor(Message message) {
  TensorData out;
  TensorData::External external;
  bool is_external = false;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: message.add_integers(out.dims); break;
      case 2: out.type = message.enumeration<ElementType>(255); break;
      case 3: message.fail("is stored in segments");
      case 4: message.add_reals(out.floats); break;
      case 5: message.add_integers(out.ints); break;
      case 6: out.strings.push_back(message.text()); break;
      case 7: message.add_integers(out.longs); break;
      case 8: out.name = message.text(); break;
      case 9: out.raw = message.text(); break;
      case 10: message.add_doubles(out.doubles); break;
      case 11: message.add_unsigned(out.unsigned_longs); break;
      case 13: {
        const auto [key, value] = read_entry(message.message("a tensor's external data"));
        if (key == "location")
          external.location = value;
        else if (key == "offset")
          external.offset = read_number(value, message);
        else if (key == "length")
          external.length = read_number(value, message);
        break;
      }
      case 14: is_external = message.enumeration<int>(1) == 1; break;
      default: message.skip();
    }
  }
  if (is_external) out.external = external;
  return out;
}

/// Of a SequenceProto.
std::vector<TensorData> read_tensors(Message message) {
  std::vector<TensorData> out;
  while (const auto field = message.next()) {
    if (field == 3)
      out.push_back(read_tensor(message.message("a tensor")));
    else
      message.skip();
  }
  return out;
}

SparseData read_sparse(Message message) {
  SparseData out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.values = read_tensor(message.message("a sparse tensor's values")); break;
      case 2: out.indices = read_tensor(message.message("a sparse tensor's indices")); break;
      case 3: message.add_integers(out.dims); break;
      default: message.skip();
    }
  }
  return out;
}

std::vector<Dimension> read_shape(Message message) {
  std::vector<Dimension> out;
  while (const auto field = message.next()) {
    if (field != 1) {
      message.skip();
      continue;
    }
    auto& dimension = out.emplace_back();
    auto part = message.message("a dimension");
    while (const auto inner = part.next()) {
      if (inner == 1)
        dimension.value = part.integer();
      else if (inner == 2)
        dimension.parameter = part.text();
      else
        part.skip();
    }
  }
  return out;
}

TypeInfo read_type(Message message) {
  using Kind = TypeInfo::Kind;
  TypeInfo out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1:
      case 8: {
        out.kind = field == 1 ? Kind::tensor : Kind::sparse_tensor;
        auto part = message.message("a tensor's type");
        while (const auto inner = part.next()) {
          if (inner == 1)
            out.element = part.enumeration<ElementType>(255);
          else if (inner == 2)
            out.shape = read_shape(part.message("a shape"));
          else
            part.skip();
        }
        break;
      }
      case 4:
      case 9: {
        out.kind = field == 4 ? Kind::sequence : Kind::optional;
        auto part = message.message("a sequence's type");
        while (const auto inner = part.next()) {
          if (inner == 1)
            out.inner = std::make_shared<TypeInfo>(read_type(part.message("an element's type")));
          else
            part.skip();
        }
        break;
      }
      case 5:
        out.kind = Kind::map;
        message.skip();
        break;
      default: message.skip();
    }
  }
  return out;
}

TypedName read_typed_name(Message message) {
  TypedName out;
  while (const auto field = message.next()) {
    if (field == 1)
      out.name = message.text();
    else if (field == 2)
      out.type = read_type(message.message("a value's type"));
    else
      message.skip();
  }
  return out;
}

GraphInfo read_graph(Message message);

Attribute read_attribute(Message message) {
  Attribute out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.name = message.text(); break;
      case 2: out.real = message.real(); break;
      case 3: out.integer = message.integer(); break;
      case 4: out.text = message.text(); break;
      case 5:
      case 10: out.tensors.push_back(read_tensor(message.message("an attribute's tensor"))); break;
      case 6:
      case 11: out.graphs.push_back(std::make_shared<GraphInfo>(read_graph(message.message("an attribute's graph")))); break;
      case 7: message.add_reals(out.reals); break;
      case 8: message.add_integers(out.integers); break;
      case 9: out.texts.push_back(message.text()); break;
      case 14: out.type_proto = read_type(message.message("an attribute's type")); break;
      case 20: out.type = message.enumeration<Attribute::Type>(14); break;
      case 21: out.reference = message.text(); break;
      case 22:
      case 23: out.sparse.push_back(read_sparse(message.message("an attribute's sparse tensor"))); break;
      default: message.skip();
    }
  }
  return out;
}

NodeInfo read_node(Message message) {
  NodeInfo out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.inputs.push_back(message.text()); break;
      case 2: out.outputs.push_back(message.text()); break;
      case 3: out.name = message.text(); break;
      case 4: out.op_type = message.text(); break;
      case 5: out.attributes.push_back(read_attribute(message.message("an attribute"))); break;
      case 7: out.domain = message.text(); break;
      case 8: out.overload = message.text(); break;
      default: message.skip();
    }
  }
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

GraphInfo read_graph(Message message) {
  GraphInfo out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.nodes.push_back(read_node(message.message("a node"))); break;
      case 2: out.name = message.text(); break;
      case 5: out.initializers.push_back(read_tensor(message.message("an initializer"))); break;
      case 11: out.inputs.push_back(read_typed_name(message.message("an input"))); break;
      case 12: out.outputs.push_back(read_typed_name(message.message("an output"))); break;
      case 15: out.sparse_initializers.push_back(read_sparse(message.message("a sparse initializer"))); break;
      default: message.skip();
    }
  }
  return out;
}

Opset read_opset(Message message) {
  Opset out;
  while (const auto field = message.next()) {
    if (field == 1)
      out.domain = message.text();
    else if (field == 2)
      out.version = message.integer();
    else
      message.skip();
  }
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

FunctionInfo read_function(Message message) {
  FunctionInfo out;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.name = message.text(); break;
      case 4: out.inputs.push_back(message.text()); break;
      case 5: out.outputs.push_back(message.text()); break;
      case 6: out.attributes.push_back(message.text()); break;
      case 7: out.nodes.push_back(read_node(message.message("a function's node"))); break;
      case 9: out.opsets.push_back(read_opset(message.message("a function's operator set"))); break;
      case 10: out.domain = message.text(); break;
      case 11: out.default_attributes.push_back(read_attribute(message.message("a function's attribute"))); break;
      case 13: out.overload = message.text(); break;
      default: message.skip();
    }
  }
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

void read(Message message, ModelFile& out) {
  bool has_graph = false;
  while (const auto field = message.next()) {
    switch (field) {
      case 1: out.ir_version = message.integer(); break;
      case 2: out.producer = message.text(); break;
      case 3: out.producer_version = message.text(); break;
      case 7:
        out.graph = read_graph(message.message("the graph"));
        has_graph = true;
        break;
      case 8: out.opsets.push_back(read_opset(message.message("an operator set"))); break;
      case 14: out.metadata.push_back(read_entry(message.message("metadata"))); break;
      case 25: out.functions.push_back(read_function(message.message("a function"))); break;
      default: message.skip();
    }
  }
  if (!has_graph) message.fail("has no graph");
  if (out.opsets.empty()) message.fail("names no operator set");
}

/// Adds the tensors of a graph, and of graphs within it, whose data lie in other files.
void add_external(const GraphInfo& graph, std::vector<const TensorData*>& found) {
  const auto add = [&](const TensorData& data) {
    if (data.external) found.push_back(&data);
  };
  std::for_each(graph.initializers.begin(), graph.initializers.end(), add);
  for (const auto& node : graph.nodes)
    for (const auto& attribute : node.attributes) {
      std::for_each(attribute.tensors.begin(), attribute.tensors.end(), add);
      for (const auto& inner : attribute.graphs) add_external(*inner, found);
    }
}

/// Tensors of the same bytes of another file, of which a small file could make any amount of memory, have at most `most_shared`
/// and `most_growth` times these bytes. Their sizes are checked against the file later.
void require_apart(const ModelFile& file) {
  constexpr double most_shared = std::uint64_t{1} << 27, most_growth = 8;
  struct Part {
    double begin, end;
  };
  std::vector<const TensorData*> found;
  add_external(file.graph, found);
  std::map<std::string_view, std::vector<Part>> parts;
  for (const auto* data : found) {
    // Without a length it is one of at most 8 bytes an element.
    auto bytes = 8.0;
    for (const auto extent : data->dims) bytes *= static_cast<double>(extent);
    const auto begin = static_cast<double>(data->external->offset);
    parts[data->external->location].push_back(
        {begin, begin + (data->external->length ? static_cast<double>(*data->external->length) : bytes)});
  }
  for (auto& [location, list] : parts) {
    std::sort(list.begin(), list.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    double all = 0, apart = 0, end = 0;
    for (const auto& part : list) {
      all += part.end - part.begin;
      apart += std::max(0.0, part.end - std::max(part.begin, end));
      end = std::max(end, part.end);
    }
    if (all > most_growth * apart + most_shared)
      throw FileError(
          fmt::format("{}: its tensors take {:.0f} bytes of the same {:.0f} in {}", file.name, all, apart, in_quotes(location)));
  }
}

/// Calls `f`; what it throws becomes a FileError of `name`.
template <class F>
void reading(const std::string& name, std::string_view what, const F& f) {
  try {
    f();
  } catch (const Malformed& malformed) {
    throw FileError(fmt::format("{}: no {}: {}", name, what, malformed.reason));
  } catch (const protozero::exception& malformed) {
    throw FileError(fmt::format("{}: no {}, or damaged: {}", name, what, malformed.what()));
  }
}

}  // namespace

ModelFile read_model(const std::filesystem::path& path) {
  return read_model(file::read(path, largest_message), path.string(), path.parent_path());
}

ModelFile read_model(std::string bytes, std::string name, std::filesystem::path folder) {
  ModelFile out;
  out.bytes = std::make_shared<const std::string>(std::move(bytes));
  out.name = std::move(name);
  out.folder = std::move(folder);
  if (out.bytes->empty()) throw FileError(fmt::format("{}: is empty, no ONNX model", out.name));
  reading(out.name, "ONNX model", [&] {
    std::uint64_t parts = 0;
    read(Message(*out.bytes, "the model", parts), out);
  });
  require_apart(out);
  return out;
}

TensorFile read_tensor(std::string bytes, const std::string& name) {
  TensorFile out;
  out.bytes = std::make_shared<const std::string>(std::move(bytes));
  reading(name, "ONNX tensor", [&] {
    std::uint64_t parts = 0;
    out.tensor = read_tensor(Message(*out.bytes, "the tensor", parts));
  });
  return out;
}

SequenceFile read_sequence(std::string bytes, const std::string& name) {
  SequenceFile out;
  out.bytes = std::make_shared<const std::string>(std::move(bytes));
  reading(name, "ONNX sequence", [&] {
    std::uint64_t parts = 0;
    out.tensors = read_tensors(Message(*out.bytes, "the sequence", parts));
  });
  return out;
}

OptionalFile read_optional(std::string bytes, const std::string& name) {
  constexpr std::int64_t last_kind = 5;
  OptionalFile out;
  out.bytes = std::make_shared<const std::string>(std::move(bytes));
  reading(name, "ONNX optional", [&] {
    std::uint64_t parts = 0;
    Message message(*out.bytes, "the optional value", parts);
    while (const auto field = message.next()) {
      switch (field) {
        case 2: message.enumeration<int>(last_kind); break;
        case 3: out.tensor = read_tensor(message.message("a tensor")); break;
        case 5: out.sequence = read_tensors(message.message("a sequence")); break;
        case 1: message.skip(); break;
        default: message.fail("is neither a tensor nor a sequence of such");
      }
    }
  });
  return out;
}

std::string_view to_string(ElementType type) {
  constexpr std::string_view names[] = {
      "undefined",  "float",        "uint8",          "int8",       "uint16",         "int16",  "int32",     "int64",
      "string",     "bool",         "float16",        "double",     "uint32",         "uint64", "complex64", "complex128",
      "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",      "float4e2m1",
      "float8e8m0", "uint2",        "int2",           "float6e2m3", "float6e3m2"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(names) ? names[index] : "an unknown type";
}

ElementType element_type_of(std::string_view name) {
  for (int i = 1; i <= static_cast<int>(ElementType::i2); ++i)
    if (to_string(static_cast<ElementType>(i)) == name) return static_cast<ElementType>(i);
  return ElementType::undefined;
}

}  // namespace clnet::onnx
