// Handles to layers whose class is not known: what child() gives.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/nn/module.h"
#include "lib/nn/cloning.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"

namespace clnet::nn {

std::size_t detail::position_of(const char* who, std::int64_t position, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size), place = position < 0 ? position + count : position;
  if (place < 0 || place >= count) throw Error(fmt::format("{}: there is no layer {}; it has {}", who, position, size));
  return static_cast<std::size_t>(place);
}

Child::Child(const std::shared_ptr<State>& state) : Module(state), class_(state->layer_class) {
  if (state->copied) {
    const Uncounted uncounted;
    layer_ = State::layer_with(state, *state);
  } else {
    layer_ = state->pointer.lock();
    by_pointer_ = true;
  }
}

Child::Child(const Step& step) : Module(step.module_ ? step.module_()->state_ : nullptr), class_(step.class_) {
  if (!step.module_) {
    const Uncounted uncounted;
    layer_ = std::make_shared<Function>(step.call_);
    class_ = &detail::layer_class<Function>();
    state_ = layer_->state_;
  } else if (const auto* handle = dynamic_cast<const Child*>(step.module_())) {
    layer_ = handle->layer_;
    class_ = handle->class_;
    by_pointer_ = handle->by_pointer_;
  } else if (step.pointer_) {
    layer_ = step.pointer_;
    by_pointer_ = true;
  } else {
    const Uncounted uncounted;
    layer_ = class_->copy(*step.module_());
  }
}

Child::Child(const Child& other)
    : Module(State::copy_of(other.state_)), layer_(other.layer_), class_(other.class_), by_pointer_(other.by_pointer_) {
  if (!cloning_now() || !layer_) return;
  if (by_pointer_) throw Error(fmt::format("clone: a {} that is held by pointer has no copy", layer_->kind()));
  const Uncounted uncounted;
  layer_ = class_->copy(*other.layer_);
}

Child& Child::operator=(const Child& other) & {
  if (this == &other) return *this;
  state_ = other.state_;
  layer_ = other.layer_;
  class_ = other.class_;
  by_pointer_ = other.by_pointer_;
  return *this;
}

Tensor Child::called_with_one(const Tensor& x) const { return layer_ ? class_->call(*layer_, x) : Module::called_with_one(x); }

Tensor Child::forward(const Tensor& x) {
  if (layer_) return layer_->forward(x);
  throw Unsupported(fmt::format(
      "module: '{}' cannot be called by its name: it was added as a Module, its class has no copies, or its pointer is "
      "gone; add the layer itself or its shared_ptr",
      state_->known_as));
}

std::string Child::kind() const {
  if (const auto* other = replacement()) return other->kind();
  return layer_ ? layer_->kind() : "Module";
}

}  // namespace clnet::nn
