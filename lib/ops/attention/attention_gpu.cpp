// The solver for GPUs.
#include <algorithm>

#include "lib/cl/quirks.h"
#include "lib/ops/attention/attention_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t most_width = 256;  // beyond, rows are far from fitting registers

std::int64_t group_of(const DeviceInfo& device) { return std::min<std::int64_t>(64, group_size(device)); }

/// Rows of both sides in local memory, and two numbers with each; half of it, so that two groups fit.
std::int64_t tile_of(const AttentionProblem& p, const DeviceInfo& device) {
  const auto bytes = static_cast<std::int64_t>(device.local_memory) / 2;
  return std::min<std::int64_t>(32, bytes / (4 * (p.width + p.value_width + 2)));
}

}  // namespace

std::optional<std::string> attention_gpu_rejects(const AttentionProblem& p, const DeviceInfo& device) {
  if (p.keys == 0 || p.width == 0 || p.value_width == 0) return "there is nothing to multiply";
  if (p.width > most_width || p.value_width > most_width) return "rows of more than 256 elements do not fit registers";
  if (tile_of(p, device) < 1) return "local memory is too small";
  if (p.backward && p.dropout > 0 && ocl::has_quirk(device, "intel-dropout"))
    return "Intel's compiler for CPUs makes wrong gradients of it where weights are dropped";
  return std::nullopt;
}

void attention_gpu(const AttentionProblem& p, exec::Recorder& recorder) {
  const auto group = group_of(recorder.device());
  const auto kernel = [&](const char* function) -> exec::Launch& {
    return attention_kernel("attention_gpu", function, recorder)
        .define("GROUP", group)
        .define("TILE", tile_of(p, recorder.device()))
        .define("WIDTH", p.width)
        .define("VALUES", p.value_width)
        .in("q", p.q)
        .in("k", p.k)
        .in("v", p.v);
  };
  // `products`: of all queries and keys, in multiply-adds for each pair of them.
  const auto finish = [&](exec::Launch& launch, std::int64_t lines, std::int64_t length, std::int64_t products) {
    const auto blocks = ceil_div(length, group);
    p.add_to(launch.arg(blocks), recorder);
    launch.range({lines * blocks * group}, {group})
        .flops(2.0 * static_cast<double>(p.lines() * p.queries) * static_cast<double>(p.keys * products));
  };
  if (!p.backward) {
    finish(kernel("attention_gpu").out("y", p.y).out("sums", p.sums), p.lines(), p.queries, p.width + p.value_width);
    return;
  }
  const auto with_gradient = [&](const char* function) -> exec::Launch& {
    return kernel(function).in("g", p.g).in("sums", p.sums).in("delta", p.delta);
  };
  finish(with_gradient("attention_queries_backward_gpu").out("dq", p.dq), p.lines(), p.queries, 2 * p.width + p.value_width);
  finish(with_gradient("attention_keys_backward_gpu").out("dk", p.dk).out("dv", p.dv), p.key_lines(), p.keys,
         2 * (p.width + p.value_width));
}

}  // namespace clnet::ops
