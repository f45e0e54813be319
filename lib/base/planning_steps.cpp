#include "lib/base/planning_steps.h"

namespace clnet {

namespace {
thread_local std::uint64_t steps_here = 0;
}  // namespace

std::uint64_t planning_steps() { return steps_here; }
void count_planning(std::uint64_t steps) { steps_here += steps; }

}  // namespace clnet
