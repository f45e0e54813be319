// Matrix products of few rows on CPUs, as in linear layers at batch 1: reading b is all the work, so that packing it would double
// it.
#include <algorithm>

#include "lib/ops/matmul_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// From so many rows on each element of b is used often enough to be packed.
constexpr std::int64_t most_rows = 15;

}  // namespace

std::optional<std::string> matmul_skinny_cpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (auto reason = needs_vectors(p, device)) return reason;
  if (p.transpose_a && p.transpose_b && p.m > 1) return "a's rows do not lie along k, as b's do";
  return std::nullopt;
}

std::optional<std::string> matmul_skinny_cpu_declines(const MatmulProblem& p, const DeviceInfo&) {
  if (p.m > most_rows) return "so many rows are worth packing";
  return std::nullopt;
}

void matmul_skinny_cpu(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto width = vector_width(recorder.device());
  const auto unit = p.transpose_b ? 4 : 4 * width;
  const auto wanted = std::int64_t{4} * recorder.device().compute_units;
  const auto chunk = ceil_div(ceil_div(p.n, std::max<std::int64_t>(1, wanted / p.batch)), unit) * unit;
  auto& launch = recorder.kernel("matmul_skinny_cpu", "matmul_skinny_cpu");
  launch.define("VW", width).in("a", p.a).in("b", p.b).in("bias", p.bias.value_or(p.a)).out("c", p.c);
  if (p.transpose_b) launch.define("TRANSPOSED", 1);
  launch.arg(p.bias.has_value())
      .args({p.m, p.n, p.k})
      .args({p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1})
      .args({p.stride_a, p.stride_b, p.stride_c, chunk})
      .range({ceil_div(p.n, chunk), p.batch}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, p.n, 1);
}

}  // namespace clnet::ops
