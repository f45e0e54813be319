// Networks in ONNX files (https://onnx.ai): they run, train, and are saved again as any other module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/tensor.h"

namespace clnet::onnx {

/// A tensor or a sequence of such, with ONNX's element type ("float", "int64", "uint16", ...). clnet's dtypes store the types
/// that it lacks: i32 has int16 and uint16, i64 has uint32 and uint64.
struct Value {
  Tensor tensor;
  std::string type = {};
  bool is_sequence = false;
  std::vector<Value> elements = {};

  Value() = default;
  Value(Tensor value) : tensor(std::move(value)) {}  // NOLINT(google-explicit-constructor)
};

/// An input or output of a network.
struct ValueInfo {
  std::string name;
  std::string type;                  ///< of the elements; empty: the file does not say
  std::vector<std::string> extents;  ///< numbers, names of extents that each run binds, or "?"
  bool is_known_rank = false;        ///< whether the file says how many extents there are
  bool is_sequence = false;
  bool is_optional = false;  ///< whether its type allows that there is no value
  bool optional = false;     ///< an input with a value in the file
};

/// An operator that this library lacks.
struct MissingOperator {
  std::string operation;   ///< "Foo", or "com.example.Foo" of another domain
  std::int64_t opset = 0;  ///< the operator set that the file asks for
  std::string node;        ///< the first such node: its name, or its number

  bool operator==(const MissingOperator&) const = default;
};

struct SaveOptions;

struct LoadOptions {
  bool f64_as_f32 = false;  ///< computes in f32 what the file has in double
  /// Batch norm normalizes by the file's statistics in training, too, and leaves them as they are.
  bool freeze_statistics = false;
  /// Not 0: the last linear layer (a Gemm, a MatMul with an Add, or a 1x1 Conv) is replaced by a fresh one with so many outputs,
  /// for other classes than the file's. It begins as nn::Linear does. Throws Error where there is no such layer.
  std::int64_t replace_head = 0;
  /// A Softmax or LogSoftmax that gives the first output is left out, so that cross_entropy() can take it.
  bool logits = false;
  /// Inputs, and a Reshape to a batch of the size that they declare, take batches of any size.
  bool free_batch = false;
  /// Floating constants of nodes that have more than one element are parameters, too: some programs write no initializers.
  bool train_constants = false;
  /// In inference, computes patterns of attention, layer norm and GELU by clnet's operations. Computes once what nodes make of
  /// constants, buffers and frozen parameters. The results differ by rounding. Without, each node is computed as the file has it.
  bool passes = true;
};

/// A network from an ONNX file. Initializers are parameters under their own names, where dots make groups as in PyTorch's
/// state_dict(). Statistics of batch norm, integers and single numbers are buffers. Shapes, axes and the like belong to the
/// graph.
///
/// In training (train(), the state after load() is inference) BatchNormalization and Dropout behave as in training.
class CLNET_API Model : public nn::Module {
 public:
  Model(const Model& other);
  Model& operator=(const Model& other) = delete;

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// Operators that are missing. A run of a network that has some throws Unsupported before it computes anything.
  const std::vector<MissingOperator>& missing_operators() const;
  /// The format's version, the operator sets by domain ("" is ONNX's own), and the program that wrote the file.
  std::int64_t ir_version() const;
  const std::vector<std::pair<std::string, std::int64_t>>& opsets() const;
  const std::string& producer() const;
  /// Keys and values of the file's metadata_props, in its order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const;
  /// Softmax or LogSoftmax, where one gives the file's first output; else empty. LoadOptions::logits leaves it out.
  const std::string& last_softmax() const;
  /// The names of the parameters that LoadOptions::replace_head made.
  const std::vector<std::string>& head() const;
  /// How many nodes there are of each operator, by name.
  std::vector<std::pair<std::string, std::int64_t>> operators() const;
  /// How often convolutions, matrix products, attention and recurrent layers multiply and add in a run. Inputs have the declared
  /// extents; an open first one counts as 1. Nothing where others are open, data decide, or set_check() ends it. It does not run.
  std::optional<double> multiply_adds();

