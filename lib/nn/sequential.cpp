#include <fmt/format.h>

#include <deque>
#include <functional>
#include <memory>
#include <typeinfo>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "lib/nn/cloning.h"
#include "lib/nn/module_state.h"

namespace clnet::nn {

namespace {

/// A model that is only known by pointer.
struct Pointed {
  std::shared_ptr<Module> model;

  explicit Pointed(std::shared_ptr<Module> m) : model(std::move(m)) {}
  Pointed(const Pointed& other) : model(other.model) {
    if (cloning_now()) throw Error(fmt::format("clone: a {} that is held by pointer has no copy", model->kind()));
  }
  Tensor operator()(const Tensor& x) const { return (*model)(x); }
  Module* operator()() const { return model.get(); }
};

/// A layer by its class; a clone of what holds it holds a clone.
struct Held {
  std::shared_ptr<Module> layer;
  const detail::LayerClass* layer_class;

  Held(std::shared_ptr<Module> held, const detail::LayerClass& of) : layer(std::move(held)), layer_class(&of) {}
  Held(const Held& other) : layer(other.layer), layer_class(other.layer_class) {
    if (cloning_now()) layer = layer_class->copy(*other.layer);
  }
  Tensor operator()(const Tensor& x) const { return layer_class->call(*layer, x); }
  Module* operator()() const { return layer.get(); }
};

}  // namespace

Step::Step(std::unique_ptr<Module> layer, const detail::LayerClass& layer_class) : class_(&layer_class) {
  const Held held(std::move(layer), layer_class);
  call_ = held;
  module_ = held;
}

Step::Step(Tensor (*function)(const Tensor&)) : call_(function) {
  if (!function) throw Error("Sequential: a function is null");
}

Step::Step(Pointer pointer) : class_(&pointer.layer_class), pointer_(pointer.model) {
  if (!pointer.model) throw Error("Sequential: a model's pointer is null");
  const Pointed pointed(std::move(pointer.model));
  call_ = pointed;
  module_ = pointed;
}

/// A step that is running stays where it is when others come.
struct Sequential::Steps {
  std::deque<std::function<Tensor(const Tensor&)>> all;
};

Sequential::Sequential() : steps_(std::make_shared<Steps>()) {}
Sequential::Sequential(const Sequential& other) : Module(other), steps_(detail::shared_or_cloned(other.steps_)) {}

Sequential::Sequential(std::initializer_list<Step> steps) : Sequential() {
  // Sequential{sequential} is this constructor for some compilers, and the copy constructor for others.
  if (steps.size() == 1 && steps.begin()->module_ && !steps.begin()->pointer_) {
    const Module& only = *steps.begin()->module_();
    if (typeid(only) == typeid(Sequential)) {
      *this = static_cast<const Sequential&>(only);
      return;
    }
  }
  for (const auto& step : steps) append(step);
}

void Sequential::append(const Step& step) {
  if (step.module_) add_part(std::to_string(steps_->all.size()), *step.module_(), *step.class_, step.pointer_);
  steps_->all.push_back(step.call_);
}

std::size_t Sequential::size() const {
  return called(*this, [](auto& self) { return self.steps_->all.size(); });
}

Child Sequential::at(std::int64_t position) const {
  return called(*this, [&](auto& self) {
    const auto index = detail::position_of("Sequential", position, self.steps_->all.size());
    const auto name = std::to_string(index);
    if (State::find(self.state_, name).child) return self.child(name);
    Child function{Step(self.steps_->all[index])};
    function.state_->function = true;
    return function;
  });
}

Tensor Sequential::forward(const Tensor& x) {
  // A hook may append to this one, or assign to it.
  const auto steps = steps_;
  const auto count = steps->all.size();
  Tensor y = x;
  for (std::size_t i = 0; i < count; ++i) y = steps->all[i](y);
  return y;
}

}  // namespace clnet::nn
