// One thing that the self-test tries on a device, in a process of its own that may crash or hang.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "clnet/device.h"

namespace clnet::tools {

enum class Verdict : std::uint8_t {
  good,
  wrong,    ///< another result than it must be, or each time another
  fails,    ///< an error
  refuses,  ///< it says that it does not take this; nothing wrong with that
  missing,  ///< something that the device lacks
};

struct CheckResult {
  Verdict verdict = Verdict::good;
  std::string detail;
  double milliseconds = 0;  ///< of a timed check
};

struct Check {
  std::string name;
  std::string op, solver;  ///< what it tries; empty: no solver in particular
  std::string limit;       ///< the limit that it probes, at `value`
  std::uint64_t value = 0;
  std::string timed;  ///< the problem whose time it takes, beside those of other solvers: nothing else may run meanwhile
  std::function<CheckResult()> run;
};

struct Depth {
  bool full = false;
  int repeats() const { return full ? 20 : 3; }
};

/// Solvers ("op:solver") that must not be tried again, as they end the process or hang.
using Solvers = std::vector<std::string>;

/// All checks of a device, always in the same order. `device` is what it says of itself; `only` is an operation, or empty.
std::vector<Check> make_checks(const DeviceInfo& device, Depth depth, const std::string& only);
/// Of limits that the device states, and of arithmetic.
std::vector<Check> make_probes(const DeviceInfo& device, Depth depth);

/// The process that runs checks on Device::current(): those whose numbers come by standard input, a line each, until it ends.
/// Tells `descriptor` about each in lines of JSON. Returns the exit code.
int run_checks(int descriptor, Depth depth, const std::string& only);

struct SelfTestOptions {
  std::string device;    ///< a selector; empty: the default
  std::string only;      ///< an operation; empty: all and the device's limits
  std::size_t jobs = 0;  ///< processes that run checks at a time; 0: one for each core, at most 4, for a CPU, and one for others
  bool full = false, json = false;
};
/// The whole: runs the checks in processes of their own, prints what was found and writes it to the device's quirk file. Returns
/// the exit code: 0, or 1 when something is broken. Throws Error when there is nothing to test or the file cannot be written.
int self_test(const SelfTestOptions& options);

}  // namespace clnet::tools
