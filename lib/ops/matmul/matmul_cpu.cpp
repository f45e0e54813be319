// Matrix products on CPUs: independent tiles of the result, sized by the cost of packing and multiplying.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// The sums of a register tile: as many as the registers hold beside the vectors of b and one of a. 6x2 leaves one of AVX2's 16
/// registers free, 14x2 one of AVX-512's 32 and a vector of b. Packing handles up to one vector of rows.
struct RegisterTile {
  std::int64_t rows, vectors;
};
RegisterTile register_tile(std::int64_t width) {
  if (width == 16) return {14, 2};
  if (width == 8) return {6, 2};
  return {4, 3};
}

/// The same for m rows: lower where much of the last panel would be empty otherwise, as with a batch of 16 or 32. Of more than 6
/// rows kernels/rows.clh has the even numbers only.
RegisterTile register_tile(std::int64_t width, std::int64_t m) {
  auto tile = register_tile(width);
  const auto panels = std::max<std::int64_t>(1, ceil_div(m, tile.rows)), step = std::int64_t{tile.rows > 6 ? 2 : 1};
  if (8 * panels * tile.rows > 9 * m) tile.rows = std::max<std::int64_t>(1, ceil_div(ceil_div(m, panels), step)) * step;
  return tile;
}

/// Blocks of k: a panel of b stays in the first-level cache while the panels of a pass by; and other sizes to try.
constexpr std::int64_t block = 256, small_block = 128, large_block = 512;

/// The limit of k in one part, as the blocks of a part are added in one float.
constexpr std::int64_t longest_part = 1024 * block;

struct Tiling {
  std::int64_t m, n, parts;
  bool operator==(const Tiling&) const = default;
};

/// Tiles of at most `most` that cut the extent evenly, in whole panels.
std::int64_t even(std::int64_t extent, std::int64_t most, std::int64_t panel) {
  return ceil_div(ceil_div(extent, ceil_div(extent, most)), panel) * panel;
}

/// Rows of a tile packed at once, in panels of `rows`: few enough for the second-level cache while panels of b come by.
std::int64_t pass_rows(std::int64_t tile_m, std::int64_t rows) { return even(tile_m, 40 * rows, rows); }

/// Floats of local memory: panels of both inputs, and the overhang of a last whole vector.
std::int64_t local_floats(std::int64_t tile_m, std::int64_t tile_n, std::int64_t rows, std::int64_t depth, std::int64_t width) {
  return (pass_rows(tile_m, rows) + tile_n) * depth + width;
}

/// The `count` fastest by a model in cycles per core, from measurements on Zen 3. A core makes two multiply-adds of vectors per
/// cycle. Packing takes 5.6 cycles per vector. Loading and storing the result, once per block, takes two per vector. Starting a
/// work-item takes 2000. A second launch to add parts of k takes 40000 and a pass over them.
std::vector<Tiling> best_tilings(const MatmulProblem& p, const DeviceInfo& device, std::int64_t width, std::size_t count) {
  const auto [rows, vectors] = register_tile(width, p.m);
  const auto columns = width * vectors, units = std::max<std::int64_t>(device.compute_units, 1);
  const auto room = static_cast<std::int64_t>(device.local_memory / sizeof(float));
  const auto depth = std::min(block, std::max<std::int64_t>(p.k, 1));
  const auto fewest = std::max<std::int64_t>(1, ceil_div(p.k, longest_part)), most = std::max(4 * units, fewest);
  std::vector<std::pair<double, Tiling>> best;  // in order of cost
  const auto consider = [&](double cost, const Tiling& tiling) {
    const auto at = std::find_if(best.begin(), best.end(), [&](const auto& other) { return cost < other.first; });
    if (at == best.end() && best.size() == count) return;
    if (std::any_of(best.begin(), best.end(), [&](const auto& other) { return other.second == tiling; })) return;
    best.insert(at, {cost, tiling});
    if (best.size() > count) best.pop_back();
  };
  for (std::int64_t parts = fewest; parts <= most && (parts == fewest || p.k / parts >= 64); parts *= 2) {
    const auto part = static_cast<double>(ceil_div(std::max<std::int64_t>(p.k, 1), parts));
    for (const std::int64_t m_panels : {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 56, 80, 112, 160}) {
      const auto m = even(p.m, m_panels * rows, rows);
      for (const std::int64_t n_panels : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48}) {
        const auto n = even(p.n, n_panels * columns, columns);
        if (local_floats(m, n, rows, depth, width) > room) continue;
        const auto tiles = ceil_div(p.m, m) * ceil_div(p.n, n) * p.batch * parts;
        const auto area = static_cast<double>(m * n), lanes = static_cast<double>(width);
        const double per_tile = part * (area / (2 * lanes) + 5.6 * static_cast<double>(m + n) / lanes) +
                                2 * area / lanes * std::max(1.0, part / block) + 2000;
        double cost = static_cast<double>(ceil_div(tiles, units)) * per_tile;
        if (parts > 1)
          cost += 40000 + static_cast<double>(p.batch * p.m * p.n * (parts + 1)) / lanes * 2 / static_cast<double>(units);
        consider(cost, {m, n, parts});
      }
    }
  }
  std::vector<Tiling> result;
  for (const auto& [cost, tiling] : best) result.push_back(tiling);
  if (result.empty()) result.push_back({rows, columns, fewest});
  return result;
}

}  // namespace

