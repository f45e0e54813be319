// Elementwise operations as one kernel: its buffers, its loops, and its text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exec/fuse/loops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Whether an expression computes the operation.
bool is_elementwise(const Node& node);

/// See FusionHints::input_slice.
std::optional<InputSlice> input_slice_of(const Node& node);
/// Whether an input or output of the operation is f64. Its kernel computes in double, so no kernel has such operations and
/// others.
bool computes_f64(const Node& node);
/// The type of a value of the dtype within kernels; f64: of a kernel that computes in double.
std::string_view value_type(Dtype dtype, bool f64 = false);
/// The expression, rounded as if it were stored as the dtype and loaded again.
std::string converted(Dtype dtype, const std::string& expression);

struct ElementwiseKernel {
  /// The source of an operation's operand.
  struct Operand {
    enum class From : std::uint8_t { load, scalar, statement } from;
    std::size_t index;
  };
  /// An element's position in a tensor: the linear index of the loops, or an offset plus strides.
  struct Position {
    bool linear = false;
    Strides strides;
    std::int64_t first = 0;
    bool operator==(const Position&) const = default;
    /// Element 0 everywhere.
    bool fixed() const {
      return first == 0 && std::all_of(strides.begin(), strides.end(), [](auto stride) { return stride == 0; });
    }
  };
  struct Load {
    std::size_t buffer;
    Position at;
  };
  struct Statement {
    const Node* node;
    std::vector<Operand> operands;
    Position at;
    Expression expression;  ///< the node's
  };

  std::vector<std::int64_t> loops;
  std::vector<Tensor> buffers, scalars;
  std::vector<Load> loads;
  std::vector<Statement> statements;  ///< each after its operands
  std::vector<std::size_t> outputs;   ///< the statements with written values
  bool f64 = false;                   ///< it computes in double

  std::size_t parameter_bytes() const;
  /// Work per element; see cost() in expression.h.
  int cost() const;
};

/// The kernel for `outputs` (all of one number of elements); it computes `nodes` itself and reads all other values. Nothing where
/// the shapes do not fit the same loops.
std::optional<ElementwiseKernel> assemble(const std::vector<const Node*>& nodes, const std::vector<const Node*>& outputs);

/// The recorder's inputs are the kernel's buffers, then its scalars; its outputs are the kernel's.
void lower_elementwise(const ElementwiseKernel& kernel, Recorder& recorder);

}  // namespace clnet::exec
