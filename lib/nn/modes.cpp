#include "lib/nn/modes.h"

#include "lib/nn/module_state.h"

namespace clnet::nn {

void Module::train(bool on) {
  State::each(present(), [&](const auto& state) { State::set_mode(state, on); });
}

bool Module::training() const {
  warn_if_unreached();
  return State::mode(present());
}

KeptModes::KeptModes(const Module& module) {
  Module::State::each(module.present(), [&](const auto& state) { modes_.emplace_back(state, Module::State::mode(state)); });
}
KeptModes::~KeptModes() {
  for (const auto& [state, on] : modes_) Module::State::set_mode(state, on);
}

bool Modes::all_in_inference(const Module& module) {
  bool result = true;
  Module::State::each(module.present(), [&](const auto& state) { result = result && !Module::State::mode(state); });
  return result;
}

std::size_t Modes::train_unfrozen(const Module& module) {
  using State = Module::State;
  using StatePtr = std::shared_ptr<State>;
  const bool anything_frozen = module.present()->held().frozen;
  // Statistics of a layer without parameters belong to what is frozen, if anything is.
  const auto is_frozen = [&](const State& state) {
    const auto held = state.held();
    return !held.trainable && (held.frozen || (held.buffers && anything_frozen));
  };
  std::size_t left = 0;
  const std::function<void(const StatePtr&)> look_at = [&](const StatePtr& state) {
    if (is_frozen(*state)) {
      State::each(state, [&](const StatePtr& part) { left += part->parameters.empty() && part->buffers.empty() ? 0 : 1; });
      return;
    }
    State::set_mode(state, true);
    for (const auto& [name, child] : state->children) look_at(State::noted_present(child));
  };
  look_at(module.present());
  return left;
}

}  // namespace clnet::nn
