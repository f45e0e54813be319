// The solvers of a matrix product: their problem, and their list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::ops {

/// `batch` products c = op(a) op(b) (+ bias), where op(a) is {m, k} and op(b) {k, n}, each row-major without gaps, and transposed
/// in memory where the flags are set. m, n and batch are at least 1, k may be 0. All refs have the same dtype.
struct MatmulProblem {
  exec::Ref a, b, c;
  std::optional<exec::Ref> bias;  ///< {n}, added to every row
  Dtype dtype = Dtype::f32;
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  ///< elements from one product's matrix to the next; 0: shared
  exec::EqualReaders readers = {};                        ///< of b

  std::int64_t lda() const { return transpose_a ? m : k; }
  std::int64_t ldb() const { return transpose_b ? k : n; }
  /// The number of elements of c from the first to the last.
  std::int64_t reach() const { return (batch - 1) * stride_c + m * n; }
  double flops() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(n) * static_cast<double>(k); }
  /// "128x10x784 at*b".
  std::string text() const;
};

const exec::SolverList<MatmulProblem>& matmul_solvers();

/// Packed panels, register tiles of explicit vectors: see kernels/matmul/matmul_cpu.cl.
std::optional<std::string> matmul_cpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> matmul_cpu_configs(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_cpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// b packed once for many products: see kernels/matmul/matmul_packed_cpu.cl.
std::optional<std::string> matmul_packed_cpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::optional<std::string> matmul_packed_cpu_declines(const MatmulProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> matmul_packed_cpu_configs(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_packed_cpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// k of 1: see kernels/matmul/matmul_outer_cpu.cl.
std::optional<std::string> matmul_outer_cpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::optional<std::string> matmul_outer_cpu_declines(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_outer_cpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// Nothing packed, for few rows or columns: see kernels/matmul/matmul_skinny_cpu.cl.
std::optional<std::string> matmul_skinny_cpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::optional<std::string> matmul_skinny_cpu_declines(const MatmulProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> matmul_skinny_cpu_configs(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_skinny_cpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// Tiles in local memory, for GPUs: see kernels/gemm_gpu.clh.
std::optional<std::string> matmul_gpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> matmul_gpu_configs(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_gpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// The same with matrix units: see kernels/matrix_units.clh.
std::optional<std::string> matmul_matrix_units_gpu_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::optional<std::string> matmul_matrix_units_gpu_declines(const MatmulProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> matmul_matrix_units_gpu_configs(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_matrix_units_gpu(const MatmulProblem& problem, exec::Recorder& recorder);
/// The CLBlast library.
std::optional<std::string> matmul_clblast_rejects(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_clblast(const MatmulProblem& problem, exec::Recorder& recorder);
/// The same for f16 and bf16, in f32.
std::optional<std::string> matmul_clblast_f32_rejects(const MatmulProblem& problem, const DeviceInfo& device);
std::optional<std::string> matmul_clblast_f32_declines(const MatmulProblem& problem, const DeviceInfo& device);
void matmul_clblast_f32(const MatmulProblem& problem, exec::Recorder& recorder);
/// The reference solver: one work-item per element of the result.
void matmul_direct(const MatmulProblem& problem, exec::Recorder& recorder);

}  // namespace clnet::ops
