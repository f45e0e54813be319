// How much work it is to make plans, counted instead of timed, so that a test can hold it linear on any machine.
#pragma once

#include <cstdint>

namespace clnet {

/// Steps of making plans so far, on all threads: operations and edges looked at, elements of kernels put together, lives
/// compared.
std::uint64_t planning_steps();
void count_planning(std::uint64_t steps);

}  // namespace clnet
