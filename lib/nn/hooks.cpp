// Functions that see the outputs of layers.
#include <fmt/format.h>

#include <atomic>
#include <unordered_map>

#include "clnet/error.h"
#include "clnet/nn/features.h"
#include "lib/graph/capture.h"
#include "lib/nn/here.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"

namespace clnet::nn {

/// The layers that a call of features() waits for, by their states.
struct Awaited {
  std::unordered_map<const void*, Tensor> outputs;
  /// Outputs within another function that is being compiled have no values outside.
  const Capture* capture = capturing();
  Awaited* outer;
};

Hook Module::on_forward(const ForwardHook& hook) const {
  if (!hook) throw Error("on_forward: the hook is no function");
  if (state_->function && !state_->is_part())
    throw Error("on_forward: functions of a Sequential have no hooks; put a layer there, as nn::ReLU(), or a module of your own");
  static std::atomic<std::uint64_t> count{0};
  const auto entry = std::make_shared<const HookEntry>(HookEntry{hook, ++count, capturing() ? capturing()->id : 0});
  std::erase_if(state_->hooks, [](const auto& one) { return one.expired(); });
  state_->hooks.push_back(entry);
  return Hook(entry);
}

Hook Module::on_forward(const std::string& name, const ForwardHook& hook) const { return Module(part(name)).on_forward(hook); }

void Module::finish(const Tensor& x, Tensor& y) const {
  if (!state_->hooks.empty()) {
    // What a hook calls is no part of what a forward() calls.
    struct Outside {
      const Call* call = Call::resume(nullptr);
      ~Outside() { Call::resume(call); }
    } outside;
    // A hook may make or remove hooks.
    const auto hooks = state_->hooks;
    for (const auto& hook : hooks)
      if (const auto entry = hook.lock())
        if (auto other = entry->call(x, y); other.defined()) y = std::move(other);
  }
  if (!state_->successor) note_for_summary(state_.get(), *this, y);
  note_for_features(state_.get(), y);
}

void note_for_features(const void* state, const Tensor& output) {
  for (auto* one = here().awaited; one; one = one->outer)
    if (const auto found = one->outputs.find(state); found != one->outputs.end() && one->capture == capturing())
      found->second = output;
}

std::vector<Tensor> features(const Module& model, const std::function<void()>& forward, const std::vector<std::string>& names) {
  if (!forward) throw Error("features: the forward pass is no function");
  Awaited now{.outputs = {}, .outer = here().awaited};
  std::vector<const void*> states;
  for (const auto& name : names) {
    states.push_back(model.part(name).get());
    now.outputs.emplace(states.back(), Tensor{});
  }
  {
    struct Restore {
      Awaited* outer = here().awaited;
      ~Restore() { here().awaited = outer; }
    } restore;
    here().awaited = &now;
    forward();
  }
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    result.push_back(now.outputs[states[i]]);
    if (!result.back().defined()) throw Error(fmt::format("features: the forward pass does not call the layer '{}'", names[i]));
  }
  return result;
}

std::vector<Tensor> features(const Module& model, const Tensor& x, const std::vector<std::string>& names) {
  return features(
      model, [&] { model(x); }, names);
}

}  // namespace clnet::nn
