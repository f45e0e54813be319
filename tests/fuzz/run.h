// Carries a program out on the device, with other leaves once more, and asks the judge.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/fuzz/coverage.h"
#include "tests/fuzz/program.h"

namespace clnet::fuzz {

struct RunOptions {
  bool judges = true;      ///< false: only that plans can be made (a device that computes nothing)
  int rounds = 2;          ///< with new leaves each; all but the first replay plans
  bool gradients = false;  ///< compare gradients with differences, too
  bool memory = false;     ///< under limits that are so low that values must be computed again, or that one clear error says so
};

struct Outcome {
  std::optional<std::string> fault;
  bool fitted = false;       ///< it ran under a limit that is lower than what it takes without
  bool repeated = false;     ///< by plans that compute values twice
  bool refused = false;      ///< it needs all that it takes without a limit, and the error said so
  std::uint64_t digest = 0;  ///< of all results' bits
  std::int64_t elements = 0, judged = 0;
};

Outcome run(const Program& program, const RunOptions& options, Coverage* coverage = nullptr);

/// The smallest program that `fails`, found by taking away steps, wanted values, checkpoints and evaluations, for about so many
/// seconds.
Program shrink(Program program, const std::function<bool(const Program&)>& fails, double seconds);

}  // namespace clnet::fuzz
