// Products of one column by one row on CPUs: the gradient of a linear layer's weight where the batch is one sample.
#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

std::optional<std::string> matmul_outer_cpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (p.k != 1) return "its sums are of more than one product";
  return needs_vectors(p, device);
}

std::optional<std::string> matmul_outer_cpu_declines(const MatmulProblem& p, const DeviceInfo& device) {
  if (p.n < vector_width(device)) return "its rows are shorter than a vector";
  return std::nullopt;
}

void matmul_outer_cpu(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto tall = rows_per_item(p.m, p.n, std::int64_t{1} << 18, recorder.device());
  auto& launch = recorder.kernel("matmul_outer_cpu", "matmul_outer_cpu")
                     .define("VW", recorder.config()["lanes"])
                     .in("a", p.a)
                     .in("b", p.b)
                     .in("bias", p.bias.value_or(p.a))
                     .out("c", p.c)
                     .touches(p.reach())
                     .arg(p.bias.has_value())
                     .args({p.m, p.n, p.stride_a, p.stride_b, p.stride_c, tall})
                     .range({ceil_div(p.m, tall), p.batch}, {1, 1})
                     .flops(p.flops())
                     .detail(p.text());
  recorder.epilogue(launch, p.n, 1);
}

}  // namespace clnet::ops
