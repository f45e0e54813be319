// Matrix products by CLBlast. f16 and bf16 are converted to f32 before and back after, where that is worth
// it. opencl.h sets the version of the headers that CLBlast includes: it must be first.
// clang-format off
#include "lib/cl/opencl.h"
#include <clblast.h>
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "lib/cl/context.h"
#include "lib/cl/lifetime.h"
#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet::ops {

namespace {

/// CLBlast's own codes; the others are OpenCL's.
std::string status_name(clblast::StatusCode status) {
  using enum clblast::StatusCode;
  switch (status) {
    case kNotImplemented: return "kNotImplemented";
    case kInvalidMatrixA: return "kInvalidMatrixA";
    case kInvalidMatrixB: return "kInvalidMatrixB";
    case kInvalidMatrixC: return "kInvalidMatrixC";
    case kInvalidDimension: return "kInvalidDimension";
    case kInvalidLeadDimA: return "kInvalidLeadDimA";
    case kInvalidLeadDimB: return "kInvalidLeadDimB";
    case kInvalidLeadDimC: return "kInvalidLeadDimC";
    case kInsufficientMemoryA: return "kInsufficientMemoryA";
    case kInsufficientMemoryB: return "kInsufficientMemoryB";
    case kInsufficientMemoryC: return "kInsufficientMemoryC";
    case kInsufficientMemoryTemp: return "kInsufficientMemoryTemp";
    case kInvalidBatchCount: return "kInvalidBatchCount";
    case kInvalidLocalMemUsage: return "kInvalidLocalMemUsage";
    case kNoHalfPrecision: return "kNoHalfPrecision";
    case kDatabaseError: return "kDatabaseError";
    case kUnknownError: return "kUnknownError";
    case kUnexpectedError: return "kUnexpectedError";
    default: return ocl::error_name(static_cast<cl_int>(status));
  }
}

/// CLBlast keeps programs in static objects that outlive the OpenCL driver: free them while it is still there.
void clear_cache_at_exit() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] {
      if (!ocl::in_forked_child()) clblast::ClearCache();
    });
  });
}

/// CLBlast sums all of k in one float: long sums are products of blocks of k, added up in c.
constexpr std::int64_t clblast_block = 2048;

void multiply(const MatmulProblem& problem, exec::HostContext& context) {
  clear_cache_at_exit();
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const auto transpose = [](bool yes) { return yes ? clblast::Transpose::kYes : clblast::Transpose::kNo; };
  const auto memory = [&](exec::Ref ref) { return context.buffer(ref)(); };
  const auto guard = context.device().lock();
  auto queue = context.device().queue()();
  const auto layout = clblast::Layout::kRowMajor;
  const auto a = transpose(problem.transpose_a), b = transpose(problem.transpose_b);
  const auto m = size(problem.m), n = size(problem.n), lda = size(problem.lda()), ldb = size(problem.ldb());
  for (std::int64_t first = 0; first < problem.k; first += clblast_block) {
    const auto k = size(std::min(clblast_block, problem.k - first));
    const auto from_a = context.offset(problem.a) + size(problem.transpose_a ? first * problem.m : first);
    const auto from_b = context.offset(problem.b) + size(problem.transpose_b ? first : first * problem.n);
    const float beta = problem.bias || first > 0 ? 1.0F : 0.0F;
    // The batch is a dimension of CLBlast's launches.
    const auto together =
        static_cast<std::int64_t>(std::min<std::size_t>(context.device().info().max_groups_across, size(problem.batch)));
    for (std::int64_t at = 0; at < problem.batch; at += together) {
      const auto a_at = from_a + size(at * problem.stride_a), b_at = from_b + size(at * problem.stride_b);
      const auto c_at = context.offset(problem.c) + size(at * problem.stride_c);
      const auto status = problem.batch == 1
                              ? clblast::Gemm<float>(layout, a, b, m, n, k, 1.0F, memory(problem.a), a_at, lda, memory(problem.b),
                                                     b_at, ldb, beta, memory(problem.c), c_at, n, &queue)
                              : clblast::GemmStridedBatched<float>(
                                    layout, a, b, m, n, k, 1.0F, memory(problem.a), a_at, lda, size(problem.stride_a),
                                    memory(problem.b), b_at, ldb, size(problem.stride_b), beta, memory(problem.c), c_at, n,
                                    size(problem.stride_c), size(std::min(together, problem.batch - at)), &queue);
      if (status != clblast::StatusCode::kSuccess)
        throw DeviceError(
            fmt::format("matmul {} by CLBlast on {}: {}", problem.text(), context.device().info().name, status_name(status)));
    }
  }
}

}  // namespace

std::optional<std::string> matmul_clblast_rejects(const MatmulProblem& problem, const DeviceInfo& device) {
  if (!device.runs_clblast) return "CLBlast's kernels harm this device (clnet-info lists its quirks)";
  if (problem.k == 0) return "CLBlast does not take empty sums (k = 0)";
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
        .part(problem.reach())
        .args({rows, problem.m, problem.n, problem.stride_c})
        .range({problem.n, rows});
    reads.push_back(problem.c);
  }
  recorder.host({"clblast_gemm",
                 std::move(reads),
                 {problem.c},
                 [problem](exec::HostContext& context) { multiply(problem, context); },
                 problem.flops()});
  recorder.decline_epilogue();
}

std::optional<std::string> matmul_clblast_f32_rejects(const MatmulProblem& problem, const DeviceInfo& device) {
  if (!device.runs_clblast) return "CLBlast's kernels harm this device (clnet-info lists its quirks)";
  if (problem.k == 0) return "CLBlast does not take empty sums (k = 0)";
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
