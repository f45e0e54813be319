// Tiles of products on GPUs, for kernels that include kernels/gemm_gpu.clh.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"

namespace clnet::ops {

/// A work-group's part of the result, m x n in slices of k, and an item's part of that, rows x columns in registers.
struct GemmTile {
  std::int64_t m, n, k, rows, columns;

  static GemmTile of(const exec::Config& config);
  exec::Config config(std::int64_t parts) const;
  std::int64_t items() const { return m / rows * (n / columns); }
  /// Bytes of local memory.
  std::int64_t local_bytes() const { return 2 * k * (m + n + 8) * 4; }
  void define(exec::Launch& launch) const;
};

/// `batch` products {m, k} by {k, n}, of which `filled` is there: some may be shorter than k, or empty.
struct GemmExtents {
  std::int64_t m, n, k, batch;
  double filled = 1;
};

/// Products that one float adds up at most, as in CLBlast.
constexpr std::int64_t longest_gemm_sum = 2048;

/// How k is cut: into parts beside one another, or into rounds one after the other where their results would take too much
/// memory.
struct GemmCut {
  std::int64_t part, parts, rounds;

  /// `wanted`: a configuration's "parts"; `unit`: every part is a multiple of it.
  GemmCut(std::int64_t k, std::int64_t wanted, std::int64_t unit = 1);
  bool whole() const { return parts == 1 && rounds == 1; }
};

/// A tile with its `efficiency`, the share of the device's peak of multiply-adds that it reaches where there are groups enough:
/// the share of multiply-adds in the compiled loop (bench/notebook/2026-11-gpu-kernels.md), or less by local memory. A unit holds
/// `held` groups at once.
struct RatedTile {
  GemmTile tile;
  double efficiency;
  std::int64_t held = 2;
};

/// Rounds of work-groups on the device's units, of which each holds so many, by which the models count; `alike`: all take as
/// long.
double rounds_of_groups(std::int64_t groups, std::int64_t held, bool alike, const DeviceInfo& device);
/// A launch that moves so many elements, such as one that adds up parts, in multiply-adds of one unit. `per_element`: those that
/// a unit could do while it moves an element.
double cost_of_moving(double elements, double per_element, const DeviceInfo& device);
/// How many parts a result of so many elements may have: 64 MiB of them.
std::int64_t most_gemm_parts(std::int64_t elements);

/// These tiles with splits of k ("parts"), the likely fastest first. `per_element`: as above.
std::vector<exec::Config> gemm_configs(const GemmExtents& extents, std::span<const RatedTile> tiles, double per_element,
                                       const DeviceInfo& device);

/// Whether the device takes one of the tiles of kernels/gemm_gpu.clh.
bool has_gemm_tile(const DeviceInfo& device);
/// The same of those tiles. There is one.
std::vector<exec::Config> gemm_configs(const GemmExtents& extents, const DeviceInfo& device);
/// The cost of the first of them by the model, in multiply-adds of one unit.
double gemm_cost(const GemmExtents& extents, const DeviceInfo& device);

}  // namespace clnet::ops
