#include "lib/train/hooks.h"

#include <fmt/format.h>

#include <exception>

#include "clnet/error.h"

namespace clnet::train {

Hook::~Hook() = default;
bool Hook::only_observes() const { return false; }
void Hook::before_training(Run&) {}
void Hook::after_training(Run&) {}
void Hook::before_epoch(Run&) {}
void Hook::after_epoch(Run&) {}
void Hook::before_step(Run&) {}
void Hook::after_step(Run&) {}
void Hook::on_loss(Run&, std::int64_t, double) {}
void Hook::before_evaluation(Run&) {}
void Hook::after_evaluation(Run&) {}
void Hook::before_checkpoint(Run&) {}

io::StateDict Hook::state_dict() const { return {}; }
void Hook::load_state_dict(const io::StateDict& state) {
  if (!state.empty()) throw Error(fmt::format("the state does not fit the hook {}: it has none", name()));
}

namespace {

/// Calls the hook; its errors say its name. Exceptions of the caller's own classes stay as they are.
template <class What>
void call_named(const Hook& hook, const What& what) {
  try {
    what();
  } catch (Error& error) {
    error.place("hook " + hook.name());
    throw;
  }
}

}  // namespace

void Hooks::drop_observers() {
  std::erase_if(hooks_, [](const auto& hook) { return hook->only_observes(); });
}

void Hooks::before(Call call) const {
  for (const auto& hook : hooks_) call_named(*hook, [&] { ((*hook).*call)(run_); });
}

void Hooks::after(Call call) const {
  std::exception_ptr first;
  for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) {
    try {
      call_named(**hook, [&] { ((**hook).*call)(run_); });
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void Hooks::on_loss(std::int64_t step, double loss) const {
  for (const auto& hook : hooks_) call_named(*hook, [&] { hook->on_loss(run_, step, loss); });
}

std::string Hooks::names() const {
  std::string names;
  for (const auto& hook : hooks_)
    if (!hook->only_observes()) names += (names.empty() ? "" : ", ") + hook->name();
  return names;
}

std::vector<io::LoadedPart> Hooks::parts() const {
  std::vector<io::LoadedPart> parts;
  for (const auto& hook : hooks_)
    if (!hook->only_observes()) parts.emplace_back(fmt::format("hook{}", parts.size()), *hook);
  return parts;
}

}  // namespace clnet::train
