#include "lib/graph/slot_scope.h"

#include <atomic>
#include <utility>

#include "lib/base/leave_scope.h"

namespace clnet {

namespace {

std::atomic<std::uint64_t> slot_maps_made{0};

thread_local SlotScope* innermost_slots = nullptr;

}  // namespace

SlotMap::SlotMap() : id(++slot_maps_made) {}

SlotScope::SlotScope(const SlotMap& map) : map_(map), outer_(std::exchange(innermost_slots, this)) {}
SlotScope::~SlotScope() { leave_scope(innermost_slots, this, &SlotScope::outer_); }

const std::shared_ptr<Slot>& slot_here(const std::shared_ptr<Slot>& slot) {
  if (!innermost_slots) return slot;
  const auto& slots = innermost_slots->map_.slots;
  const auto found = slots.find(slot.get());
  return found == slots.end() ? slot : found->second;
}

std::uint64_t slots_here() { return innermost_slots ? innermost_slots->map_.id : 0; }

}  // namespace clnet
