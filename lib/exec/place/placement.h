// The placement of a recording's values, from the recording alone: no device is needed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/options.h"
#include "lib/exec/place/arena.h"
#include "lib/exec/place/in_place.h"

namespace clnet::exec {

/// The home of a root value: a leaf of the caller, the arena, a buffer of its own for this run, or the prepacked values.
enum class Home : std::uint8_t { nowhere, leaf, arena, per_run, prepacked };

/// Values that launches make from leaves only, kept while these live. Either all of them are there, or none.
struct Prepack {
  std::vector<std::size_t> commands;  ///< the launches, skipped where the values are there
  std::vector<ValueId> values;        ///< root values
  std::vector<ValueId> leaves;        ///< their sources
  std::vector<ValueId> scalars;       ///< in the order of the arguments
  /// Not requested by an operation: one run cannot tell whether their leaves are a network's or a data set's.
  bool small = false;
  std::shared_ptr<const std::string>
      text;  ///< programs, defines, arguments and sizes: equal texts compute equal values from equal leaves
};

struct PlacementOptions {
  bool shares = true;  ///< values that are not alive at once share memory, and outputs take that of inputs
  bool caches = true;  ///< values made of leaves only are kept
  std::size_t max_allocation = ~std::size_t{0};

  static PlacementOptions of(const DeviceInfo& device, const Options& options);
};

struct Placement {
  static constexpr std::size_t none = ~std::size_t{0};

  std::vector<Home> homes;         ///< by root value
  std::vector<bool> needs_buffer;  ///< by leaf: not only passed by value
  std::vector<Prepack> prepacks;
  std::vector<std::size_t> prepack_of;           ///< by command: its prepack, or none
  std::vector<std::vector<ValueId>> first_uses;  ///< by command: root values that begin here, in undefined memory
  std::vector<Grant> grants;
  std::vector<Donation> donations;  ///< grants that depend on the run
  Layout layout;
  std::vector<Layout::Place> places;  ///< by root value, where the home is the arena
  std::size_t naive_bytes = 0;        ///< bytes of the arena's values without sharing
};

/// Places all values; `keep` are the values to return.
Placement place(const Recording& recording, const std::vector<ValueId>& keep, const PlacementOptions& options);

/// Bytes to allocate for a value: at least one.
inline std::size_t stored_bytes(const Spec& spec) { return std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())); }

}  // namespace clnet::exec
