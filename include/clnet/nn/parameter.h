// Tensors that change over time.
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

/// A tensor that changes over time: a handle to a slot that holds its present value. Copies share the slot, and several modules
/// may.
///
/// Each value that is set is a leaf of the graph of its own, even where the tensor is one that another parameter holds. A loss
/// that was built before knows the value that it was built with, and an optimizer applies its gradient to the present one; to
/// compare with an older value in one loss, detach() it.
class CLNET_API Parameter {
 public:
  explicit Parameter(const Tensor& value);
  // Copies only: what was moved from would be the handle of nothing.
  Parameter(const Parameter& other);
  Parameter& operator=(const Parameter& other) &;
  ~Parameter();
  /// The present value; it stays what it is when the parameter is set.
  Tensor value() const;
  operator Tensor() const { return value(); }  // NOLINT(google-explicit-constructor)
  /// Those of each value that it takes.
  Shape shape() const;
  Dtype dtype() const;
  /// Replaces the value. Throws ShapeError or DtypeError when the spec differs. What is not computed yet, as in
  /// p.set(0.99 * p + 0.01 * q), is computed once with whatever reads it first, and no gradient flows into it; until then, or
  /// until the next set(), the graph behind it is kept. assign() computes many at once.
  void set(const Tensor& value);
  /// When `value` is computed, for whatever reason, this parameter's present value becomes update(present, value) along with it,
  /// exactly once: a running statistic. At once when it is computed already; never when it is never computed. `update` builds
  /// graph of the same spec, and must neither evaluate nor keep tensors of `value`'s graph. It may be called more than once, and
  /// by several threads that evaluate one graph. Nothing changes when the evaluation fails. In a function that compile() runs,
  /// what is there already (its inputs, parameters, what was made outside of it) is followed in every call: value() gives the new
  /// value after the call.
  void follow(const Tensor& value, std::function<Tensor(const Tensor& now, const Tensor& value)> update);
  /// Whether optimizers leave it as it is, under all its names; gradients() gives its gradient as before.
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

/// Computes all values together, then sets them: all of them, or none where something throws.
CLNET_API void assign(std::span<const std::pair<Parameter, Tensor>> values);
CLNET_API void assign(std::initializer_list<std::pair<Parameter, Tensor>> values);

/// The gradients of a loss by parameters, in their order: gradients(loss, model.parameters()). As an optimizer, it takes them at
/// the values that the loss was built with, which may be older than the present ones. Zeros where the loss does not reach; Error
/// where it sees one parameter at two values.
CLNET_API std::vector<Tensor> gradients(const Tensor& loss, const NamedParameters& parameters);

}  // namespace clnet::nn
