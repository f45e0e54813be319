#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

/// For each of `values` {rows, count}, how many of its row of `bounds` {rows, n}, which ascend, are not above it; n - 1 at most.
class PlaceAmong : public Op {
 public:
  std::string_view name() const override { return "place_among"; }
  Specs infer(const Specs& inputs) const override { return {{inputs[1].shape, Dtype::i64}}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(2); }
  void lower(exec::Recorder& recorder) const override {
    const auto& bounds = recorder.spec(recorder.input(0)).shape;
    const auto& values = recorder.spec(recorder.input(1)).shape;
    recorder.kernel("place_among", "place_among")
        .in("bounds", recorder.input(0))
        .in("values", recorder.input(1))
        .out("y", recorder.output())
        .args({values.numel(), values[1], bounds[1]})
        .range({values.numel()}, {64})
        .detail(fmt::format("{} among {}", to_string(values), bounds[1]));
  }
};

}  // namespace

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement) {
  require_defined("multinomial", {{"weights", weights}});
  ops::require_floating("multinomial", weights.spec());
  if (weights.rank() < 1 || weights.rank() > 2 || weights.size(-1) == 0)
    throw ShapeError(fmt::format("multinomial: weights {} are neither {{n}} nor {{rows, n}}", to_string(weights.spec())));
  const auto n = weights.size(-1);
  if (count < 0 || (!replacement && count > n))
    throw ShapeError(fmt::format("multinomial: {} draws from {} numbers{}", count, n, replacement ? "" : " without replacement"));
  constexpr std::int64_t most = 1 << 24;  // of rand()'s numbers there are no more
  if (n > most) throw Unsupported(fmt::format("multinomial: one of {} numbers; draws know {} apart", n, most));
  const auto rows = weights.rank() == 2 ? weights.size(0) : 1;
  const Tensor wide = reshape(ops::as_f32(stop_gradient(weights)), Shape{rows, n});
  Tensor drawn;
  if (replacement) {
    // A uniform place among the running sums; a weight of 0 takes none.
    const Tensor bounds = cumsum(wide, 1);
    drawn = apply(std::make_shared<PlaceAmong>(), {bounds, rand({rows, count}, wide.dtype()) * slice(bounds, 1, n - 1)});
  } else {
    // Whoever waits shortest: times are exponentially distributed, with the weights as rates.
    const Tensor times = -log(clamp(rand({rows, n}, wide.dtype()), 0x1p-25, 1 - 0x1p-24));
    drawn = topk(wide / times, count, 1).indices;
  }
  return weights.rank() == 2 ? drawn : reshape(drawn, Shape{count});
}

}  // namespace clnet
