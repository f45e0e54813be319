// Matrix products of few rows or few columns on CPUs, as in linear layers at batch 1: reading the large matrix is all the work,
// so that packing it would double it.
#include <algorithm>
#include <utility>

#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/rows.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet::ops {

namespace {

/// With so many rows (or columns) at most, no element of the other matrix is used often enough to be packed.
constexpr std::int64_t most = 15;

/// The columns are few and the rows are not: the product is made of the transposed ones, in which they are rows.
bool is_swapped(const MatmulProblem& p) { return p.m > most && p.n <= most; }

/// c' = b' a' without its bias and its place.
MatmulProblem swapped(const MatmulProblem& p) {
  auto result = p;
  std::swap(result.a, result.b);
  std::swap(result.m, result.n);
  std::swap(result.stride_a, result.stride_b);
  result.transpose_a = !p.transpose_b;
  result.transpose_b = !p.transpose_a;
  return result;
}

}  // namespace

std::optional<std::string> matmul_skinny_cpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  return needs_vectors(p, device);
}

std::optional<std::string> matmul_skinny_cpu_declines(const MatmulProblem& p, const DeviceInfo&) {
  // Measured: swapped it is 1.1 to 2.4 times as fast from some 2^18 elements on, and slower on small ones.
  constexpr std::int64_t few_columns = 8, large = 1 << 18;
  if (p.m <= most || (p.n <= few_columns && p.m * p.k >= large)) return std::nullopt;
  return "so many rows and columns are worth packing";
}

void matmul_skinny_cpu(const MatmulProblem& problem, exec::Recorder& recorder) {
  auto p = is_swapped(problem) ? swapped(problem) : problem;
  if (p.transpose_a && p.transpose_b && p.m > 1) {
    // Vectors run along k in both: the few rows are turned.
    const auto batch = p.stride_a == 0 ? 1 : p.batch;
    const auto turned = recorder.temporary({Shape{batch, p.m, p.k}, p.dtype});
    strided_copy({p.a, turned, {{batch, p.stride_a, p.m * p.k}, {p.m, 1, p.k}, {p.k, p.m, 1}}}, recorder);
    p.a = turned;
    p.stride_a = batch == 1 ? 0 : p.m * p.k;
    p.transpose_a = false;
  }
  const auto width = vector_width(recorder.device());
  const auto unit = p.transpose_b ? 4 : 4 * width;
  const auto wanted = std::int64_t{4} * recorder.device().compute_units;
  const auto chunk = ceil_div(ceil_div(p.n, std::max<std::int64_t>(1, wanted / p.batch)), unit) * unit;
  auto& launch = recorder.kernel("matmul_skinny_cpu", "matmul_skinny_cpu");
  launch.define("VW", width).in("a", p.a).in("b", p.b).in("bias", p.bias.value_or(p.a)).out("c", p.c).part(problem.reach());
  if (p.transpose_b) launch.define("TRANSPOSED", 1);
  if (is_swapped(problem)) launch.define("SWAPPED", 1);
  launch.arg(p.bias.has_value())
      .args({p.m, p.n, p.k})
      .args({p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1})
      .args({p.stride_a, p.stride_b, p.stride_c, chunk})
      .range({ceil_div(p.n, chunk), p.batch}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, problem.n, 1);
}

}  // namespace clnet::ops
