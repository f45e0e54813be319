// Runs of short launches of which each becomes one command (exec/batch/chain): found from the recording and its placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/exec/batch/chain.h"
#include "lib/exec/place/placement.h"

namespace clnet::exec {

/// Some commands that follow one another.
struct Chain {
  /// One of them, which is a launch.
  struct Entry {
    std::size_t command = 0;
    std::size_t kernel = 0;  ///< of the program
    bool waits = false;      ///< for the entries before: it touches what they write, or writes what they touch
    bool may_be_left_out = false;
    std::vector<std::uint64_t> words;  ///< from ChainList::arguments on
  };
  /// A buffer: a segment of the arena, or that of a root value.
  struct Base {
    bool in_arena = false;
    std::size_t index = 0;
    bool operator==(const Base&) const = default;
  };
  /// A value of the list: the first element of a leaf in its buffer, or the value of one that the host knows.
  struct Value {
    bool scalar = false;
    ValueId leaf = -1;
    bool operator==(const Value&) const = default;
  };

  std::size_t first = 0, last = 0;  ///< commands; `last` is the one behind
  std::size_t program = 0;
  std::vector<Entry> entries;
  std::vector<Base> bases;
  std::vector<ValueId> scalars;  ///< leaves whose values are arguments
  std::vector<Value> values;     ///< of the list, from value 1 on
  std::size_t local_bytes = 0;
  bool side_by_side = false;  ///< some tasks need not wait for one another
  double microseconds = 0;    ///< that it takes, roughly
};

struct Chains {
  struct Program {
    std::vector<std::size_t> commands;  ///< of each kernel one that launches it
    ChainParameters parameters;
  };
  std::vector<Chain> chains;  ///< in the order of the commands
  std::vector<Program> programs;
  double microseconds = 0;  ///< that all launches take, roughly
};

/// For CPUs, whose kernels are work-items by themselves. Launches that take longer than waking a device's threads stay as they
/// are.
/// A chain has so many entries at least, of the commands before `end`: from there on, runs overwrite leaves for good, and are
/// told which launch failed.
Chains find_chains(const Recording& recording, const Placement& placement, const DeviceInfo& device, std::size_t fewest_entries,
                   std::size_t end = ~std::size_t{0});

/// The list of a chain with these values, in which the entries for which `left_out` holds have no tasks.
std::vector<std::uint64_t> chain_list(const Recording& recording, const Chain& chain, const std::vector<std::uint64_t>& values,
                                      const std::vector<bool>& left_out, std::size_t groups);

}  // namespace clnet::exec
