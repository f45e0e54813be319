// Elementwise operations that run as one kernel: which buffers they read, in which loops, and the kernel's text.
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

/// Whether the operation is computed by an expression.
bool is_elementwise(const Node& node);

/// See FusionHints::window.
std::optional<Window> window_of(const Node& node);
/// The type in which kernels hold a value of the dtype.
std::string_view value_type(Dtype dtype);
/// The expression converted to what storing it as the dtype and loading it again would give.
std::string converted(Dtype dtype, const std::string& expression);

struct ElementwiseKernel {
  /// Where an operand of an operation comes from.
  struct Operand {
    enum class From : std::uint8_t { load, scalar, step } from;
    std::size_t index;
  };
  /// An element's position in a tensor: the linear index of the loops, or what its strides give from an element on.
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
  struct Step {
    const Node* node;
    std::vector<Operand> operands;
    Position at;
    Expression expression;  ///< the node's
  };

  std::vector<std::int64_t> loops;
  std::vector<Tensor> buffers, scalars;
  std::vector<Load> loads;
  std::vector<Step> steps;           ///< each after those that it reads
  std::vector<std::size_t> outputs;  ///< the steps whose values are written

  std::size_t parameter_bytes() const;
  /// Work per element; see cost() in expression.h.
  int cost() const;
};

/// The kernel that computes `outputs` (all with equally many elements) from the other values, `nodes` being what it computes
/// itself. Nothing when the shapes do not let them run in the same loops.
std::optional<ElementwiseKernel> assemble(const std::vector<const Node*>& nodes, const std::vector<const Node*>& outputs);

/// The recorder's inputs are the kernel's buffers, then its scalars; its outputs are the kernel's.
void lower_elementwise(const ElementwiseKernel& kernel, Recorder& recorder);

}  // namespace clnet::exec
