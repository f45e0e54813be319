#include "lib/ops/attention/attention_solvers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/ops/rows.h"

namespace clnet::ops {

void AttentionProblem::add_to(exec::Launch& launch, const exec::Recorder& recorder) const {
  launch.args({queries, keys, width, value_width, heads, group})
      .arg(causal)
      .arg_float(scale)
      .define("MASK", !mask                                          ? 0
                      : recorder.spec(*mask).dtype == Dtype::boolean ? 1
                                                                     : 2)
      .define("START", !start        ? 0
                       : start_known ? 2
                                     : 1)
      .define("DROPOUT", dropout > 0 ? (first_weight ? 2 : 1) : 0)
      .detail(fmt::format("{} x {} to {}, {} wide{}", lines(), queries, keys, width, causal ? ", causal" : ""));
  if (mask) launch.in("mask", *mask).args({mask_batch, mask_head, mask_query, mask_key});
  if (start && start_known) launch.scalar("start", *start);
  if (start && !start_known) launch.in("start", *start);
  if (dropout > 0) {
    if (seed_known)
      launch.define("SEED_KNOWN", 1).scalar("seed", seed).scalar("place", place);
    else
      launch.in("seed", seed).in("place", place);
    if (first_weight && seed_known) launch.scalar("first_weight", *first_weight);
    if (first_weight && !seed_known) launch.in("first_weight", *first_weight);
    launch.arg_float(dropout);
  }
}

exec::Launch& attention_kernel(const char* program, std::string function, exec::Recorder& recorder) {
  auto& launch = recorder.kernel(program, function);
  for (auto& letter : function) letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  return launch.define(function, 1);
}

namespace {

std::int64_t direct_group(const exec::Recorder& recorder) { return std::min<std::int64_t>(64, group_size(recorder.device())); }

}  // namespace

void attention_direct(const AttentionProblem& p, exec::Recorder& recorder) {
  const auto rows = p.lines() * p.queries;
  const auto launch = [&](const char* function) -> exec::Launch& {
    return attention_kernel("attention_direct", function, recorder).in("q", p.q).in("k", p.k);
  };
  const auto finish = [&](exec::Launch& last, std::int64_t count) {
    p.add_to(last.arg(count), recorder);
    last.range({count}, {direct_group(recorder)});
  };
  const auto keys = p.key_lines() * p.keys;
  if (!p.backward) {
    finish(launch("attention_sums_direct").out("sums", p.sums), rows);
    if (p.value_width > 0)
      finish(launch("attention_values_direct").in("v", p.v).in("sums", p.sums).out("y", p.y), rows * p.value_width);
    return;
  }
  const auto with_gradient = [&](const char* function) -> exec::Launch& {
    return launch(function).in("v", p.v).in("g", p.g).in("sums", p.sums).in("delta", p.delta);
  };
  if (p.width > 0) {
    finish(with_gradient("attention_backward_queries_direct").out("dq", p.dq), rows * p.width);
    if (keys > 0) finish(with_gradient("attention_backward_keys_direct").out("dk", p.dk), keys * p.width);
  }
  if (p.value_width > 0 && keys > 0)
    finish(launch("attention_backward_values_direct").in("g", p.g).in("sums", p.sums).out("dv", p.dv), keys * p.value_width);
}

const exec::SolverList<AttentionProblem>& attention_solvers() {
  static const exec::SolverList<AttentionProblem> list{
      "attention",
      {{"few_queries_cpu", attention_few_queries_cpu_rejects, attention_few_queries_cpu, nullptr,
        attention_few_queries_cpu_configs},
       {"cpu", attention_cpu_rejects, attention_cpu, nullptr, attention_cpu_configs},
       {"gpu", attention_gpu_rejects, attention_gpu, nullptr, attention_gpu_configs},
       {"direct", exec::accepts_everything<AttentionProblem>, attention_direct}}};
  return list;
}

namespace {

/// Known before the first attention is computed, as other lists are.
[[maybe_unused]] const auto& registered = attention_solvers();

}  // namespace

}  // namespace clnet::ops
