// clnet-bench --lanes: an item on several devices at once, each in a thread of its own, beside the same alone.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/parallel/lane.h"
#include "tools/bench_items.h"

namespace clnet::bench {

/// Runs per second, by lane.
struct LaneRates {
  std::vector<double> alone, together;
  std::uint64_t waited = 0;  ///< Statistics::waited while all ran
};
/// Runs the item in each lane alone and in all at once, for `seconds` seconds each.
LaneRates measure_lanes(const Item& item, parallel::Lanes& lanes, double seconds);

}  // namespace clnet::bench
