#include "lib/graph/slot.h"

#include <utility>

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

std::mutex& slots_mutex() {
  static auto* const mutex = new std::mutex;  // outlives what static tensors do at exit
  return *mutex;
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
