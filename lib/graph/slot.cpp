#include "lib/graph/slot.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "lib/base/process_mutex.h"
#include "lib/graph/node.h"

namespace clnet {

namespace {
std::atomic<std::uint64_t> slots_made{0}, effects_made{0};
}  // namespace

Slot::Slot() : id(++slots_made) {}

Tensor Slot::now() const {
  const SpinGuard guard(busy_);
  return value_;
}

void Slot::swap(Tensor& value) {
  const SpinGuard guard(busy_);
  std::swap(value_, value);
}

SlotsLock::SlotsLock(std::vector<Slot*> slots) : slots_(std::move(slots)) {
  std::sort(slots_.begin(), slots_.end(), [](const Slot* a, const Slot* b) { return a->id < b->id; });
  slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
  for (auto* slot : slots_) {
    if (!slot->locked_.test_and_set(std::memory_order_acquire)) continue;
    SharedWaits::add();
    while (slot->locked_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
}

SlotsLock::~SlotsLock() {
  for (auto* slot : slots_) slot->locked_.clear(std::memory_order_release);
}

Tensor make_leaf(const Slot& slot, Spec spec, std::shared_ptr<Value> value) {
  auto leaf = make_leaf(std::move(spec), std::move(value));
  node_of(leaf)->slot = slot.id;
  return leaf;
}

Effect::Effect(const std::shared_ptr<Slot>& of, int node_output, Update what)
    : order(effects_made++), slot(of), output(node_output), update_(std::make_shared<const Update>(std::move(what))) {
  ++of->awaited;
}

std::shared_ptr<const Effect::Update> Effect::update() const {
  const std::lock_guard lock(mutex_);
  return update_;
}

void Effect::finish() {
  std::shared_ptr<const Update> done;  // freed without the lock
  {
    const std::lock_guard lock(mutex_);
    done.swap(update_);
  }
  if (!awaited_.exchange(false)) return;
  if (const auto changed = slot.lock()) --changed->awaited;
}

}  // namespace clnet
