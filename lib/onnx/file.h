// The content of an ONNX file as C++ values. Fields have the names of onnx.proto (https://github.com/onnx/onnx), and its version
// 14 of the format is what is read and written. Texts point into the file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clnet::onnx {

/// TensorProto.DataType.
enum class ElementType : std::uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};
/// The name in ONNX: "float", "int64", ...
std::string_view to_string(ElementType type);
/// The type of this name; undefined: there is none.
ElementType element_type_of(std::string_view name);

/// TensorProto. The elements are in `raw`, in one of the lists, or in another file.
struct TensorData {
  std::string_view name;
  std::vector<std::int64_t> dims;
  ElementType type = ElementType::undefined;
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<std::int32_t> ints;
  std::vector<std::int64_t> longs;
  std::vector<double> doubles;
  std::vector<std::uint64_t> unsigned_longs;
  std::vector<std::string_view> strings;
  /// data_location EXTERNAL.
  struct External {
    std::string_view location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
  };
  std::optional<External> external;
};

/// SparseTensorProto: `indices` are i64, linear {count} or coordinates {count, rank}.
struct SparseData {
  TensorData values, indices;
  std::vector<std::int64_t> dims;
};

/// TensorShapeProto.Dimension.
struct Dimension {
  std::optional<std::int64_t> value;
  std::string_view parameter;  ///< the name of an extent that is known when the network runs
};

/// TypeProto.
struct TypeInfo {
  enum class Kind : std::uint8_t { none, tensor, sparse_tensor, sequence, map, optional };
  Kind kind = Kind::none;
  ElementType element = ElementType::undefined;  ///< of a tensor
  std::optional<std::vector<Dimension>> shape;   ///< of a tensor
  std::shared_ptr<const TypeInfo> inner;         ///< of a sequence's or optional's element
};

/// ValueInfoProto.
struct TypedName {
  std::string_view name;
  TypeInfo type;
};

struct GraphInfo;

/// AttributeProto.
struct Attribute {
  enum class Type : std::uint8_t {
    undefined = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type_proto = 13,
    type_protos = 14,
  };
  std::string_view name;
  std::string_view reference;  ///< inside of a function: the function's attribute that is meant
  Type type = Type::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<TensorData> tensors;                       ///< one of type `tensor`
  std::vector<std::shared_ptr<const GraphInfo>> graphs;  ///< one of type `graph`
  std::vector<SparseData> sparse;                        ///< one of type `sparse_tensor`
  TypeInfo type_proto;
};

/// NodeProto. An empty name of an input or output stands for one that is left out.
struct NodeInfo {
  std::vector<std::string_view> inputs, outputs;
  std::string_view name, op_type, domain, overload;
  std::vector<Attribute> attributes;
};

/// GraphProto.
struct GraphInfo {
  std::string_view name;
  std::vector<NodeInfo> nodes;
  std::vector<TensorData> initializers;
  std::vector<SparseData> sparse_initializers;
  std::vector<TypedName> inputs, outputs;
};

/// OperatorSetIdProto: the empty domain is ONNX's own.
struct Opset {
  std::string_view domain;
  std::int64_t version = 0;
};

/// FunctionProto.
struct FunctionInfo {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;  ///< without defaults
  std::vector<Attribute> default_attributes;
  std::vector<NodeInfo> nodes;
  std::vector<Opset> opsets;
};

/// ModelProto. Copies share the bytes that the texts point into.
struct ModelFile {
  std::shared_ptr<const std::string> bytes;
  std::vector<std::shared_ptr<const std::string>> added = {};  ///< of tensors that took the place of some in the file
  std::string name;                                            ///< the path, for errors
  std::filesystem::path folder;                                ///< of external data
  std::int64_t ir_version = 0;
  std::vector<Opset> opsets;
  std::string_view producer, producer_version;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  GraphInfo graph;
  std::vector<FunctionInfo> functions;
};

/// Reads a file of at most 2 GiB, the limit of the format. Throws FileError, with path and reason.
ModelFile read_model(const std::filesystem::path& path);
/// The same from bytes; `name` begins errors. External data is looked for in `folder`.
ModelFile read_model(std::string bytes, std::string name, std::filesystem::path folder = {});

/// A file with one TensorProto, and its bytes.
struct TensorFile {
  std::shared_ptr<const std::string> bytes;
  TensorData tensor;
};
/// Throws FileError, with `name` and reason.
TensorFile read_tensor(std::string bytes, const std::string& name);
/// The same of a SequenceProto of tensors.
struct SequenceFile {
  std::shared_ptr<const std::string> bytes;
  std::vector<TensorData> tensors;
};
SequenceFile read_sequence(std::string bytes, const std::string& name);
/// The same of an OptionalProto: a tensor, a sequence of tensors, or neither.
struct OptionalFile {
  std::shared_ptr<const std::string> bytes;
  std::optional<TensorData> tensor;
  std::optional<std::vector<TensorData>> sequence;
};
OptionalFile read_optional(std::string bytes, const std::string& name);

}  // namespace clnet::onnx
