// Which results may be made in the memory of a leaf: a possibility that is found from the recording, and granted run by run.
#pragma once

#include <vector>

#include "lib/exec/place/in_place.h"

namespace clnet::exec {

/// In this command, root value `to`, which is returned, may come to lie where the leaf `from` lies, if nobody else needs that.
struct Donation {
  std::size_t command = 0;
  ValueId from = -1, to = -1;
  /// The command is one that Launch::if_in_place replaces, and what does may be made again. Else all commands from this one on
  /// are launches, and when one of them fails, the leaf is lost.
  bool repeatable = false;
  bool operator==(const Donation&) const = default;
};

/// The rules are those of grant_in_place, for leaves that are `givers` and roots that are `takers`, by id; of a repeatable one
/// besides that nothing else in the plan reads the leaf. In the order of the commands.
std::vector<Donation> find_donations(const Recording& recording, const std::vector<bool>& givers,
                                     const std::vector<bool>& takers);

}  // namespace clnet::exec
