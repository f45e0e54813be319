// The solver for GPUs.
#include <algorithm>
#include <array>
#include <utility>

#include "lib/cl/quirks.h"
#include "lib/exec/choose/device_class.h"
#include "lib/ops/attention/attention_solvers.h"
#include "lib/ops/gemm_gpu.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t most_width = 256;       // beyond, a group's own rows are far from fitting local memory
constexpr std::int64_t most_local = 32 << 10;  // bytes of a group, so that two fit a unit
// Elements of the other side's rows in a slice; fewer take more barriers and less local memory.
constexpr std::int64_t slice = 32, small_slice = 16;

/// What kernels/attention/attention_gpu.cl makes of a tile: m own rows by n of the other side.
struct Layout {
  GemmTile tile;
  std::int64_t width, values;
  bool backward;

  std::int64_t columns() const { return tile.n / tile.columns; }
  std::int64_t held(std::int64_t elements) const {
    const auto share = ceil_div(elements, columns());
    return share <= 2 ? share : ceil_div(share, 4) * 4;
  }
  static std::int64_t stride(std::int64_t length) { return length / 4 % 2 != 0 ? length : length + 4; }
  std::int64_t padded(std::int64_t elements) const { return ceil_div(elements, tile.k) * tile.k; }
  std::int64_t local_bytes() const {
    const auto own = stride(padded(width)) + (backward ? stride(padded(values)) : columns());
    return 4 * (tile.m * (own + stride(tile.n)) + std::max<std::int64_t>(tile.n * stride(tile.k), 2048));
  }
  /// Sums that an item holds at once.
  std::int64_t sums() const {
    const auto block = tile.rows * tile.columns;
    return backward ? 2 * block + tile.rows * (held(width) + held(values)) : block + tile.rows * held(values);
  }
  /// Multiply-adds for each pair of rows.
  double products() const {
    const auto sum_of = [&](std::int64_t scores, std::int64_t results) {
      return static_cast<double>(scores + columns() * results);
    };
    return backward ? sum_of(padded(width) + padded(values), held(width) + held(values)) : sum_of(padded(width), held(values));
  }
};

/// Whole vectors, and no more than rows have.
std::int64_t slice_of(const AttentionProblem& p) { return std::min(slice, ceil_div(std::max(p.width, p.value_width), 4) * 4); }

Layout layout_of(const AttentionProblem& p, const GemmTile& tile) { return {tile, p.width, p.value_width, p.backward}; }

/// Those with slices of k that items of 128 registers can hold.
std::vector<Layout> layouts_of(const AttentionProblem& p, std::int64_t k, const DeviceInfo& device) {
  static constexpr std::array<GemmTile, 5> tiles{
      {{64, 32, 0, 4, 4}, {32, 64, 0, 4, 4}, {16, 64, 0, 4, 4}, {16, 32, 0, 2, 2}, {4, 64, 0, 1, 4}}};
  std::vector<Layout> result;
  for (auto tile : tiles) {
    tile.k = k;
    const auto layout = layout_of(p, tile);
    // Items of small groups fetch more, which takes registers, too.
    const std::int64_t most_sums = tile.items() < 128 ? 40 : 48;
    if (layout.sums() <= most_sums && tile.items() <= static_cast<std::int64_t>(device.max_work_group_size) &&
        layout.local_bytes() <= std::min(most_local, static_cast<std::int64_t>(device.local_memory)))
      result.push_back(layout);
  }
  return result;
}

/// In multiply-adds of one unit that does nothing else, for `length` own rows in each of `lines` and `others` of the other side.
double cost(const Layout& layout, std::int64_t lines, std::int64_t length, std::int64_t others, const DeviceInfo& device) {
  const auto& tile = layout.tile;
  const auto rounds = ceil_div(lines * ceil_div(length, tile.m), exec::units_of(device));
  // Words of local memory for each multiply-add: few rows and columns wait for it.
  const double efficiency = static_cast<double>(tile.rows * tile.columns) / static_cast<double>(4 * (tile.rows + tile.columns));
  // Waves that a unit needs to hide what one waits for, as far as there are groups and local memory for them.
  constexpr std::int64_t wanted_waves = 8;
  const auto of_class = exec::device_class(device).local_memory, unit_local = of_class > 0 ? of_class : std::int64_t{64} << 10;
  const auto groups = std::min(rounds, std::max<std::int64_t>(1, unit_local / layout.local_bytes()));
  const double hidden =
      std::min(1.0, static_cast<double>(groups * ceil_div(tile.items(), 32)) / static_cast<double>(wanted_waves));
  const auto pairs = static_cast<double>(tile.m * ceil_div(others, tile.n) * tile.n);
  return static_cast<double>(rounds) * pairs * layout.products() / (efficiency * hidden);
}

