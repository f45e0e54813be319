// Calls of CLBlast. opencl.h sets the version of the headers that CLBlast includes: it must be first.
// clang-format off
#include "lib/ops/matmul/clblast.h"

#include "lib/cl/opencl.h"
#if CLNET_HAS_CLBLAST
#include <clblast.h>
#endif
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "lib/cl/context.h"
#include "lib/cl/driver_lifetime.h"

namespace clnet::ops {

#if CLNET_HAS_CLBLAST

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

}  // namespace

std::string clblast_version() {
  return fmt::format("{}.{}.{}", CLBLAST_VERSION_MAJOR, CLBLAST_VERSION_MINOR, CLBLAST_VERSION_PATCH);
}

void clblast_gemm(const MatmulProblem& problem, exec::HostContext& context) {
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

#else

std::string clblast_version() { return {}; }

void clblast_gemm(const MatmulProblem& problem, exec::HostContext&) {
  throw DeviceError(fmt::format("matmul {}: this clnet was built without CLBlast", problem.text()));
}

#endif

}  // namespace clnet::ops
