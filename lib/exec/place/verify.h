// Checks a run before it is enqueued: whether every launch finds what it means where its arguments point.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/exec/launch/recorder.h"
#include "lib/exec/place/placement.h"

namespace clnet::exec {

/// Where a root value lies in a run: bytes of a buffer.
struct RunPlace {
  std::uint64_t buffer = 0;  ///< see Buffer::id(); 0: nowhere
  std::int64_t begin = 0;
  std::int64_t capacity = 0;  ///< of the buffer
};

/// An argument of a launch: what it means, and where it points.
struct RunArgument {
  ValueId root = -1;
  std::int64_t begin = 0, end = 0;  ///< bytes of the root value
  std::uint64_t buffer = 0;
  std::int64_t address = 0;  ///< of the first of them in the buffer
  bool reads = false, writes = false;
  bool same_element = false;  ///< see Access
  std::int64_t element = 1;   ///< bytes
  bool adds = false;          ///< writes among what is there, or to it: Launch::scattered(), or a call that also reads it
  ValueId taker = -1;         ///< the root of Launch::only_for's output
};

struct RunCommand {
  std::size_t command = 0;
  std::string_view name;
  bool left_out = false;  ///< its cached values are there, it has nothing to do, or another is made in its place
  std::vector<RunArgument> arguments;
};

/// A CachedForm of the placement in this run.
struct RunForm {
  bool there = false;                    ///< made by an earlier run
  bool imported = false;                 ///< from memory that a caller may write to
  bool kept = false;                     ///< to be found by later runs
  std::vector<std::uint64_t> sources;    ///< the ids of the values that its leaves have in this run
  std::vector<std::uint64_t> made_from;  ///< those that it was made from
};

/// All of a run that can be right or wrong.
struct RunView {
  const Recording* recording = nullptr;
  const Placement* placement = nullptr;
  std::vector<RunPlace> places;  ///< by root value
  std::vector<RunForm> forms;
  std::vector<RunCommand> commands;
  std::vector<RunArgument> results;
  std::vector<Donation> donations;  ///< of the placement's, those that are granted
};

/// The run of a placed recording with its values at these places.
RunView view(const Recording& recording, const Placement& placement, const std::vector<ValueId>& keep,
             std::vector<RunPlace> places, std::vector<RunForm> forms, std::vector<Donation> donations = {});

/// Whether the value that the launch's being made depends on lies in the memory of one before it: see Launch::unless_in_place.
bool lies_in_place(const Recording& recording, const Placement& placement, const std::vector<Donation>& granted,
                   const Launch& launch);

/// Throws Error, naming the rule and the launches around, unless
/// - every argument points to the value that it means, inside of its buffer, and every read finds that value there;
/// - nothing is written after it was read, but by arguments that are read and written, nor, unless it is declared
/// (RunArgument::adds),
///   all of what an argument wrote before anything has read of it;
/// - leaves (but those that are given, by what takes their place) and cached values that are there are not written, nor what is
///   returned or kept once it is made;
/// - arguments of one launch overlap only where in-place is allowed (see grant_in_place);
/// - cached values are made of what stays the same, are there for the very sources of this run, and are not returned.
void verify(const RunView& run);

/// What an argument of a kernel points to.
struct Pointed {
  std::uint64_t buffer = 0;   ///< see Buffer::id()
  std::int64_t element = -1;  ///< of the buffer
  bool operator==(const Pointed&) const = default;
};
/// Throws Error unless what the argument was set to, by this run or an earlier one, is where its value is.
void verify_set(std::size_t command, std::string_view function, std::uint32_t argument, const Pointed& set, const Pointed& value);

/// CLNET_VERIFY; unset: in debug builds.
bool verify_enabled();

}  // namespace clnet::exec
