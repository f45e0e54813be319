#include "tools/bench_lanes.h"

#include <barrier>
#include <chrono>
#include <cstddef>
#include <optional>

#include "clnet/device.h"
#include "lib/exec/statistics.h"

namespace clnet::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Runs per second in some time, each waited for, as a loop that reads its loss.
double rate_for(const Run& run, double seconds) {
  const auto device = Device::current();
  const auto begin = Clock::now();
  std::size_t runs = 0;
  double passed = 0;
  while (runs < 3 || passed < seconds) {
    run();
    device.finish();
    ++runs;
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(runs) / passed;
}

}  // namespace

LaneRates measure_lanes(const Item& item, parallel::Lanes& lanes, double seconds) {
  LaneRates rates;
  rates.alone.resize(lanes.size());
  rates.together.resize(lanes.size());
  std::vector<Run> runs(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i)
    lanes[i]
        .run([&] {
          runs[i] = item.prepare();
          for (int warm = 0; warm < 3; ++warm) runs[i]();
          Device::current().finish();
          rates.alone[i] = rate_for(runs[i], seconds);
        })
        .get();
  const auto before = exec::statistics().waited;
  std::barrier all(static_cast<std::ptrdiff_t>(lanes.size()));
  lanes.run([&](std::size_t i) {
    all.arrive_and_wait();
    rates.together[i] = rate_for(runs[i], seconds);
    runs[i] = nullptr;
  });
  rates.waited = exec::statistics().waited - before;
  return rates;
}

}  // namespace clnet::bench
