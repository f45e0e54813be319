#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "lib/ops/loops.h"
#include "lib/ops/reduce/cumsum.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// Bytes of local memory that a group needs: a number more behind each 32, and two for each item.
std::int64_t local_bytes(std::int64_t items, std::int64_t each) { return 4 * items * (each * 33 / 32 + 3); }

constexpr std::int64_t least = 2;  // elements of an item

}  // namespace

std::optional<std::string> rejects_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device) {
  if (p.whole) return "its tiles are of floating numbers";
  const auto items = group_size(device);
  if (local_bytes(items, least) > static_cast<std::int64_t>(device.local_memory)) return "a tile does not fit into local memory";
  // All loops of a tile count, of which there are about ten for an element of an item.
  if (leaves_loops(10 * p.length / items, device)) return "its loops would be left early";
  return std::nullopt;
}

std::optional<std::string> declines_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device) {
  if (p.length < group_size(device) / 4) return "its lines are short";
  const std::int64_t many = 64 * static_cast<std::int64_t>(device.compute_units);
  if (p.inner > 1 && p.lines >= many) return "neighbours among its many lines lie side by side";
  return std::nullopt;
}

std::vector<exec::Config> configs_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> fitting, others;
  for (const auto each : std::initializer_list<std::int64_t>{8, 4, least}) {
    if (local_bytes(group_size(device), each) > static_cast<std::int64_t>(device.local_memory)) continue;
    (group_size(device) * each <= p.length ? fitting : others).push_back({{"each", each}});
  }
  // Where no tile is full, the smallest wastes least.
  std::reverse(others.begin(), others.end());
  fitting.insert(fitting.end(), others.begin(), others.end());
  return fitting;
}

void lower_cumsum_gpu(const CumsumProblem& p, exec::Recorder& recorder) {
  const auto items = group_size(recorder.device());
  recorder.kernel("cumsum_gpu", "cumsum_gpu")
      .define("GROUP", items)
      .define("EACH", recorder.config()["each"])
      .in("x", p.x)
      .out("y", p.y)
      .args({p.length, p.inner})
      .arg(p.backwards)
      .range({p.lines * items}, {items})
      .detail(fmt::format("{} x {}", p.lines, p.length));
}

}  // namespace clnet::ops
