// Handles to layers whose class is not known: what child() gives.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/nn/module.h"
#include "lib/nn/cloning.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"

namespace clnet::nn {

namespace {

thread_local const std::shared_ptr<void>* state_of_copies = nullptr;

}  // namespace

std::size_t detail::position_of(const char* who, std::int64_t position, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size), place = position < 0 ? position + count : position;
  if (place < 0 || place >= count) throw Error(fmt::format("{}: there is no layer {}; it has {}", who, position, size));
  return static_cast<std::size_t>(place);
}

void Module::State::keep_layer(const Module& layer, const detail::LayerClass& of, const std::weak_ptr<Module>& where) {
  if (copied || !pointer.expired()) return;
  const Module* it = &layer;
  const auto* its_class = &of;
  auto its_place = where;
  // A handle would keep what it is a handle of.
  if (const auto* handle = dynamic_cast<const Child*>(&layer)) {
    if (!handle->layer_) return;
    it = handle->layer_.get();
    its_class = handle->class_;
    if (handle->by_pointer_) its_place = handle->layer_;
  }
  layer_class = its_class;
  pointer = its_place;
  if (!pointer.expired()) return;
  copied = layer_class->copy(*it);
  if (copied) copied->state_ = nullptr;
}

std::shared_ptr<Module::State> Module::State::state_for_copy() {
  return state_of_copies ? std::static_pointer_cast<State>(*state_of_copies) : nullptr;
}

std::shared_ptr<Module> Module::State::layer_with(const std::shared_ptr<State>& state, const Module& stateless,
                                                  const detail::LayerClass& of) {
  const std::shared_ptr<void> given = state;
  struct Restore {
    const std::shared_ptr<void>* outer = state_of_copies;
    ~Restore() { state_of_copies = outer; }
  } restore;
  state_of_copies = &given;
  return of.copy(stateless);
}

void Module::State::copy_layer(const std::shared_ptr<State>& copy, const State& original) {
  copy->layer_class = original.layer_class;
  if (!original.copied || copy->copied) return;
  copy->copied = layer_with(copy, *original.copied, *original.layer_class);
  copy->copied->state_ = nullptr;
}

Child::Child(const std::shared_ptr<State>& state) : Module(state), class_(state->layer_class) {
  if (state->copied) {
    layer_ = State::layer_with(state, *state->copied, *class_);
  } else {
    layer_ = state->pointer.lock();
    by_pointer_ = true;
  }
}

Child::Child(const Step& step) : Module(step.module_ ? step.module_()->state_ : nullptr), class_(step.class_) {
  if (!step.module_) {
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
    layer_ = class_->copy(*step.module_());
  }
}

Child::Child(const Child& other) : Module(other), layer_(other.layer_), class_(other.class_), by_pointer_(other.by_pointer_) {
  if (!cloning_now() || !layer_) return;
  if (by_pointer_) throw Error(fmt::format("clone: a {} that is held by pointer has no copy", layer_->kind()));
  layer_ = class_->copy(*other.layer_);
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
