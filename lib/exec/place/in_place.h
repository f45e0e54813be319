// In-place outputs: an output takes the memory of an input. The permission is granted per launch, and for a leaf per run.
#pragma once

#include <vector>

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// In this command, root value `to` takes the place of root value `from`.
struct Grant {
  std::size_t command = 0;
  ValueId from = -1, to = -1;
  bool operator==(const Grant&) const = default;
};

/// A grant guarantees that
/// - the input's root, with every view of it, is not used after the launch, and the output's root not before it;
/// - the input is the whole root, and so is the output: offset 0, all of its elements, as many bytes, elements of the same size;
/// - no other argument of the launch touches either root;
/// - the kernel reads exactly the element that it writes (Access::same_element);
/// - a launch passes the root's memory on at most once.
///
/// `givers` are the roots whose memory the plan may pass on, `takers` those whose place it chooses, by id. The result is in the
/// order of the commands.
std::vector<Grant> grant_in_place(const Recording& recording, const std::vector<bool>& givers, const std::vector<bool>& takers);
inline std::vector<Grant> grant_in_place(const Recording& recording, const std::vector<bool>& movable) {
  return grant_in_place(recording, movable, movable);
}

/// In this command, root value `to`, a result, may take the place of leaf `from`, if nothing else needs the leaf.
struct Donation {
  std::size_t command = 0;
  ValueId from = -1, to = -1;
  /// Launch::if_in_place replaces the command, and its replacement may be repeated. Otherwise all commands from this one on are
  /// launches, and a failure of one loses the leaf.
  bool repeatable = false;
  bool operator==(const Donation&) const = default;
};

/// The conditions of grant_in_place(), for leaves that are `givers` and roots that are `takers`, by id. A repeatable donation
/// also needs that nothing else in the plan reads the leaf. In the order of the commands.
std::vector<Donation> find_donations(const Recording& recording, const std::vector<bool>& givers,
                                     const std::vector<bool>& takers);

}  // namespace clnet::exec
