// The operators of ONNX: each a function over clnet's public operations. A family has its table in lib/onnx/ops_<family>.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/ops/elementwise.h"
#include "lib/onnx/value.h"

namespace clnet::onnx {

class Call;
class Runner;
struct Instruction;
struct Program;

/// The outputs of a node, in order; further ones that the file does not ask for are ignored.
using Outputs = std::vector<RunValue>;

/// What an input is for where it is an initializer. data: a parameter if it is floating and has more than one element.
/// weight: a parameter whatever its size. statistic: a buffer. structure: known when the graph is built, as a shape or axes.
enum class Role : std::uint8_t { data, weight, statistic, structure };

struct Operator {
  std::string_view name;
  /// The first operator set with the definition that `run` follows. A file's node takes the last one that is not above its own.
  int since = 1;
  Outputs (*run)(const Call& call) = nullptr;
  std::vector<Role> roles = {};  ///< by input; further ones as the last: all `data` where empty
  std::string_view domain = {};
  bool varies = false;  ///< gives another value at each run, as random numbers
};

/// All of them, sorted by domain, name and operator set.
const std::vector<Operator>& operators();
/// Null: there is none.
const Operator* find_operator(std::string_view domain, std::string_view name, std::int64_t opset);

std::vector<Operator> attention_operators(), control_operators(), conv_operators(), elementwise_operators(), image_operators(),
    index_operators(), layer_operators(), norm_operators(), quantized_operators(), random_operators(), recurrent_operators(),
    reduce_operators(), sequence_operators(), shape_operators(), signal_operators(), training_operators();

/// One node while it runs: its inputs and attributes.
class Call {
 public:
  Call(Runner& runner, const Instruction& instruction, std::span<const RunValue> inputs);

  std::int64_t opset() const;
  std::string_view name() const;  ///< the operator's
  Runner& runner() const { return runner_; }
  const Instruction& instruction() const { return instruction_; }
  std::size_t outputs() const;           ///< the number of outputs
  bool wants(std::size_t output) const;  ///< whether the file names it
  /// The graph of this attribute; null: there is none.
  const Program* graph(std::string_view name) const;
  /// The same as the file has it, with declared types.
  const GraphInfo* graph_info(std::string_view name) const;

  // Inputs.
  std::size_t count() const { return inputs_.size(); }
  bool has(std::size_t input) const { return input < inputs_.size() && inputs_[input].is_there(); }
  /// Throws Error where it was left out.
  const RunValue& in(std::size_t input) const;
  /// Also one that was left out.
  RunValue maybe(std::size_t input) const { return has(input) ? inputs_[input] : RunValue(); }
  /// A tensor on the device. Throws Error where it was left out, or is a sequence.
  const Tensor& x(std::size_t input) const;
  /// Undefined where it was left out.
  Tensor optional(std::size_t input) const { return has(input) ? x(input) : Tensor{}; }
  ElementType type(std::size_t input) const { return in(input).type(); }
  const Shape& shape(std::size_t input) const { return in(input).shape(); }
  /// Elements that the graph's structure depends on. Data is evaluated and read.
  std::vector<std::int64_t> integers(std::size_t input) const;
  std::vector<double> numbers(std::size_t input) const;
  std::int64_t integer(std::size_t input) const;
  double number(std::size_t input) const;

  // Attributes; those of a function's node may stand for the function's own.
  const Attribute* attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  std::int64_t attribute(std::string_view name, std::int64_t otherwise) const;
  double attribute(std::string_view name, double otherwise) const;
  std::string attribute(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;  ///< empty: there is none
  /// Of an attribute that has a TensorProto.DataType. Throws Error for a number that is none.
  ElementType element_type(std::string_view name, ElementType otherwise) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

  /// Integers of an input, or of the attribute that had them in earlier operator sets.
  std::vector<std::int64_t> integers(std::size_t input, std::string_view attribute) const;

  /// Tensors that `make` builds of these inputs, undefined where one was left out. If the inputs are untrained weights, they are
  /// computed once (WeightValues); `key` tells several of a node apart.
  std::vector<Tensor> made_of(const std::vector<std::size_t>& inputs, std::size_t key,
                              const std::function<std::vector<Tensor>(const std::vector<Tensor>& given)>& make) const;

  /// The dimension `axis` as 0..rank-1. Throws ShapeError.
  static int axis(std::int64_t axis, int rank);

  /// An output with the type of input `like`.
  RunValue give(Tensor tensor, std::size_t like = 0) const;
  /// An output of this type: the tensor is cast to the type's dtype, and wraps around where that is wider.
  RunValue give_as(Tensor tensor, ElementType type) const;

  [[noreturn]] void fail(std::string_view reason) const;
  /// Throws Unsupported, which names the operator and the node.
  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  Runner& runner_;
  const Instruction& instruction_;
  std::span<const RunValue> inputs_;
};

}  // namespace clnet::onnx
