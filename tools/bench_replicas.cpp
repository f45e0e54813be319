#include "tools/bench_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "clnet/data.h"
#include "clnet/error.h"
#include "clnet/parallel.h"

namespace clnet::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// A network whose batch is one of the item's for each device.
class Replicated {
 public:
  Replicated(const Item& item, const std::vector<Device>& devices)
      : training_(item.training()), replicas_(*training_.model, devices) {
    const auto count = static_cast<std::int64_t>(devices.size());
    for (std::int64_t i = 0; i < count; ++i) {
      data::Batch part;
      part.rows = {i * training_.batch, training_.batch, count * training_.batch};
      parts_.push_back(std::move(part));
    }
  }

  /// Seconds of a step.
  double step() {
    const auto begin = Clock::now();
    replicas_.step(*training_.optimizer, parts_, [&](nn::Module& model, const data::Batch& part) -> train::Step {
      // All devices have the same images: what they cost does not depend on them.
      return training_.loss(model, 0, part.rows.count);
    });
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  double samples() const { return static_cast<double>(parts_[0].rows.batch); }

 private:
  Training training_;
  parallel::Replicas replicas_;
  std::vector<data::Batch> parts_;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

ReplicaRates measure_replicas(const Item& item, const std::vector<Device>& devices, double seconds) {
  if (!item.training) throw Error(fmt::format("{} trains no network whose batches devices can share", item.name));
  Replicated alone(item, {devices.at(0)}), together(item, devices);
  for (int warm = 0; warm < 3; ++warm) {
    alone.step();
    together.step();
  }
  std::vector<double> steps_alone, steps_together;
  // In turn, so that both see the same machine.
  const auto begin = Clock::now();
  while (steps_alone.size() < 5 || std::chrono::duration<double>(Clock::now() - begin).count() < 2 * seconds) {
    steps_alone.push_back(alone.step());
    steps_together.push_back(together.step());
  }
  return {alone.samples() / median(steps_alone), together.samples() / median(steps_together)};
}

}  // namespace clnet::bench
