// Where a recording's values live, decided from the recording alone: no device is needed.
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

/// Where a root value lives: with the caller, in the arena, in a buffer of its own for this run, or among the cached values.
enum class Home : std::uint8_t { nowhere, leaf, arena, own, cached };

/// Values that launches make of leaves only, and that are kept while those live: all of them are there, or none.
struct CachedForm {
  std::vector<std::size_t> commands;  ///< the launches, left out where the values are there
  std::vector<ValueId> values;        ///< root values
  std::vector<ValueId> leaves;        ///< what they are made from
  std::vector<ValueId> scalars;       ///< in the order of the arguments
  /// Nobody asked for them: their leaves may be a data set's as well as a network's, and are not told apart by one run.
  bool small = false;
  std::shared_ptr<const std::string>
      text;  ///< programs, defines, arguments and sizes: equal texts compute the same of the same leaves
};

struct Placing {
  bool shares = true;  ///< values that are not alive at once share memory, and outputs take that of inputs
  bool caches = true;  ///< values made of leaves only are kept
  std::size_t max_allocation = ~std::size_t{0};

  static Placing of(const DeviceInfo& device, const Options& options);
};

struct Placement {
  static constexpr std::size_t none = ~std::size_t{0};

  std::vector<Home> homes;         ///< by root value
  std::vector<bool> needs_buffer;  ///< by leaf: not only passed by value
  std::vector<CachedForm> forms;
  std::vector<std::size_t> form_of;              ///< by command: the form that it makes, or none
  std::vector<std::vector<ValueId>> first_uses;  ///< by command: root values that come into being, in memory that holds nothing
  std::vector<Grant> grants;
  std::vector<Donation> donations;  ///< what a run may grant besides
  Layout layout;
  std::vector<Layout::Place> places;  ///< by root value, where the home is the arena
  std::size_t naive_bytes = 0;        ///< what the arena's values would take side by side
};

/// `keep` are the values to return.
Placement place(const Recording& recording, const std::vector<ValueId>& keep, const Placing& placing);

/// Bytes to allocate for a value: one at least.
inline std::size_t stored_bytes(const Spec& spec) { return std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())); }

}  // namespace clnet::exec
