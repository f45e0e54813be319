// Values that one rank each has, on all ranks: as an operation of a graph.
#pragma once

#include <vector>

#include "clnet/dist.h"

namespace clnet::dist {

/// A value, which `owner` of the group gives: it has a new one, the others have one of the same spec that this takes the place
/// of.
struct Owned {
  int owner = 0;
  Tensor value;
};
struct FromOwners {
  std::vector<Tensor> values;  ///< of all ranks, in the order given: the owner's own as it is, another's as graph
  Tensor sent;                 ///< a number to be evaluated on all ranks, so that one that needs nothing sends what it has
};

/// All ranks give equal owners and specs, each value with elements, in a group of several ranks. Values of one owner travel
/// together. `after` is graph that is computed before: behind the same collectives on all ranks, so that this one comes in the
/// same place. Evaluations throw RankLost.
///
/// What is replaced is an input, too, so that it counts as a value that changes, as it does on its owner: both choose the same
/// solvers, and have the same bits.
FromOwners from_owners(const std::vector<Owned>& values, const Tensor& after, const Group& group);

}  // namespace clnet::dist
