// Adding at indices, or reducing: the problem that the solvers share, and sorting indices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "clnet/shape.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"
#include "lib/ops/lines.h"
#include "lib/ops/reduce/reduce.h"

namespace clnet::ops {

/// x is {outer, extent, inner} and `picks` elements are taken along the middle: the same ones for all (index_select), or ones of
/// their own for each place (gather, where indices are {outer, picks, inner}).
struct Picking {
  std::int64_t outer = 1, extent = 1, picks = 1, inner = 1;
  bool gather = false;

  Picking(const Shape& x, int dim, const Shape& indices, bool per_place) : gather(per_place) {
    const Lines lines(x, dim);
    outer = lines.outer, extent = lines.extent, inner = lines.inner;
    picks = per_place ? indices[dim] : indices.numel();
  }
};

struct IndexAddProblem {
  exec::Ref g, indices, y;
  Picking picking;
  Dtype dtype = Dtype::f32;
  /// scatter_reduce's, which are no sums: x, of y's shape, is there where no elements come, and with `own` it counts everywhere.
  ReduceKind kind = ReduceKind::sum;
  exec::Ref x{};
  bool own = true;
};

/// What is summed in memory: f32, integers in their own.
inline Dtype sum_dtype(const IndexAddProblem& problem) {
  return problem.dtype == Dtype::f16 || problem.dtype == Dtype::bf16 ? Dtype::f32 : problem.dtype;
}

/// Blocks of rows, for each of which the solver "blocks" reads all indices.
inline std::int64_t index_add_blocks(const IndexAddProblem& problem, const DeviceInfo& device) {
  return std::max<std::int64_t>(1, (device.prefers_vector_kernels ? 4 : 16) * device.compute_units / problem.picking.outer);
}

/// The indices sorted, so that each row finds its own: see kernels/index/index_add_sorted.cl.
std::optional<std::string> index_add_sorted_rejects(const IndexAddProblem& problem, const DeviceInfo& device);
std::optional<std::string> index_add_sorted_declines(const IndexAddProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> index_add_sorted_configs(const IndexAddProblem& problem, const DeviceInfo& device);
void index_add_sorted(const IndexAddProblem& problem, exec::Recorder& recorder);

/// Of each line of indices: the rows that its picks go to, in order; which picks they are, those of the same row as they come;
/// and where each row's begin.
struct SortedIndices {
  exec::Ref rows, order, starts;
};
/// By the recorder's configuration, one of sorting_configs().
SortedIndices sort_indices(exec::Ref indices, const Picking& picking, exec::Recorder& recorder);
std::vector<exec::Config> sorting_configs(const Picking& picking, const DeviceInfo& device);
/// Why a work-item for each line of gathered indices, which takes them one after the other, is likely to be faster.
std::optional<std::string> sorting_declines(const Picking& picking, const DeviceInfo& device);

}  // namespace clnet::ops
