#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/random/random.h"

namespace clnet {

namespace {

/// Inputs: x, seed, offset, and the first element, where there is one. The mask is made again in backward from the same numbers
/// instead of being kept.
class Dropout : public Op {
 public:
  explicit Dropout(double p) : p_(p) {}
  std::string_view name() const override { return "dropout"; }
  Fields fields() const override { return {{"p", p_}}; }

  Specs infer(const Specs& inputs) const override {
    ops::require_floating(name(), inputs[0]);
    return {inputs[0]};
  }
  Expression expr(const Specs& inputs) const override {
    return {"clnet_uniform((ulong)b, (ulong)c, " + ops::random_index(inputs.size() > 3 ? "d" : "") + ") < p0 ? 0.0f : a * p1",
            {p_, 1 / (1 - p_)}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    auto again = inputs;
    again[0] = gradients[0];
    Tensors result(inputs.size());
    result[0] = clnet::apply(std::make_shared<Dropout>(p_), std::move(again));
    return result;
  }

 private:
  double p_;
};

}  // namespace

Tensor ops::dropout_by(const Tensor& x, double p, const RandomSource& source) {
  Tensors inputs{x};
  source.add_to(inputs);
  return clnet::apply(std::make_shared<Dropout>(p), std::move(inputs));
}

Tensor dropout(const Tensor& x, double p) {
  require_defined("dropout", {{"x", x}});
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("dropout: the probability must be in [0, 1], got {}", p));
  ops::require_floating("dropout", x.spec());
  if (p == 0) return x;
  if (p == 1) return zeros_like(x);
  return ops::dropout_by(x, p, ops::next_random_source(x.shape()));
}

}  // namespace clnet