  /// The first output for the only input that the file has no value of. Throws Error where there are more.
  Tensor forward(const Tensor& x) override;
  /// All outputs, in order, for inputs in order; an undefined tensor leaves an optional one out. Throws ShapeError, DtypeError or
  /// Error where a node refuses its inputs; the text has the node's name and operator. ShapeError for an input without the
  /// declared extents.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  /// The same with types and sequences.
  std::vector<Value> run_values(const std::vector<Value>& inputs);
  /// Called before each node; what it throws ends the run. For time limits.
  void set_check(std::function<void()> check);

  std::string kind() const override { return "onnx::Model"; }

 private:
  struct Loaded;
  struct Held;
  friend CLNET_API void save(nn::Module& module, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                             const SaveOptions& options);
  friend CLNET_API Model load(const std::filesystem::path& path, const LoadOptions& options);
  explicit Model(std::shared_ptr<Loaded> loaded);
  /// Counts into `multiply_adds`, instead of reading data.
  std::vector<Value> results_of(const std::vector<Value>& inputs, double* multiply_adds = nullptr);

  std::shared_ptr<Loaded> loaded_;
  std::shared_ptr<Held> held_;
};

/// Reads a file of operator sets 1 to 28. Throws FileError, with path and reason, for a file that is damaged or no ONNX model.
CLNET_API Model load(const std::filesystem::path& path, const LoadOptions& options = {});

/// Reads a TensorProto or a SequenceProto from a .pb file, as the conformance tests of ONNX have them. Throws FileError.
CLNET_API Value load_tensor(const std::filesystem::path& path, bool sequence = false);
/// What a .pb file has of this input or output: a TensorProto, a SequenceProto, or an OptionalProto of one of these. Of an
/// optional without a value the tensor is undefined. Throws FileError.
CLNET_API Value load_value(const std::filesystem::path& path, const ValueInfo& info);
/// Writes a TensorProto, or a SequenceProto of tensors.
CLNET_API void save_tensor(const std::filesystem::path& path, const Value& value, const std::string& name = {});

/// How save() writes a network.
struct SaveOptions {
  int opset = 18;  ///< the operator set of ONNX, 18 to 26
  /// Extent 0 of the inputs, as the first example has it, becomes the name "batch" where the graph serves every batch. Otherwise
  /// the examples' extents are fixed.
  bool dynamic_batch = true;
  std::vector<std::string> input_names = {};   ///< empty: those of an onnx::Model, otherwise "input", "input_1", ...
  std::vector<std::string> output_names = {};  ///< empty: those of an onnx::Model, otherwise "output", "output_1", ...
  /// Keys and values for the file's metadata_props, beside a Model's own. One without a value is left out, also of a Model's.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// Tensors of 1 KiB and more go to a file beside the model, named as it is with ".data" behind. Where the model would be larger
  /// than 2 GiB, as much as the format holds, they do so unasked. That file is replaced before the model.
  bool external_data = false;
};

/// From tensors to tensors, as compile() has it.
using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

/// Writes `module`, as it computes `examples` in inference, as an ONNX file. Of the examples only shapes and dtypes count. A
/// module takes one, a Model all its inputs, where those that are parameters may be left out. Parameters and buffers are
/// initializers under their names, read or not. load() gives a module with the same ones.
///
/// Functions with an operator of ONNX become that operator, also where clnet makes them up of others: Gelu from operator set 20
/// on, BatchNormalization, LSTM. What does not depend on inputs or parameters is computed and becomes a constant.
///
/// Whether the batch is free is found by building the graph for four batches, one of them far larger: extents and constants may
/// grow evenly with it. The module is called with tensors without values: reading them throws Error.
///
/// Throws Unsupported, with the operation and the layer, for random or training-only operations and those that ONNX lacks; Error
/// for options that do not fit; FileError where the file cannot be written. Nothing is written then.
CLNET_API void save(nn::Module& module, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                    const SaveOptions& options = {});
/// The same for a function. Parameters and buffers of `parameters`, which is in inference mode meanwhile, keep their names; null:
/// there are none. Other tensors that it reads are constants.
CLNET_API void save(const Function& function, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                    const SaveOptions& options = {}, nn::Module* parameters = nullptr);

}  // namespace clnet::onnx
