#include "lib/nn/cloning.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "clnet/nn/module.h"
#include "lib/graph/slot.h"
#include "lib/nn/here.h"
#include "lib/nn/module_state.h"
#include "lib/nn/parameter.h"

namespace clnet::nn {

namespace {

void leave() {
  auto& now = here();
  if (--now.cloning_depth > 0) return;
  now.clones.reset();
  now.uncounted = now.uncounted_outside;
}

}  // namespace

Clones* cloning_now() { return here().clones.get(); }

std::shared_ptr<void> detail::shared_or_cloned(const std::shared_ptr<void>& what,
                                               std::shared_ptr<void> (*make)(const void* what)) {
  auto* clones = cloning_now();
  if (!clones || !what) return what;
  if (const auto found = clones->shared.find(what.get()); found != clones->shared.end()) return found->second.second;
  // A handle may be the first that asks, but others share it.
  const Uncounted shared(false);
  auto made = make(what.get());
  clones->shared.emplace(what.get(), std::pair(what, made));
  return made;
}

Cloning::Cloning() {
  auto& now = here();
  if (now.cloning_depth++ > 0) return;
  now.clones = std::make_unique<Clones>();
  // Also where a layer clones its parts while a handle copies it.
  now.uncounted_outside = std::exchange(now.uncounted, false);
}
Cloning::~Cloning() {
  if (on_) leave();
}

void Cloning::finish() {
  if (here().cloning_depth == 1) Module::finish_clones(*here().clones);
  on_ = false;
  leave();
}

void Module::finish_clones(Clones& copied) {
  struct Made {
    std::shared_ptr<State> original, copy;
    long handles = 0;  ///< of the copy, before children's layers are copied
  };
  std::unordered_set<const void*> known;
  const auto new_ones = [&] {
    std::vector<Made> found;
    for (const auto& [key, pair] : copied.states)
      if (known.insert(key).second)
        found.push_back({std::static_pointer_cast<State>(pair.first), std::static_pointer_cast<State>(pair.second)});
    return found;
  };
  auto all = new_ones();
  std::unordered_map<const Slot*, long> slot_handles;
  for (auto& made : all) {
    made.handles = made.copy->handles;
    made.copy->each_own([&](const Parameter& own) { slot_handles[own_slot_of(own).get()] = own_slot_of(own)->handles; });
  }
  // What child() calls holds handles, too, as many in the copies as in the originals; none of them is a member of the model.
  for (auto open = all; !open.empty(); open = new_ones())
    for (const auto& made : open) State::copy_layer(made.copy, *made.original);

  // How often models refer to a slot, beside the handles of parameters.
  std::unordered_map<const Slot*, long> slots;
  for (const auto& made : all) made.copy->each_own([&](const Parameter& own) { ++slots[own_slot_of(own).get()]; });
  for (const auto& made : all) {
    const long of_layers = made.copy->handles - made.handles;
    if (made.original->handles <= of_layers || made.handles > 0) continue;
    for (const auto* list : {&made.copy->parameters, &made.copy->buffers, &made.copy->unsaved})
      for (const auto& [name, own] : *list)
        if (slot_handles[own_slot_of(own).get()] == slots[own_slot_of(own).get()])
          throw Error(
              fmt::format("clone: child '{}' is held by pointer, or by a handle outside of the module, so that the copy might "
                          "not use its own '{}'; hold layers as members and drop other handles",
                          made.copy->known_as, name));
  }
}

}  // namespace clnet::nn
