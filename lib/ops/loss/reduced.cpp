#include "lib/ops/loss/reduced.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet::ops {

void require_same(std::string_view op, const Tensor& input, const Tensor& target) {
  require_floating(op, input.spec());
  require_same_dtype(op, input.spec(), target.spec());
  if (input.shape() != target.shape())
    throw ShapeError(
        fmt::format("{}: input {} and target {} differ in shape", op, to_string(input.spec()), to_string(target.spec())));
}

Shape require_broadcast(std::string_view op, const Tensor& input, const Tensor& target) {
  require_floating(op, input.spec());
  require_same_dtype(op, input.spec(), target.spec());
  return broadcast(input.shape(), target.shape(), op);
}

Tensor reduced(const Tensor& losses, Reduction reduction, Dtype dtype) {
  switch (reduction) {
    case Reduction::none: return rounded(losses, dtype);
    case Reduction::sum: return rounded(sum(losses), dtype);
    default: return rounded(mean(losses), dtype);
  }
}

Tensor weighted(std::string_view op, const Tensor& losses, const Tensor& weight, Dtype dtype, std::string_view argument) {
  if (!weight.defined()) return losses;
  const Spec input{losses.shape(), dtype};
  if (broadcast(losses.shape(), weight.shape(), op) != losses.shape())
    throw ShapeError(fmt::format("{}: {} {} does not broadcast to {}", op, argument, to_string(weight.spec()), to_string(input)));
  require_same_dtype(fmt::format("{}'s {}", op, argument), input, weight.spec());
  return losses * as_f32(weight);
}

}  // namespace clnet::ops
