// clnet-bench under mpirun: each rank runs the whole item at once, and training steps add their gradients over ranks.
#pragma once

#include <cstdint>

#include "clnet/dist.h"
#include "clnet/optim.h"

namespace clnet::bench {

/// All ranks; one without a launcher.
const dist::Group& ranks();

/// From now on each step takes the sums of the gradients of all ranks.
void add_gradients_of_ranks(optim::Optimizer& optimizer);

/// Rank 0's value on all ranks, so that they run an item equally often.
std::int64_t of_rank_0(std::int64_t value);

}  // namespace clnet::bench