double cost(const AttentionProblem& p, const Layout& layout, const DeviceInfo& device) {
  const auto by_queries = cost(layout, p.lines(), p.queries, p.keys, device);
  return p.backward ? by_queries + cost(layout, p.key_lines(), p.keys, p.queries * p.group, device) : by_queries;
}

}  // namespace

std::optional<std::string> attention_gpu_rejects(const AttentionProblem& p, const DeviceInfo& device) {
  if (p.keys == 0 || p.width == 0 || p.value_width == 0) return "there is nothing to multiply";
  if (p.width > most_width || p.value_width > most_width) return "rows of more than 256 elements do not fit local memory";
  if (layouts_of(p, slice_of(p), device).empty()) return "local memory or work-groups are too small";
  if (ocl::has_quirk(device, "attention-miscompiled")) return "the compiler makes wrong code of it, now and then";
  if (p.backward && p.dropout > 0 && ocl::has_quirk(device, "intel-dropout"))
    return "Intel's compiler for CPUs makes wrong gradients of it where weights are dropped";
  return std::nullopt;
}

std::vector<exec::Config> attention_gpu_configs(const AttentionProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto add = [&](std::int64_t k) {
    std::vector<std::pair<double, GemmTile>> found;
    for (const auto& layout : layouts_of(p, k, device)) found.emplace_back(cost(p, layout, device), layout.tile);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [cost, tile] : found)
      result.push_back({{"m", tile.m}, {"n", tile.n}, {"k", tile.k}, {"rows", tile.rows}, {"columns", tile.columns}});
  };
  const auto k = slice_of(p);
  add(k);
  if (k > small_slice) add(small_slice);
  return result;
}

void attention_gpu(const AttentionProblem& p, exec::Recorder& recorder) {
  const auto& config = recorder.config();
  const auto layout = layout_of(p, {config["m"], config["n"], config["k"], config["rows"], config["columns"]});
  const auto& tile = layout.tile;
  const auto kernel = [&](const char* function) -> exec::Launch& {
    auto& launch = attention_kernel("attention_gpu", function, recorder);
    tile.define(launch);
    return launch.define("WIDTH", p.width).define("VALUES", p.value_width).in("q", p.q).in("k", p.k).in("v", p.v);
  };
  // `products`: of all queries and keys, in multiply-adds for each pair of them.
  const auto finish = [&](exec::Launch& launch, std::int64_t lines, std::int64_t length, std::int64_t products) {
    const auto blocks = ceil_div(length, tile.m);
    p.add_to(launch.arg(blocks), recorder);
    const auto items = tile.items();
    launch.range({lines * blocks * items}, {items})
        .flops(2.0 * static_cast<double>(p.lines() * p.queries) * static_cast<double>(p.keys * products));
  };
  if (!p.backward) {
    finish(kernel("attention_gpu").out("y", p.y).out("sums", p.sums), p.lines(), p.queries, p.width + p.value_width);
    return;
  }
  const auto with_gradient = [&](const char* function) -> exec::Launch& {
    return kernel(function).in("g", p.g).in("sums", p.sums).in("delta", p.delta);
  };
  finish(with_gradient("attention_backward_queries_gpu").out("dq", p.dq), p.lines(), p.queries, 2 * p.width + p.value_width);
  finish(with_gradient("attention_backward_keys_gpu").out("dk", p.dk).out("dv", p.dv), p.key_lines(), p.keys,
         2 * (p.width + p.value_width));
}

}  // namespace clnet::ops
