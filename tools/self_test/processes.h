// Runs checks in processes of their own, which may crash or hang.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/self_test/check.h"

namespace clnet::tools {

struct Fault {
  std::string what, reason;
};

struct Findings {
  std::vector<std::optional<CheckResult>> results;  ///< of each check; none where it was not run
  std::vector<Fault> endings;                       ///< of processes that were at no check
  std::size_t processes = 1;                        ///< that were to run checks at a time
};

/// Runs all checks, each process as far as it comes: several processes at a time, as most of a quick test is compiling and some
/// drivers compile one program at a time in a process; then those that want the device for themselves. Throws Error when none
/// comes to a check.
Findings run_in_processes(const std::vector<Check>& checks, const DeviceInfo& device, const SelfTestOptions& options);

}  // namespace clnet::tools
