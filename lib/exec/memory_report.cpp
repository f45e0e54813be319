// memory_report(): what a plan's values take, by the scopes of the program, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "clnet/debug.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/cl/context.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/collect/effects.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/lower/rewrite.h"
#include "lib/exec/partitions.h"
#include "lib/exec/place/placement.h"

namespace clnet {

namespace exec {

namespace {

struct Row {
  std::size_t bytes = 0, values = 0, largest = 0;
  Spec spec;  ///< of the largest
};

void add(Row& row, std::size_t bytes, const Spec& spec) {
  row.bytes += bytes;
  ++row.values;
  if (bytes < row.largest) return;
  row.largest = bytes;
  row.spec = spec;
}

/// A root value in the arena: its bytes, and the first and last command that use its memory.
struct Use {
  ValueId value;
  std::size_t bytes, first, last;
};

std::vector<Use> uses(const Recording& recording, const Placement& placement) {
  constexpr auto never = std::numeric_limits<std::size_t>::max();
  std::vector<Use> all(recording.value_count());
  for (std::size_t id = 0; id < all.size(); ++id) {
    const auto value = static_cast<ValueId>(id);
    all[id] = {value, stored_bytes(recording.value(value).spec), never, 0};
  }
  for (std::size_t i = 0; i < recording.commands().size(); ++i)
    for_each_ref(recording.commands()[i], [&](Ref ref, bool) {
      auto& use = all[static_cast<std::size_t>(recording.value(ref.value).root)];
      use.first = std::min(use.first, i);
      use.last = i;
    });
  // What was given an input's memory takes none of its own while that is in use.
  for (const auto& grant : placement.grants) {
    auto& use = all[static_cast<std::size_t>(grant.to)];
    use.first = std::max(use.first, grant.command + 1);
  }
  std::erase_if(all, [&](const Use& use) {
    return use.first == never || placement.homes[static_cast<std::size_t>(use.value)] != Home::arena;
  });
  return all;
}

std::string report(const Recording& recording, const Placement& placement, std::size_t leaf_bytes, std::size_t result_bytes) {
  const auto all = uses(recording, placement);
  std::vector<std::size_t> alive(recording.commands().size() + 2, 0), ending = alive;
  for (const auto& use : all) {
    if (use.first > use.last) continue;
    alive[use.first] += use.bytes;
    ending[use.last + 1] += use.bytes;
  }
  for (std::size_t i = 1; i < alive.size(); ++i) alive[i] += alive[i - 1] - ending[i];
  const auto peak = static_cast<std::size_t>(std::max_element(alive.begin(), alive.end()) - alive.begin());

  std::map<std::string, Row> rows;
  for (const auto& use : all) {
    const auto& info = recording.value(use.value);
    if (use.first <= peak && peak <= use.last) add(rows[to_string(info.scope)], use.bytes, info.spec);
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });

  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  auto text = fmt::format("{:>10.2f} MiB  leaves: parameters, inputs, states\n{:>10.2f} MiB  results\n", mib(leaf_bytes),
                          mib(result_bytes));
  text += fmt::format("{:>10.2f} MiB  intermediates, which share memory; {:.2f} at once at most, of them in\n",
                      mib(placement.layout.bytes()), mib(alive[peak]));
  for (const auto& [scope, row] : sorted)
    text +=
        fmt::format("{:>10.2f} MiB    {:<40} {:>4} {}, the largest {}\n", mib(row.bytes), scope.empty() ? "(no scope)" : scope,
                    row.values, row.values == 1 ? "value" : "values", to_string(row.spec));
  return text;
}

std::string report(const Work& work, const DeviceInfo& device) {
  const auto& options = Options::now();
  const auto graph = rewritten(Subgraph(work), options);
  const auto lowered = lower(graph, device, {.options = options});
  const auto placement = place(lowered.recording, lowered.results, PlacementOptions::of(device, options));
  const auto bytes = [](const std::vector<Tensor>& tensors) {
    std::size_t sum = 0;
    for (const auto& tensor : tensors) sum += static_cast<std::size_t>(tensor.spec().bytes());
    return sum;
  };
  return report(lowered.recording, placement, bytes(graph.leaves()), bytes(graph.wanted()));
}

/// That of the first value that is on one, or the current one: nothing is computed, and a function that is compiled may ask.
std::shared_ptr<ocl::Context> device_with_values(std::span<const std::shared_ptr<Value>> values) {
  for (const auto& value : values)
    if (const auto* placed = dynamic_cast<const DeviceValue*>(value.get())) return placed->device;
  return context_of(Device::current());
}

}  // namespace

}  // namespace exec

std::string memory_report(std::span<const Tensor> results) {
  for (const auto& tensor : results)
    if (!tensor.defined()) throw Error("memory_report: a result is undefined");
  exec::forget_elsewhere(results);
  exec::Effects effects(results);
  const auto work = effects.collect();
  if (!exec::Partitions::are_needed(work, work.values, nullptr))
    return exec::report(work, exec::device_with_values(work.values)->info());
  const exec::Partitions partitions(work, work.values, nullptr, {});
  std::string text;
  for (const auto* partition : partitions.list())
    text +=
        fmt::format("{}:\n{}", exec::label(partition->device->info()), exec::report(partition->work, partition->device->info()));
  return text;
}

std::string memory_report(std::initializer_list<Tensor> results) {
  return memory_report(std::span(results.begin(), results.size()));
}

}  // namespace clnet
