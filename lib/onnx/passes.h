// Passes over a resolved graph: the same results, within rounding, by fewer or faster operations. For inference only; training
// runs the graph as the file has it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/onnx/operators.h"
#include "lib/onnx/program.h"

namespace clnet::onnx {

/// Instructions that one function computes. Whether that is possible may depend on shapes and constants of a run: without a
/// result the parts run, one by one.
struct Fusion {
  std::vector<Instruction> parts;
  std::function<std::optional<Outputs>(const Call& call)> run;
};

/// A pattern that a pass found. Its last part makes the output.
struct Match {
  std::vector<std::size_t> parts;  ///< indices of instructions
  std::vector<Slot> inputs;        ///< of the function, as Call has them
  std::function<std::optional<Outputs>(const Call& call)> run;
};

/// Who makes and reads the values of a graph, for patterns.
class Uses {
 public:
  explicit Uses(const Program& program);

  const Program& program() const { return program_; }
  const Instruction& at(std::size_t index) const { return program_.instructions[index]; }
  /// The instruction that makes the value; nothing for an input or initializer.
  std::optional<std::size_t> maker(Slot slot) const;
  /// The same, if it has this operator of ONNX.
  std::optional<std::size_t> maker(Slot slot, std::string_view op) const;
  bool is(std::size_t index, std::string_view op) const;
  /// An input of an instruction; -1: it has none there.
  Slot input(std::size_t index, std::size_t place) const {
    return place < at(index).inputs.size() ? at(index).inputs[place] : -1;
  }
  /// How many inputs and outputs of the graph the value is, in graphs within, too.
  std::size_t readers(Slot slot) const { return slot < 0 ? 0 : readers_[static_cast<std::size_t>(slot)]; }
  /// Whether it depends on constants, initializers and shapes only.
  bool is_fixed(Slot slot) const { return slot >= 0 && fixed_[static_cast<std::size_t>(slot)]; }
  /// Of two inputs, one of which is fixed: the other, and the fixed one.
  std::optional<std::pair<Slot, Slot>> with_fixed(std::size_t index) const;
  /// Factors of a product: its operands, and theirs where nothing else reads them. The products are added to `parts`.
  std::vector<Slot> factors(std::size_t index, std::vector<std::size_t>& parts) const;
  /// Whether nothing but the parts reads the values between them.
  bool is_closed(const std::vector<std::size_t>& parts, std::size_t last) const;

 private:
  const Program& program_;
  std::vector<int> makers_;
  std::vector<std::size_t> readers_;
  std::vector<bool> fixed_;
};

/// Integers of an attribute; nothing where the node has none, or a function gives it.
std::optional<std::vector<std::int64_t>> integers_of(const Instruction& instruction, std::string_view attribute);
/// The number of an input that is a constant of one element.
std::optional<double> number_of(const Call& call, std::size_t input);
/// Whether the input is this number, up to the rounding of f32.
bool is_number(const Call& call, std::size_t input, double value);

// The patterns; `last` is the instruction that they end with.
std::optional<Match> match_attention(const Uses& uses, std::size_t last);
std::optional<Match> match_gelu(const Uses& uses, std::size_t last);
std::optional<Match> match_layer_norm(const Uses& uses, std::size_t last);
/// Takes out transposes that cancel, also with elementwise operations between them.
void cancel_transposes(Program& program);

/// The graph after all passes, those within it too.
std::shared_ptr<const Program> optimized(const std::shared_ptr<const Program>& program);

}  // namespace clnet::onnx
