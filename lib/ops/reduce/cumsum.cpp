#include "lib/ops/reduce/cumsum.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/lines.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

/// A line per work-item.
void lower_direct(const CumsumProblem& p, exec::Recorder& recorder) {
  // No more steps at once than llvmpipe's loops reach.
  constexpr std::int64_t most = 50000;
  const bool parts = p.length > most;
  const auto state =
      parts ? recorder.temporary({Shape{p.lines, 2}, p.whole ? Dtype::i64 : computed_in(recorder.spec(p.x).dtype)}) : p.y;
  for (std::int64_t begin = 0; begin < p.length; begin += most) {
    auto& launch = recorder.kernel("cumsum_direct", "cumsum_direct").in("x", p.x);
    if (p.whole) launch.define("WHOLE", 1);
    const auto written = [&](const char* name, exec::Ref to) { begin == 0 ? launch.out(name, to) : launch.inout(name, to); };
    written("y", p.y);
    if (parts) {
      launch.define("PARTS", 1);
      written("state", state);
    }
    launch.args({p.lines, p.length, p.inner}).arg(p.backwards).args({begin, std::min(begin + most, p.length)});
    launch.range({p.lines}, {64}).detail(fmt::format("{} x {}", p.lines, p.length));
  }
}

std::optional<std::string> rejects_vectors(const CumsumProblem& p, const DeviceInfo& device) {
  if (auto refusal = needs_vectors(p, device)) return refusal;
  if (p.whole) return "it is of integers";
  if (p.inner != 1) return "lines do not lie in one piece";
  return std::nullopt;
}

void lower_vectors(const CumsumProblem& p, exec::Recorder& recorder) {
  constexpr std::int64_t item_elements = 16384;
  const auto per_item = rows_per_item(p.lines, p.length, item_elements, recorder.device());
  auto& launch = recorder.kernel("cumsum_vectors_cpu", "cumsum_vectors_cpu").in("x", p.x).out("y", p.y);
  launch.define("VW", recorder.config()["lanes"]);
  if (p.backwards) launch.define("BACKWARDS", 1);
  launch.args({p.lines, p.length, per_item}).range({ceil_div(p.lines, per_item)}, {1});
  launch.detail(fmt::format("{} x {}", p.lines, p.length));
}

const exec::SolverList<CumsumProblem> cumsum_solvers{
    "cumsum",
    {{"vectors_cpu", rejects_vectors, lower_vectors, nullptr, lane_configs<CumsumProblem>},
     {"gpu", rejects_cumsum_gpu, lower_cumsum_gpu, declines_cumsum_gpu, configs_cumsum_gpu, exec::MadeFor::gpus},
     {"direct", exec::accepts_everything<CumsumProblem>, lower_direct}}};

class Cumsum : public Op {
 public:
  Cumsum(int dim, bool backwards) : dim_(dim), backwards_(backwards) {}
  std::string_view name() const override { return "cumsum"; }
  TuningHints tuning(const Specs&) const override { return {.last = true}; }
  Precision precision() const override { return Precision::full; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"backwards", backwards_}}; }

  Specs infer(const Specs& inputs) const override {
    if (inputs[0].dtype != Dtype::i64) require_floating(name(), inputs[0]);
    require_line(name(), inputs[0].shape, dim_);
    return {inputs[0]};
  }

  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    return {apply(std::make_shared<Cumsum>(dim_, !backwards_), {gradients[0]})};
  }

  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    if (shape.numel() == 0) return;
    const Lines lines(shape, require_line(name(), shape, dim_));
    CumsumProblem p{recorder.input(0), recorder.output(), lines.count(), lines.extent, lines.inner, backwards_};
    p.whole = recorder.spec(recorder.output()).dtype == Dtype::i64;
    cumsum_solvers.lower(p, recorder.device(), recorder);
  }

 private:
  int dim_;
  bool backwards_;
};

}  // namespace

}  // namespace ops

Tensor cumsum(const Tensor& x, int dim) {
  require_defined("cumsum", {{"x", x}});
  return apply(std::make_shared<ops::Cumsum>(dim, false), {is_floating(x.dtype()) ? x : cast(x, Dtype::i64)});
}

}  // namespace clnet
