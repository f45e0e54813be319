// Slots of a thread's own in place of those that a model holds: replicas share the model, and each has values of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "lib/graph/slot.h"

namespace clnet {

/// Slots, and what stands in for each.
struct SlotMap {
  SlotMap();
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;

  const std::uint64_t id;  ///< never 0, never used again
  std::unordered_map<const Slot*, std::shared_ptr<Slot>> slots;
};

/// While it lives, this thread reads and changes the map's slots in place of the others. Only the innermost map counts. The map
/// must outlive it, unchanged.
class SlotScope {
 public:
  explicit SlotScope(const SlotMap& map);
  ~SlotScope();
  SlotScope(const SlotScope&) = delete;
  SlotScope& operator=(const SlotScope&) = delete;

 private:
  friend const std::shared_ptr<Slot>& slot_here(const std::shared_ptr<Slot>& slot);
  friend std::uint64_t slots_here();

  const SlotMap& map_;
  SlotScope* outer_;
};

/// The slot that this thread uses in place of `slot`: itself where there is no other.
const std::shared_ptr<Slot>& slot_here(const std::shared_ptr<Slot>& slot);
/// The id of this thread's map; 0: none.
std::uint64_t slots_here();

}  // namespace clnet
