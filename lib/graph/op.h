// An operation: what it is called, which specs it makes, how its gradient is built, and how it is computed.
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

/// What an operation computes with while a scope of Autocast lives.
enum class Precision : std::uint8_t {
  widest,  ///< what comes; where floating inputs differ, f32
  narrow,  ///< the scope's dtype: products
  full,    ///< f32: what needs range or digits
  own      ///< what comes, whether it differs or not
};

/// How an element of an elementwise operation's only output is computed.
struct Expression {
  /// One OpenCL C expression over the inputs a, b, c, ..., the parameters p0, p1, ... and the linear index i of the output's
  /// element (see kernels/clnet.clh for the functions it may call). Inputs are broadcast to the output. Values of f32, f16 and
  /// bf16 inputs are float, of i32 int, of i64 long, of i8 char, of u8 and bool uchar; the result is converted to the output's
  /// dtype.
  std::string text;
  /// The values of p0, p1, ...: run-time arguments, so that their values do not make new programs.
  std::vector<float> parameters = {};
};

/// A range of an input's elements, in their order.
struct Alias {
  std::size_t input = 0;
  std::int64_t offset = 0;  ///< of the range's first element in the input, in elements
};

/// A part of an input: along `dim` as many elements from `start` on as the output has, along the others all.
struct Window {
  int dim = 0;
  std::int64_t start = 0;
};

/// What an operation may share with others: a kernel, memory, a sum.
struct FusionHints {
  /// Computing it again costs little more than reading its inputs: memory may be saved so. Elementwise operations are cheap
  /// without saying so.
  bool cheap = false;
  /// Which part of the only input the output is, for elementwise operations that are nothing else: kernels read it where it lies
  /// in the input. The expression is "a" then.
  std::optional<Window> window = std::nullopt;
  /// The only output is the elements of the inputs, one input's after the other's. Inputs may then be computed in its memory:
  /// lower() asks Recorder::is_there() which are.
  bool joins_inputs = false;
  /// A dimension of each input along which the only output is a sum: joined along these, the inputs of several such operations
  /// give the sum of their results. Empty: there are none.
  std::vector<int> summed_dims = {};
  /// lower() calls Recorder::epilogue(), at least for some solvers: elementwise operations that follow are handed to it.
  bool epilogue = false;
  /// An input that lower() hands to Recorder::prologue(), at least for some solvers: elementwise operations that make it for this
  /// operation only are computed where it is loaded.
  std::optional<std::size_t> prologue = std::nullopt;
};

/// Which solvers compute an operation, and how they are measured against each other (CLNET_TUNE).
struct TuningHints {
  /// Their list; empty: the operation's own name, see solver_list(). Operations may share one: forward and backward, say.
  std::string_view list = {};
  /// Whether they may be measured. An operation with hints of its own says so where they may not.
  bool measured = true;
  /// Inputs that have a batch as their first dimension: the oracle, which may take a thousand times as long, sees `unit` of it,
  /// which belong together.
  std::vector<std::size_t> batches = {};
  std::int64_t unit = 1;
  /// What the whole numbers among its inputs are less than; 0: they are no such numbers, and nothing is measured.
  std::int64_t indices = 0;
  /// With positive numbers: sums of both signs may cancel, and then differ by much of themselves.
  bool positive = false;
  /// It takes so little of a plan's time that others are measured first.
  bool last = false;
  /// An input of which solvers may keep another form for as long as it stays as it is, as they do of weights.
  std::optional<std::size_t> packed = std::nullopt;
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  virtual Fields fields() const { return {}; }

  /// Which dtype Autocast gives to its floating inputs, numbers excepted.
  virtual Precision precision() const { return Precision::widest; }

  /// The outputs' specs. Throws ShapeError or DtypeError, naming the operation, when the inputs do not fit.
  virtual Specs infer(const Specs& inputs) const = 0;

  /// The gradients of the inputs from those of the outputs, as graph. An undefined entry of `gradients` means that nothing
  /// depends on that output; an undefined entry of the result, that no gradient flows into that input. The base throws
  /// Unsupported.
  virtual Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const;

  /// What the results of vjp() are gradients of, instead of the inputs; it may be graph that is never evaluated. Nothing: the
  /// inputs. An empty list: it is there to end gradients, and what lies behind counts as independent of its outputs.
  virtual std::optional<std::span<const Tensor>> differentiated() const { return std::nullopt; }

  /// How elementwise operations are computed. Empty text: it is none, and lower() is called instead.
  virtual Expression expr(const Specs& inputs) const;

  /// Which elements of an input an output is, if it is nothing else: as many from `offset` on as the output has, of the same
  /// dtype. Either all outputs are, or none. Such outputs are never computed: graph, fusion and recording take them for the
  /// input's memory, and lower() is not called.
  virtual std::optional<Alias> alias(const Specs& inputs, std::size_t output) const;

  virtual FusionHints fusion(const Specs& inputs) const;

  /// The base's solvers are not measured.
  virtual TuningHints tuning(const Specs& inputs) const;

  /// The lengths of sequences among its inputs' extents: another batch may have others.
  virtual std::vector<std::int64_t> lengths(const Specs&) const { return {}; }
  /// Graph over stand-ins of what the program would ask for in its place if sequences of length `from` had length `to`, where
  /// lower() does not foresee that itself (Recorder::foresee). Also asked of views, as others may not be.
  virtual Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to) const;

  /// Records the launches that compute the outputs.
  virtual void lower(exec::Recorder& recorder) const;

  /// How it may be computed together with others in the place of lower() for each; null: there is no such way.
  virtual const exec::Rewrite* rewrite() const { return nullptr; }
};

/// A node for the operation and its inputs: its outputs as tensors.
Tensors apply_all(std::shared_ptr<const Op> op, Tensors inputs);
/// The same for an operation with one output.
Tensor apply(std::shared_ptr<const Op> op, Tensors inputs);

}  // namespace clnet
