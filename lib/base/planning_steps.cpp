#include "lib/base/planning_steps.h"

#include <atomic>

namespace clnet {

namespace {
std::atomic<std::uint64_t> steps_so_far = 0;
}  // namespace

std::uint64_t planning_steps() { return steps_so_far.load(std::memory_order_relaxed); }
void count_planning(std::uint64_t steps) { steps_so_far.fetch_add(steps, std::memory_order_relaxed); }

}  // namespace clnet
