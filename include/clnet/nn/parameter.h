// Parameters: tensors that change over time.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {
struct Slot;
}

namespace clnet::nn {

/// A tensor that changes over time: a handle to a slot with its present value. Copies, and several modules, may share the slot.
///
/// Each set value is a new leaf of the graph, even where another parameter holds the same tensor. A loss refers to the values
/// that it was built with; an optimizer applies its gradient to the present ones. To use an older value beside the present one in
/// one loss, detach() it.
class CLNET_API Parameter {
 public:
  explicit Parameter(const Tensor& value);
  // Copies only: a moved-from handle would refer to no slot.
  Parameter(const Parameter& other);
  Parameter& operator=(const Parameter& other) &;
  ~Parameter();
  /// The present value. A later set() does not change the returned tensor.
  Tensor value() const;
  operator Tensor() const { return value(); }  // NOLINT(google-explicit-constructor)
  /// Shape and dtype of all its values.
  Shape shape() const;
  Dtype dtype() const;
  /// Replaces the value. Throws ShapeError or DtypeError where the spec differs, Error for an undefined tensor and under
  /// compile(). An unevaluated value, as in p.set(0.99 * p + 0.01 * q), is computed once, with the first evaluation that reads
  /// it. No gradient flows into it, and its graph is kept until then or until the next set(). assign() computes several values at
  /// once.
  void set(const Tensor& value);
  /// Makes this parameter a running statistic of `value`: when any evaluation computes `value`, the parameter becomes
  /// update(present, value), exactly once. An evaluated `value` updates it at once; one that is never computed, never. A failed
  /// evaluation changes nothing. Where an evaluation succeeds, but memory ends before its updates, they wait with a warning: for
  /// the next evaluation, or for value(). set() drops them.
  ///
  /// `update` builds graph of the same spec. It must not evaluate, set parameters, or keep tensors of `value`'s graph. It may be
  /// called more than once, and by several threads that evaluate one graph. Under compile() existing tensors (inputs, parameters,
  /// tensors from outside) are followed in every call: value() has the new value after the call. Error where the function under
  /// compile() evaluates `value` itself, within another update and within on_compile()'s function. Call it before another thread
  /// evaluates `value`.
  void follow(const Tensor& value, std::function<Tensor(const Tensor& now, const Tensor& value)> update);
  /// Freezes the parameter, under all its names: optimizers leave it unchanged. gradients() returns its gradient as before.
  void freeze(bool on = true);
  void freeze(const char*) = delete;
  bool frozen() const;
  /// Whether both are handles of one slot.
  bool same(const Parameter& other) const { return slot_ == other.slot_; }

 private:
  friend struct clnet::detail::access;

  std::shared_ptr<Slot> slot_;
};
using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

/// Computes all values together, then sets them; an exception leaves all parameters unchanged. Throws Error for a parameter that
/// is given twice, ShapeError and DtypeError as set().
CLNET_API void assign(std::span<const std::pair<Parameter, Tensor>> values);
CLNET_API void assign(std::initializer_list<std::pair<Parameter, Tensor>> values);

/// The gradients of a loss with respect to parameters, in their order: gradients(loss, model.parameters()). As in an optimizer,
/// they are taken at the values that the loss was built with, which may be older than the present ones. A parameter that the loss
/// does not reach gets zeros. Throws Error where the loss contains one parameter at two values.
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, const NamedParameters& parameters);

}  // namespace clnet::nn
