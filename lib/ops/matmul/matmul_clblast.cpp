// Matrix products by CLBlast. f16 and bf16 are converted to f32 before and back after, where that is worth it.
#include <algorithm>

#include "lib/ops/matmul/clblast.h"
#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet::ops {

namespace {

/// The reason why CLBlast takes no product here.
std::optional<std::string> refuses(const MatmulProblem& problem, const DeviceInfo& device) {
  if (clblast_version().empty()) return "clnet was built without CLBlast";
  if (!device.runs_clblast) return "CLBlast's kernels harm this device (clnet-info lists its quirks)";
  if (problem.k == 0) return "CLBlast does not take empty sums (k = 0)";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> matmul_clblast_rejects(const MatmulProblem& problem, const DeviceInfo& device) {
  if (auto reason = refuses(problem, device)) return reason;
  if (problem.dtype == Dtype::bf16) return "CLBlast has no bf16";
  if (problem.dtype == Dtype::f16) return "CLBlast adds the products of f16 in f16, not in f32";
  return std::nullopt;
}

void matmul_clblast(const MatmulProblem& problem, exec::Recorder& recorder) {
  std::vector<exec::Ref> reads{problem.a, problem.b};
  if (problem.bias) {
    const auto rows = problem.batch * problem.m;
    recorder.kernel("matmul_bias", "matmul_bias")
        .in("bias", *problem.bias)
        .out("c", problem.c)
        .touches(problem.reach())
        .args({rows, problem.m, problem.n, problem.stride_c})
        .range({problem.n, rows});
    reads.push_back(problem.c);
  }
  recorder.host({"clblast_gemm",
                 std::move(reads),
                 {problem.c},
                 [problem](exec::HostContext& context) { clblast_gemm(problem, context); },
                 problem.flops()});
  recorder.decline_epilogue();
}

std::optional<std::string> matmul_clblast_f32_rejects(const MatmulProblem& problem, const DeviceInfo& device) {
  if (auto reason = refuses(problem, device)) return reason;
  if (problem.dtype == Dtype::f32) return "the operands are f32 already";
  return std::nullopt;
}

std::optional<std::string> matmul_clblast_f32_declines(const MatmulProblem& problem, const DeviceInfo&) {
  // An element that is converted is read and written once more: so many products each make that little.
  constexpr std::int64_t few = 32;
  if (std::min({problem.m, problem.n, problem.k}) < few) return "so few products of each element are not worth converting it";
  return std::nullopt;
}

void matmul_clblast_f32(const MatmulProblem& problem, exec::Recorder& recorder) {
  // Matrices one after the other, each once where it is shared.
  const auto whole = [&](std::int64_t stride, std::int64_t size) {
    return std::vector<StridedCopy::Dim>{{stride == 0 ? 1 : problem.batch, stride, size}, {size, 1, 1}};
  };
  const auto temporary = [&](std::int64_t count, std::int64_t size) {
    return recorder.temporary({Shape{count, size}, Dtype::f32});
  };
  auto wide = problem;
  wide.dtype = Dtype::f32;
  const auto convert = [&](exec::Ref from, std::int64_t& stride, std::int64_t size) {
    const auto to = temporary(stride == 0 ? 1 : problem.batch, size);
    strided_copy({from, to, whole(stride, size)}, recorder);
    if (stride != 0) stride = size;
    return to;
  };
  wide.a = convert(problem.a, wide.stride_a, problem.m * problem.k);
  wide.b = convert(problem.b, wide.stride_b, problem.k * problem.n);
  const auto size = problem.m * problem.n;
  wide.c = temporary(problem.batch, size);
  wide.stride_c = size;
  matmul_clblast(wide, recorder);
  strided_copy({wide.c, problem.c, {{problem.batch, size, problem.stride_c}, {size, 1, 1}}}, recorder);
}

}  // namespace clnet::ops
