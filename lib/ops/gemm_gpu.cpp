#include "lib/ops/gemm_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/exec/choose/device_class.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// Of all parts together.
constexpr std::int64_t most_elements = 16 << 20;
constexpr std::int64_t most_parts = 256;

/// In the order of DeviceClass::tiles.
constexpr std::array<GemmTile, exec::gemm_tiles> tiles{
    {{128, 128, 8, 8, 8}, {64, 128, 8, 8, 4}, {64, 64, 16, 4, 4}, {32, 32, 16, 2, 2}, {16, 16, 8, 2, 2}}};

bool takes(const DeviceInfo& device, const GemmTile& tile) {
  return tile.items() <= static_cast<std::int64_t>(device.max_work_group_size) &&
         tile.local_bytes() <= static_cast<std::int64_t>(device.local_memory);
}

/// In multiply-adds of one unit that does nothing else.
double cost(const GemmExtents& e, const RatedTile& known, std::int64_t parts, double per_element, const DeviceInfo& device) {
  const auto& tile = known.tile;
  const auto tiles_of_all = static_cast<double>(ceil_div(e.m, tile.m) * ceil_div(e.n, tile.n) * e.batch * parts);
  const auto groups = static_cast<std::int64_t>(std::ceil(tiles_of_all * e.filled));
  const auto depth = ceil_div(std::max<std::int64_t>(e.k, 1), parts) + 2 * tile.k;
  const double per_group = static_cast<double>(tile.m * tile.n) * static_cast<double>(depth) / known.efficiency;
  double result = rounds_of_groups(groups, known.held, e.filled == 1, device) * per_group;
  if (parts > 1)
    result += cost_of_moving(static_cast<double>(e.batch * e.m * e.n) * (static_cast<double>(parts) * e.filled + 1), per_element,
                             device);
  return result;
}

struct TileSplit {
  double cost;
  GemmTile tile;
  std::int64_t parts;
};

/// Each tile with its best split; the best of these first.
std::vector<TileSplit> tile_splits(const GemmExtents& extents, std::span<const RatedTile> rated, double per_element,
                                   const DeviceInfo& device) {
  std::vector<TileSplit> result;
  for (const auto& known : rated) {
    const auto most = most_gemm_parts(extents.m * extents.n * extents.batch);
    auto parts = std::max<std::int64_t>(1, ceil_div(extents.k, longest_gemm_sum));
    if (parts > most) parts = 1;
    for (auto more = parts + 1; more <= std::min(most, most_parts) && more * 4 * known.tile.k <= extents.k; ++more)
      if (cost(extents, known, more, per_element, device) < cost(extents, known, parts, per_element, device)) parts = more;
    result.push_back({cost(extents, known, parts, per_element, device), known.tile, parts});
  }
  std::stable_sort(result.begin(), result.end(), [](const TileSplit& a, const TileSplit& b) { return a.cost < b.cost; });
  return result;
}

/// As the device's class has them.
std::vector<RatedTile> tiles_for(const DeviceInfo& device) {
  const auto& kind = exec::device_class(device);
  std::vector<RatedTile> result;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const auto& tile = tiles[i];
    if (!takes(device, tile)) continue;
    const double per_word = static_cast<double>(tile.rows * tile.columns) / static_cast<double>(tile.rows + tile.columns);
    // Only the largest takes so many registers that few groups fit.
    const auto held = i == 0 ? kind.groups_of_unit(tile.items(), kind.largest_tile, tile.local_bytes()) : 2;
    result.push_back({tile, kind.rate(kind.tiles[i], per_word), held});
  }
  return result;
}

/// Multiply-adds of a unit while memory moves an element: 64 to 95 by the data sheets of an H100, a 7900 XTX, a 3090.
constexpr double per_element_of_f32 = 64;

}  // namespace

GemmTile GemmTile::of(const exec::Config& config) {
  return {config["m"], config["n"], config["k"], config["rows"], config["columns"]};
}

exec::Config GemmTile::config(std::int64_t parts) const {
  return {{"m", m}, {"n", n}, {"k", k}, {"rows", rows}, {"columns", columns}, {"parts", parts}};
}

void GemmTile::define(exec::Launch& launch) const {
  launch.define("TM", m).define("TN", n).define("TK", k).define("RM", rows).define("RN", columns);
}

GemmCut::GemmCut(std::int64_t k, std::int64_t wanted, std::int64_t unit) {
  k = std::max<std::int64_t>(k, 1);
  const auto cut = [unit](std::int64_t length, std::int64_t by) { return ceil_div(ceil_div(length, by), unit) * unit; };
  part = cut(k, wanted);
  parts = ceil_div(k, part);
  rounds = parts == 1 ? ceil_div(part, longest_gemm_sum) : 1;
  if (rounds > 1) part = cut(part, rounds);
}

bool has_gemm_tile(const DeviceInfo& device) {
  return std::any_of(tiles.begin(), tiles.end(), [&](const GemmTile& tile) { return takes(device, tile); });
}

double rounds_of_groups(std::int64_t groups, std::int64_t held, bool alike, const DeviceInfo& device) {
  // Two groups share a unit at a time. One alone on its unit, as the last of an odd number is, or where no other fits, waits for
  // memory a third of the time. Of groups of different lengths the last ones are short.
  const auto most = ceil_div(groups, exec::units_of(device));
  if (held < 2) return 1.5 * static_cast<double>(most);
  return static_cast<double>(most) + (most % 2 == 1 && alike ? 0.5 : 0.0);
}

double cost_of_moving(double elements, double per_element, const DeviceInfo& device) {
  constexpr double launch = 6e5;  // some 3 us of a unit
  return per_element * elements / static_cast<double>(exec::units_of(device)) + launch;
}

std::int64_t most_gemm_parts(std::int64_t elements) {
  return std::max<std::int64_t>(1, most_elements / std::max<std::int64_t>(1, elements));
}

std::vector<exec::Config> gemm_configs(const GemmExtents& extents, std::span<const RatedTile> rated, double per_element,
                                       const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto& split : tile_splits(extents, rated, per_element, device)) result.push_back(split.tile.config(split.parts));
  return result;
}

std::vector<exec::Config> gemm_configs(const GemmExtents& extents, const DeviceInfo& device) {
  return gemm_configs(extents, tiles_for(device), per_element_of_f32, device);
}

double gemm_cost(const GemmExtents& extents, const DeviceInfo& device) {
  return tile_splits(extents, tiles_for(device), per_element_of_f32, device).front().cost;
}

}  // namespace clnet::ops
