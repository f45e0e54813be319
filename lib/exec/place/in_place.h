// Which outputs take over the memory of an input: a permission that is granted launch by launch, or, where the input is a leaf,
// run by run.
#pragma once

#include <vector>

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// In this command, root value `to` comes to lie where root value `from` lay.
struct Grant {
  std::size_t command = 0;
  ValueId from = -1, to = -1;
  bool operator==(const Grant&) const = default;
};

/// A grant says that
/// - the input's root, with every view of it, is not used after the launch, and the output's root not before it;
/// - the input is the whole root, and so is the output: offset 0, all of its elements, as many bytes, elements of the same size;
/// - no other argument of the launch touches either root;
/// - the kernel reads exactly the element that it writes (Access::same_element);
/// - the root's memory is handed on once per launch.
/// `givers` are the roots whose memory the plan may hand on, `takers` those whose place it chooses, by id. In the order of the
/// commands.
std::vector<Grant> grant_in_place(const Recording& recording, const std::vector<bool>& givers, const std::vector<bool>& takers);
inline std::vector<Grant> grant_in_place(const Recording& recording, const std::vector<bool>& movable) {
  return grant_in_place(recording, movable, movable);
}

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
