// clnet-bench --replicas: a training item on several devices, which share each batch, beside the first one alone.
#pragma once

#include <cstddef>
#include <vector>

#include "clnet/device.h"
#include "tools/bench_items.h"

namespace clnet::bench {

/// Samples per second.
struct ReplicaRates {
  double alone = 0;     ///< of the first device, with its batch
  double together = 0;  ///< of all, each with a batch of that size
};
/// Measures both in turn, for `seconds` seconds each. Throws Error for an item that trains no network.
ReplicaRates measure_replicas(const Item& item, const std::vector<Device>& devices, double seconds);

}  // namespace clnet::bench
