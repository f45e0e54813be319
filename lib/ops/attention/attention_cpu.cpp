// The solvers for CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/ops/attention/attention_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t most_of_few = 4;

/// Rows of a block, of which 6 by two vectors of sums fit 16 registers, by columns of a tile, whose scores stay in the
/// first-level cache; the likely best first.
struct Block {
  std::int64_t rows, tile;
};
constexpr std::array<Block, 5> choices{{{6, 64}, {6, 128}, {4, 64}, {8, 64}, {6, 32}}};

/// What one launch after the other needs.
struct Cpu {
  const AttentionProblem& p;
  exec::Recorder& recorder;
  std::int64_t vw = recorder.config()["lanes"];

  std::int64_t vectors(std::int64_t width) const { return ceil_div(width, vw); }
  /// An even number, as two of them are taken at a time.
  std::int64_t panels(std::int64_t length) const { return 2 * ceil_div(length, 2 * vw); }

  exec::Launch& kernel(const char* function) {
    return attention_kernel("attention_cpu", function, recorder)
        .define("VW", vw)
        .define("WIDTH", vectors(p.width))
        .define("VALUES", vectors(p.value_width));
  }
  exec::Launch& tiled(const char* function) { return kernel(function).define("TILE", recorder.config()["tile"]); }
  exec::Launch& blocked(const char* function) { return tiled(function).define("ROWS", recorder.config()["rows"]); }
  /// Packing needs none of the other arguments, but the file does.
  exec::Launch& packing(const char* function) {
    return kernel(function).define("MASK", 0).define("START", 0).define("DROPOUT", 0);
  }

  /// x as rows of whole vectors.
  exec::Ref as_rows(exec::Ref x, std::int64_t rows, std::int64_t width) {
    if (width % vw == 0) return x;
    const auto stride = vectors(width) * vw;
    const auto packed = recorder.temporary({Shape{rows, stride}, Dtype::f32});
    const auto per_item = rows_per_item(rows, stride, 4096, recorder.device());
    packing("attention_pack_rows_cpu")
        .in("x", x)
        .out("packed", packed)
        .args({rows, width, stride, per_item})
        .range({ceil_div(rows, per_item)}, {1});
    return packed;
  }
  exec::Ref at_least_a_vector(exec::Ref x, std::int64_t rows, std::int64_t width) {
    return width >= vw ? x : as_rows(x, rows, width);
  }
  exec::Ref as_panels(exec::Ref x, std::int64_t lines, std::int64_t length, std::int64_t width) {
    const auto count = panels(length);
    const auto packed = recorder.temporary({Shape{lines, count, width, vw}, Dtype::f32});
    packing("attention_pack_panels_cpu")
        .in("x", x)
        .out("packed", packed)
        .args({length, width, count})
        .range({lines * count}, {1});
    return packed;
  }
  void finish(exec::Launch& launch, std::int64_t panels, std::int64_t lines, std::int64_t length) {
    const auto blocks = ceil_div(length, recorder.config()["rows"]);
    const auto per_item = std::clamp<std::int64_t>(blocks * lines / (std::int64_t{8} * recorder.device().compute_units), 1, 8);
    p.add_to(launch.args({panels, blocks, lines, per_item}), recorder);
    launch.range({ceil_div(blocks * lines, per_item)}, {1});
  }
};

}  // namespace

std::optional<std::string> attention_cpu_rejects(const AttentionProblem& p, const DeviceInfo& device) {
  if (auto reason = needs_vectors(p, device)) return reason;
  if (p.keys == 0 || p.width == 0 || p.value_width == 0) return "there is nothing to multiply";
  if (p.width > 512 || p.value_width > 512) return "rows of more than 512 elements do not stay in the cache";
  return std::nullopt;
}

std::optional<std::string> attention_few_queries_cpu_rejects(const AttentionProblem& p, const DeviceInfo& device) {
  if (auto reason = attention_cpu_rejects(p, device)) return reason;
  if (p.backward) return "it computes no gradients";
  if (p.queries > most_of_few) return fmt::format("it is for {} queries at most", most_of_few);
  return std::nullopt;
}

std::vector<exec::Config> attention_cpu_configs(const AttentionProblem&, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device))
    for (const auto& block : choices) result.push_back({{"lanes", lanes}, {"rows", block.rows}, {"tile", block.tile}});
  return result;
}

std::vector<exec::Config> attention_few_queries_cpu_configs(const AttentionProblem&, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device))
    for (const std::int64_t tile : {64, 128, 32}) result.push_back({{"lanes", lanes}, {"tile", tile}});
  return result;
}

void attention_few_queries_cpu(const AttentionProblem& p, exec::Recorder& recorder) {
  Cpu cpu{p, recorder};
  const auto rows = p.key_lines() * p.keys;
  const auto k = cpu.at_least_a_vector(p.k, rows, p.width), v = cpu.at_least_a_vector(p.v, rows, p.value_width);
  const auto per_item = std::clamp<std::int64_t>(p.lines() / (std::int64_t{8} * recorder.device().compute_units), 1, 8);
  auto& launch = cpu.tiled("attention_few_queries_cpu").define("ROWS", most_of_few);
  p.add_to(launch.in("q", p.q)
               .in("k", k)
               .in("v", v)
               .out("y", p.y)
               .out("sums", p.sums)
               .args({p.lines(), per_item})
               .args({std::max(p.width, cpu.vw), std::max(p.value_width, cpu.vw)}),
           recorder);
  launch.range({ceil_div(p.lines(), per_item)}, {1});
}

void attention_cpu(const AttentionProblem& p, exec::Recorder& recorder) {
  Cpu cpu{p, recorder};
  const auto k_panels = cpu.as_panels(p.k, p.key_lines(), p.keys, p.width);
  if (!p.backward) {
    const auto v = cpu.as_rows(p.v, p.key_lines() * p.keys, p.value_width);
    cpu.finish(cpu.blocked("attention_cpu").in("q", p.q).in("k_panels", k_panels).in("v", v).out("y", p.y).out("sums", p.sums),
               cpu.panels(p.keys), p.lines(), p.queries);
    return;
  }
  const auto v_panels = cpu.as_panels(p.v, p.key_lines(), p.keys, p.value_width);
  const auto k = cpu.as_rows(p.k, p.key_lines() * p.keys, p.width);
  cpu.finish(cpu.blocked("attention_backward_queries_cpu")
                 .in("q", p.q)
                 .in("k_panels", k_panels)
                 .in("v_panels", v_panels)
                 .in("k", k)
                 .in("g", p.g)
                 .in("sums", p.sums)
                 .in("delta", p.delta)
                 .out("dq", p.dq),
             cpu.panels(p.keys), p.lines(), p.queries);
  const auto q_panels = cpu.as_panels(p.q, p.lines(), p.queries, p.width);
  const auto g_panels = cpu.as_panels(p.g, p.lines(), p.queries, p.value_width);
  const auto q = cpu.as_rows(p.q, p.lines() * p.queries, p.width), g = cpu.as_rows(p.g, p.lines() * p.queries, p.value_width);
  cpu.finish(cpu.blocked("attention_backward_keys_cpu")
                 .in("k", p.k)
                 .in("v", p.v)
                 .in("q_panels", q_panels)
                 .in("g_panels", g_panels)
                 .in("q", q)
                 .in("g", g)
                 .in("sums", p.sums)
                 .in("delta", p.delta)
                 .out("dk", p.dk)
                 .out("dv", p.dv),
             cpu.panels(p.queries), p.key_lines(), p.keys);
}

}  // namespace clnet::ops
