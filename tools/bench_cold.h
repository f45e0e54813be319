// First steps: what clnet-bench --programs and --cold tell.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tools/bench_items.h"

namespace clnet::bench {

struct FirstStep {
  double seconds = 0;          ///< from the start of the process to the end of the step
  std::uint64_t programs = 0;  ///< that the process has built, or loaded from disk, after another step
};
/// Of a process that finds what is compiled on this machine. Throws Error when it fails.
FirstStep first_step(const std::string& item, const std::string& device);
/// Of a process that finds nothing compiled, and of one after it.
std::pair<FirstStep, FirstStep> first_steps(const std::string& item, const std::string& device);

/// Such a process's part: makes the steps, and says so on stdout.
void make_first_step(const Item& item);

}  // namespace clnet::bench
