// An operation: its name, the specs of its outputs, its gradient and its lowering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/fields.h"

namespace clnet {

namespace exec {
class Recorder;
class Rewrite;
}  // namespace exec
struct Node;

using Specs = std::vector<Spec>;
using Tensors = std::vector<Tensor>;

/// The dtype of an operation's inputs within an Autocast scope.
enum class Precision : std::uint8_t {
  widest,  ///< the inputs' dtypes; f32 where floating inputs differ
  low,     ///< the scope's dtype: products
  full,    ///< f32: operations that need range or digits
  own      ///< the inputs' dtypes, even where they differ
};

/// The formula of an element of an elementwise operation's only output.
struct Expression {
  /// An OpenCL C expression over the inputs a, b, c, ..., the parameters p0, p1, ... and the linear index i of the output's
  /// element (kernels/clnet.clh has the available functions). Inputs are broadcast to the output. Values of f32, f16 and bf16
  /// inputs are float, of f64 double, of i32 int, of i64 long, of i8 char, of u8 and bool uchar. The result is converted to the
  /// output's dtype.
  std::string text;
  /// The values of p0, p1, ...: run-time arguments, so that new values need no new program.
  std::vector<double> parameters = {};
};

/// A range of an input's elements, in their order.
struct Alias {
  std::size_t input = 0;
  std::int64_t offset = 0;  ///< offset of the first element, in elements of the input
};

/// A part of an input: along `dim` the output's extent from `start` on, along the other dimensions everything.
struct InputSlice {
  int dim = 0;
  std::int64_t start = 0;
};

/// An operation's permissions to share with others: a kernel, memory, a sum.
struct FusionHints {
  /// Recomputing it costs little more than reading its inputs, so memory may be saved that way. Elementwise operations are always
  /// cheap.
  bool cheap = false;
  /// For elementwise operations that only select a slice of their only input: kernels read it directly from the input. The
  /// expression is "a" then.
  std::optional<InputSlice> input_slice = std::nullopt;
  /// The only output concatenates the elements of the inputs. Inputs may then be computed in its memory: lower() finds out by
  /// Recorder::is_there().
  bool joins_inputs = false;
  /// The dimension of each input over which the only output is a sum. Several such operations, joined along these dimensions,
  /// give the sum of their results. Empty: none.
  std::vector<int> summed_dims = {};
  /// lower() calls Recorder::epilogue(), at least for some solvers, and so takes the elementwise operations that follow.
  bool epilogue = false;
  /// An input that lower() passes to Recorder::prologue(), at least for some solvers. Elementwise operations that produce it for
  /// this operation alone are computed where it is loaded.
  std::optional<std::size_t> prologue = std::nullopt;
};

/// The solvers of an operation, and how to measure them against each other (CLNET_TUNE).
struct TuningHints {
  /// The name of the list; empty: the operation's own name, see solver_list(). Operations may share a list, as forward and
  /// backward do.
  std::string_view list = {};
  /// Whether the solvers may be measured; overriders set false where they may not.
  bool measured = true;
  /// Inputs with a batch as their first dimension. The reference solver, which may take a thousand times as long, runs on a group
  /// of `unit` items of it.
  std::vector<std::size_t> batches = {};
  std::int64_t unit = 1;
  /// An upper bound of the integers among its inputs; 0: none, and nothing is measured.
  std::int64_t indices = 0;
  /// Measure with positive numbers: sums with both signs may cancel, and then differ by much of their value.
  bool positive = false;
  /// It takes little of a plan's time, so others are measured first.
  bool last = false;
  /// An input that solvers may prepack, and keep so while it does not change, as for weights.
  std::optional<std::size_t> packed = std::nullopt;
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  virtual Fields fields() const { return {}; }

  /// The dtype that Autocast gives to its floating inputs, numbers excepted.
  virtual Precision precision() const { return Precision::widest; }

  /// The outputs' specs. Throws ShapeError or DtypeError, with the operation's name, where the inputs do not fit.
  virtual Specs infer(const Specs& inputs) const = 0;

  /// The gradients of the inputs from those of the outputs, as graph (vector-Jacobian product). An undefined entry of `gradients`
  /// means that nothing depends on that output; an undefined entry of the result, that no gradient flows into that input. The
  /// base throws Unsupported.
  virtual Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const;

  /// The tensors that vjp()'s results are gradients of, instead of the inputs; possibly graph that is never evaluated.
  /// std::nullopt: the inputs. An empty list stops gradients: everything behind it counts as independent of the outputs.
  virtual std::optional<std::span<const Tensor>> differentiated() const { return std::nullopt; }

  /// The formula of an elementwise operation. Empty text: it is not elementwise, and lower() is called.
  virtual Expression expr(const Specs& inputs) const;

  /// The range of an input that an output is, if it is a view: as many elements as the output has, from `offset` on, of one
  /// dtype. Either all outputs are views, or none. Views are never computed: graph, fusion and recording use the input's memory,
  /// and lower() is not called.
  virtual std::optional<Alias> alias(const Specs& inputs, std::size_t output) const;

  virtual FusionHints fusion(const Specs& inputs) const;

  /// By default solvers are not measured.
  virtual TuningHints tuning(const Specs& inputs) const;

  /// The extents of its inputs that are sequence lengths and may differ in the next batch.
  virtual std::vector<std::int64_t> lengths(const Specs&) const { return {}; }
  /// The graph, over stand-ins, in its place if sequences of length `from` had length `to`, where lower() does not foresee that
  /// itself (Recorder::foresee). Also called for views, as their replacements may be no views.
  virtual Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to) const;

  /// Records the launches that compute the outputs.
  virtual void lower(exec::Recorder& recorder) const;

  /// The rewrite that computes it together with others, in place of lower() for each; null: none.
  virtual const exec::Rewrite* rewrite() const { return nullptr; }
};

/// A node for the operation and its inputs: its outputs as tensors.
Tensors apply_all(std::shared_ptr<const Op> op, Tensors inputs);
/// The same for an operation with one output.
Tensor apply(std::shared_ptr<const Op> op, Tensors inputs);

}  // namespace clnet
