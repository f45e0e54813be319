// The check of a run before it is enqueued: every argument of a launch points to its intended value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/exec/launch/recorder.h"
#include "lib/exec/place/placement.h"

namespace clnet::exec {

/// The place of a root value in a run: bytes of a buffer.
struct RunPlace {
  std::uint64_t buffer = 0;  ///< see Buffer::id(); 0: nowhere
  std::int64_t begin = 0;
  std::int64_t capacity = 0;  ///< of the buffer
};

/// An argument of a launch: its value, and its address.
struct RunArgument {
  ValueId root = -1;
  std::int64_t begin = 0, end = 0;  ///< range in bytes of the root value
  std::uint64_t buffer = 0;
  std::int64_t address = 0;  ///< address of `begin` in the buffer
  bool reads = false, writes = false;
  bool same_element = false;  ///< see Access
  std::int64_t element = 1;   ///< bytes
  bool adds = false;          ///< writes only some elements, or adds: Launch::scattered(), or a call that also reads it
  ValueId taker = -1;         ///< the root of Launch::only_for's output
};

struct RunCommand {
  std::size_t command = 0;
  std::string_view name;
  bool left_out = false;  ///< not launched: its prepacked values are there, its range is empty, or an alternative runs
  std::vector<RunArgument> arguments;
};

/// A Prepack of the placement in this run.
struct RunPrepack {
  bool there = false;                    ///< made by an earlier run
  bool imported = false;                 ///< from memory that a caller may write to
  bool kept = false;                     ///< kept for later runs
  std::vector<std::uint64_t> sources;    ///< ids of its leaves' values in this run
  std::vector<std::uint64_t> made_from;  ///< ids of the values that it was made from
};

/// All facts of a run that verify() checks.
struct RunView {
  const Recording* recording = nullptr;
  const Placement* placement = nullptr;
  std::vector<RunPlace> places;  ///< by root value
  std::vector<RunPrepack> prepacks;
  std::vector<RunCommand> commands;
  std::vector<RunArgument> results;
  std::vector<Donation> donations;  ///< the granted ones of the placement's
};

/// The run of a placed recording with its values at these places.
RunView view(const Recording& recording, const Placement& placement, const std::vector<ValueId>& keep,
             std::vector<RunPlace> places, std::vector<RunPrepack> prepacks, std::vector<Donation> donations = {});

/// Whether the value that decides about the launch lies in the memory of an earlier value: see Launch::unless_in_place.
bool lies_in_place(const Recording& recording, const Placement& placement, const std::vector<Donation>& granted,
                   const Launch& launch);

/// Throws Error, with the condition and the launches around, unless
/// - every argument points to its value, within its buffer, and every read finds that value there;
/// - nothing is written after it was read, except by arguments that are both read and written;
/// - no write covers all of an earlier write before anything has read of that, unless declared (RunArgument::adds);
/// - leaves, present prepacked values, and finished results and speculative outputs are not written; only the result
///   that takes its memory writes a donated leaf;
/// - arguments of one launch overlap only where in-place is allowed (see grant_in_place);
/// - prepacked values are made from unchanging values, match the sources of this run, and are not returned.
void verify(const RunView& run);

/// The target of a kernel's argument.
struct Pointed {
  std::uint64_t buffer = 0;   ///< see Buffer::id()
  std::int64_t element = -1;  ///< of the buffer
  bool operator==(const Pointed&) const = default;
};
/// Throws Error unless the argument, as set by this run or an earlier one, points to its value.
void verify_set(std::size_t command, std::string_view function, std::uint32_t argument, const Pointed& set, const Pointed& value);

/// The value of CLNET_VERIFY; unset: true in debug builds.
bool verify_enabled();

}  // namespace clnet::exec
