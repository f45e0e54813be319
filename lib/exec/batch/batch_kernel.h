// The kernel of a launch batch (batch): it runs a list of launches, one after the other, within one command.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// The layout of a batch's list, in words of 64 bits. A list begins with four numbers. They count its tasks (work-items of all
/// launches), the groups that share them, the cycles that a group waits, and the following values, where number 0 is zero. Then
/// come the entries.
struct BatchList {
  static constexpr std::size_t tasks = 0, groups = 1, patience = 2, values = 3, first_value = 4;
  /// An entry, from its first word on. `after`: the number of tasks that must be done before its own begin.
  static constexpr std::size_t kernel = 0, words = 1, its_tasks = 2, after = 3, range = 4, arguments = 7;
};

/// The counters' buffer, all zero between runs; each counter has a cache line of its own.
struct BatchCounters {
  static constexpr std::size_t line = 64, count = 4, bytes = line * count;
};

/// The batch's parameters, in their order.
struct BatchParameters {
  std::size_t bases = 0;    ///< buffers
  std::size_t scalars = 0;  ///< number of values that a run may change without a new list

  static constexpr cl_uint list = 0, counters = 1, local = 2;
  static constexpr cl_uint base(std::size_t index) { return static_cast<cl_uint>(3 + index); }
  cl_uint scalar(std::size_t index) const { return static_cast<cl_uint>(3 + bases + index); }
  std::size_t bytes() const { return 8 * (3 + bases + scalars); }
};

/// The words of an argument in an entry. For a buffer: its base, then the element offset, with the number of the value to add in
/// the upper half. For a scalar: its number, or in the upper half that of its value.
std::size_t argument_words(const Arg& arg);

/// A program with one kernel, `batch`, for launches of these different kernels.
ocl::ProgramSource batch_program(const Recording& recording, const std::vector<const Launch*>& kernels,
                                 const BatchParameters& parameters, const DeviceInfo& device);

}  // namespace clnet::exec
