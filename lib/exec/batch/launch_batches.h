// Runs of short launches that become one command each (exec/batch/batch_kernel), found from the recording and its placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/exec/batch/batch_kernel.h"
#include "lib/exec/place/placement.h"

namespace clnet::exec {

/// A run of consecutive commands.
struct LaunchBatch {
  /// A command that is a launch.
  struct ListEntry {
    std::size_t command = 0;
    std::size_t kernel = 0;  ///< index of the program's kernel
    bool waits = false;      ///< waits for earlier entries: it accesses their outputs, or writes their operands
    bool may_be_left_out = false;
    std::vector<std::uint64_t> words;  ///< from BatchList::arguments on
  };
  /// A buffer: a segment of the arena, or a root value's.
  struct Base {
    bool in_arena = false;
    std::size_t index = 0;
    bool operator==(const Base&) const = default;
  };
  /// A value of the list: the offset of a leaf in its buffer, or the value of a host scalar.
  struct Value {
    bool scalar = false;
    ValueId leaf = -1;
    bool operator==(const Value&) const = default;
  };

  std::size_t first = 0, last = 0;  ///< range of commands; `last` is excluded
  std::size_t program = 0;
  std::vector<ListEntry> entries;
  std::vector<Base> bases;
  std::vector<ValueId> scalars;  ///< leaves whose values are arguments
  std::vector<Value> values;     ///< of the list, from value 1 on
  std::size_t local_bytes = 0;
  bool side_by_side = false;  ///< some tasks are independent
  double microseconds = 0;    ///< estimated time
};

struct LaunchBatches {
  struct Program {
    std::vector<std::size_t> commands;  ///< one launch of each kernel
    BatchParameters parameters;
  };
  std::vector<LaunchBatch> batches;  ///< in the order of the commands
  std::vector<Program> programs;
  double microseconds = 0;  ///< estimated time of all launches
};

/// For CPUs, whose kernels are single work-items. Launches that take longer than waking a device's threads stay separate. A batch
/// has at least `fewest_entries` entries, from commands before `end`: later commands overwrite leaves permanently, so a failure
/// must name its launch.
LaunchBatches find_launch_batches(const Recording& recording, const Placement& placement, const DeviceInfo& device,
                                  std::size_t fewest_entries, std::size_t end = ~std::size_t{0});

/// The list of a batch with these values; entries in `left_out` have no tasks.
std::vector<std::uint64_t> batch_list(const Recording& recording, const LaunchBatch& batch,
                                      const std::vector<std::uint64_t>& values, const std::vector<bool>& left_out,
                                      std::size_t groups);

}  // namespace clnet::exec
