// The ways to compute attention: what they are given, and their list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::ops {

/// q {batch, heads, queries, width}, k {batch, heads / group, keys, width}, v {.., keys, value_width}. All extents but keys,
/// width and value_width are at least 1.
struct AttentionProblem {
  bool backward = false;
  exec::Ref q = {}, k = {}, v = {};
  std::optional<exec::Ref> mask = {};  ///< {batch or 1, heads or 1, queries or 1, keys or 1}, bool or floating
  std::int64_t mask_batch = 0, mask_head = 0, mask_query = 0, mask_key = 0;  ///< elements from one to the next
  exec::Ref sums = {};                                                       ///< {batch, heads, queries}
  exec::Ref y = {};                                                          // forward
  exec::Ref g = {}, delta = {}, dq = {}, dk = {}, dv = {};                   // backward
  std::optional<exec::Ref> start = {};                                       ///< causal: where among the keys query 0 is
  bool start_known = false;
  exec::Ref seed = {}, place = {};             ///< where weights are dropped
  std::optional<exec::Ref> first_weight = {};  ///< the number of the first weight, where it is not 0
  bool seed_known = false;                     ///< and first_weight
  std::int64_t batch = 1, heads = 1, group = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  bool causal = false;
  double scale = 1, dropout = 0;

  std::int64_t lines() const { return batch * heads; }
  std::int64_t key_lines() const { return batch * heads / group; }
  /// The kernel's arguments behind its buffers and own numbers, and what it is defined by.
  void add_to(exec::Launch& launch, const exec::Recorder& recorder) const;
};

const exec::SolverList<AttentionProblem>& attention_solvers();
/// A kernel of one of the programs, which is compiled without the others.
exec::Launch& attention_kernel(const char* program, std::string function, exec::Recorder& recorder);

/// Register tiles of explicit vectors: see kernels/attention/attention_cpu.cl.
std::optional<std::string> attention_cpu_rejects(const AttentionProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> attention_cpu_configs(const AttentionProblem& problem, const DeviceInfo& device);
void attention_cpu(const AttentionProblem& problem, exec::Recorder& recorder);
/// The same of a few queries, as of a step with a cache: keys as they lie in memory, and none where the mask hides all that
/// follow.
std::optional<std::string> attention_few_queries_cpu_rejects(const AttentionProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> attention_few_queries_cpu_configs(const AttentionProblem& problem, const DeviceInfo& device);
void attention_few_queries_cpu(const AttentionProblem& problem, exec::Recorder& recorder);
/// A block of rows per work-group, the other side in blocks through local memory: see kernels/attention/attention_gpu.cl.
std::optional<std::string> attention_gpu_rejects(const AttentionProblem& problem, const DeviceInfo& device);
std::vector<exec::Config> attention_gpu_configs(const AttentionProblem& problem, const DeviceInfo& device);
void attention_gpu(const AttentionProblem& problem, exec::Recorder& recorder);
/// The reference solver.
void attention_direct(const AttentionProblem& problem, exec::Recorder& recorder);

}  // namespace clnet::ops