std::optional<std::string> matmul_cpu_rejects(const MatmulProblem& problem, const DeviceInfo& device) {
  if (auto reason = needs_vectors(problem, device)) return reason;
  const auto width = vector_width(device);
  const auto [rows, vectors] = register_tile(width);
  if (local_floats(rows, width * vectors, rows, block, width) * 4 > static_cast<std::int64_t>(device.local_memory))
    return "the device's local memory does not hold two panels";
  return std::nullopt;
}

std::vector<exec::Config> matmul_cpu_configs(const MatmulProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto own = vector_width(device);
  for (const auto width : vector_widths(device)) {
    const auto [rows, vectors] = register_tile(width, p.m);
    const auto add = [&, rows = rows, vectors = vectors](const Tiling& tiling, std::int64_t k) {
      result.push_back({{"lanes", width},
                        {"rows", rows},
                        {"vectors", vectors},
                        {"m", tiling.m},
                        {"n", tiling.n},
                        {"k", k},
                        {"parts", tiling.parts}});
    };
    const auto tilings = best_tilings(p, device, width, width == own ? 3 : 1);
    for (const auto& tiling : tilings) add(tiling, block);
    if (width != own) continue;
    const auto part = ceil_div(p.k, tilings[0].parts);
    if (part > small_block) add(tilings[0], small_block);
    if (part > block && local_floats(tilings[0].m, tilings[0].n, rows, std::min(large_block, part), width) * 4 <=
                            static_cast<std::int64_t>(device.local_memory))
      add(tilings[0], large_block);
  }
  return result;
}

void matmul_cpu(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto& config = recorder.config();
  const auto width = config["lanes"], rows = config["rows"], vectors = config["vectors"];
  const Tiling tiling{config["m"], config["n"], config["parts"]};
  const auto part = ceil_div(std::max<std::int64_t>(p.k, 1), tiling.parts),
             parts = ceil_div(std::max<std::int64_t>(p.k, 1), part);
  const auto depth = std::min(config["k"], part), elements = p.batch * p.m * p.n;
  // Sums are kept in f32 between blocks; parts of k are added in order, so that the result is the same at every run.
  const bool second = parts > 1 || p.dtype != Dtype::f32;
  const auto target = second ? recorder.temporary({{parts, elements}, Dtype::f32}) : p.c;
  const auto bias = p.bias.value_or(p.a);
  auto& product = recorder.kernel("matmul_cpu", "matmul_cpu");
  product.define("VW", width)
      .define("ROWS", register_tile(width).rows)
      .define("VECTORS", vectors)
      .in("a", p.a)
      .in("b", p.b)
      .in("bias", bias)
      .out("c", target)
      .touches(second ? parts * elements : p.reach())
      .arg(p.bias && !second)
      .args({p.m, p.n, p.k})
      .args({p.transpose_a, p.transpose_b})
      .args({p.stride_a, p.stride_b, second ? p.m * p.n : p.stride_c})
      .args({tiling.m, tiling.n, depth, part, parts, elements, rows, pass_rows(tiling.m, rows)})
      .local_memory(static_cast<std::size_t>(local_floats(tiling.m, tiling.n, rows, depth, width)) * sizeof(float))
      .range({ceil_div(p.n, tiling.n), ceil_div(p.m, tiling.m), p.batch * parts}, {1, 1, 1})
      .flops(p.flops())
      .detail(fmt::format("{} in {}x{}x{}", p.text(), tiling.m, tiling.n, part));
  if (!second) return recorder.epilogue(product, p.n, 1);
  const auto chunk = rows_per_item(p.batch * p.m, p.n * (parts + 1), 16384, recorder.device());
  auto& sum = recorder.kernel("matmul_sum_cpu", "matmul_sum_cpu");
  sum.define("VW", width)
      .in("x", target)
      .in("bias", bias)
      .out("c", p.c)
      .touches(p.reach())
      .arg(p.bias.has_value())
      .args({p.batch * p.m, p.m, p.n, p.stride_c, parts, elements, chunk})
      .range({ceil_div(p.batch * p.m, chunk)}, {1});
  recorder.epilogue(sum, p.n, 1);
}

}  // namespace clnet::ops
