// Adding at indices: the problem that its solvers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "clnet/shape.h"
#include "lib/exec/choose/config.h"
#include "lib/exec/record/recorder.h"
#include "lib/ops/lines.h"

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

}  // namespace clnet::ops
