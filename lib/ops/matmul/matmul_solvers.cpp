#include "lib/ops/matmul/matmul_solvers.h"

#include <fmt/format.h>

#include "lib/ops/loops.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

std::string MatmulProblem::text() const {
  return fmt::format("{}{}x{}x{} a{}b{}", batch == 1 ? "" : fmt::format("{}*", batch), m, n, k, transpose_a ? "'" : "",
                     transpose_b ? "'" : "");
}

void matmul_direct(const MatmulProblem& problem, exec::Recorder& recorder) {
  require_loops("matmul", problem.k, recorder.device());
  auto& launch = recorder.kernel("matmul_direct", "matmul_direct").in("a", problem.a).in("b", problem.b);
  if (problem.bias) launch.define("BIAS", 1).in("bias", *problem.bias);
  launch.out("c", problem.c)
      .touches(problem.reach())
      .args({problem.m, problem.n, problem.k})
      .args({problem.transpose_a ? 1 : problem.lda(), problem.transpose_a ? problem.lda() : 1})
      .args({problem.transpose_b ? 1 : problem.ldb(), problem.transpose_b ? problem.ldb() : 1})
      .args({problem.stride_a, problem.stride_b, problem.stride_c})
      .range({problem.m * problem.n, problem.batch}, {64, 1})
      .flops(problem.flops())
      .detail(problem.text());
  recorder.epilogue(launch, problem.n, 1);
}

const exec::SolverList<MatmulProblem>& matmul_solvers() {
  static const exec::SolverList<MatmulProblem> list(
      "matmul",
      {{"outer_cpu", matmul_outer_cpu_rejects, matmul_outer_cpu, matmul_outer_cpu_declines, lane_configs<MatmulProblem>},
       {"packed_cpu", matmul_packed_cpu_rejects, matmul_packed_cpu, matmul_packed_cpu_declines, matmul_packed_cpu_configs},
       {"skinny_cpu", matmul_skinny_cpu_rejects, matmul_skinny_cpu, matmul_skinny_cpu_declines, matmul_skinny_cpu_configs},
       {"cpu", matmul_cpu_rejects, matmul_cpu, nullptr, matmul_cpu_configs},
       {"matrix_units_gpu", matmul_matrix_units_gpu_rejects, matmul_matrix_units_gpu, matmul_matrix_units_gpu_declines,
        matmul_matrix_units_gpu_configs, exec::MadeFor::gpus},
       {"gpu", matmul_gpu_rejects, matmul_gpu, nullptr, matmul_gpu_configs, exec::MadeFor::gpus},
       {"clblast", matmul_clblast_rejects, matmul_clblast},
       {"clblast_f32", matmul_clblast_f32_rejects, matmul_clblast_f32, matmul_clblast_f32_declines},
       {"direct", exec::accepts_everything<MatmulProblem>, matmul_direct}});
  return list;
}

namespace {
// Registers the list of solvers before the first product is recorded.
[[maybe_unused]] const auto& registered = matmul_solvers();
}  // namespace

}  // namespace clnet::ops
