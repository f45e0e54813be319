// Counters of the executor: tests and reports prove by them that work was spared.
#pragma once

#include <cstdint>

namespace clnet::exec {

struct Statistics {
  std::uint64_t evaluations = 0;  ///< calls of eval() that computed something
  std::uint64_t operations = 0;   ///< nodes computed
  std::uint64_t kernels = 0;      ///< kernels launched
  std::uint64_t host_calls = 0;   ///< calls such as CLBlast's
  std::uint64_t plans_made = 0;   ///< evaluations of a new structure
  std::uint64_t plans_reused = 0;
  std::uint64_t repeated = 0;  ///< nodes computed twice for lack of memory, in all evaluations
  /// How often a thread waited for a lock that all devices share, or in a DeviceScope for another device's. Threads with a device
  /// each never do (docs/developer/lanes.md).
  std::uint64_t waited = 0;
};

Statistics statistics();

}  // namespace clnet::exec
