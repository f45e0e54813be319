#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/optim.h"
#include "lib/graph/node.h"
#include "lib/graph/slot.h"
#include "lib/ops/optimize/optimizer_update.h"

namespace clnet::optim {

namespace {

/// What each algorithm calls the state it keeps; PyTorch's names.
std::vector<std::string> state_names(ops::UpdateRule rule) {
  switch (rule) {
    case ops::UpdateRule::sgd: return {};
    case ops::UpdateRule::sgd_momentum: return {"momentum_buffer"};
    case ops::UpdateRule::adam: return {"exp_avg", "exp_avg_sq"};
    case ops::UpdateRule::rmsprop: return {"square_avg"};
    case ops::UpdateRule::rmsprop_momentum: return {"square_avg", "momentum_buffer"};
  }
  return {};
}

/// The values of slots that a gradient of the loss may arrive at, by the slot's id.
std::unordered_map<std::uint64_t, std::vector<Tensor>> leaves_by_slot(const Tensor& loss) {
  std::unordered_map<std::uint64_t, std::vector<Tensor>> result;
  std::unordered_set<const Node*> seen{loss.node().get()};
  std::vector<Tensor> open{loss};
  while (!open.empty()) {
    const auto tensor = std::move(open.back());
    open.pop_back();
    if (const auto slot = tensor.node()->slot; slot != 0) {
      result[slot].push_back(tensor);
      continue;
    }
    if (tensor.node()->op && tensor.node()->op->name() == "stop_gradient") continue;
    for (const auto& input : tensor.node()->inputs)
      if (is_floating(input.dtype()) && seen.insert(input.node().get()).second) open.push_back(input);
  }
  return result;
}

void require(bool good, const char* optimizer, const char* what, double value) {
  if (!good) throw Error(fmt::format("{}: {} cannot be {}", optimizer, what, value));
}

}  // namespace

struct Optimizer::Impl {
  struct Slot {
    std::string name;
    nn::Parameter parameter;
    std::vector<nn::Parameter> state;
  };

  std::string_view name;
  ops::UpdateRule rule;
  ops::UpdateConstants constants;
  double rate;
  double shrink_decay;  // AdamW's
  double clip_norm;
  std::int64_t steps = 0;
  std::vector<Slot> slots;

  Impl(std::string_view algorithm, const nn::Module& module, ops::UpdateRule r, const ops::UpdateConstants& c,
       double learning_rate, double decoupled_decay, double clip)
      : name(algorithm), rule(r), constants(c), rate(learning_rate), shrink_decay(decoupled_decay), clip_norm(clip) {
    for (auto& [full_name, parameter] : module.parameters()) {
      Slot slot{full_name, parameter, {}};
      const auto& shape = parameter.value().shape();
      const std::vector<float> nothing(static_cast<std::size_t>(shape.numel()), 0.0F);
      for (int i = 0; i < ops::state_count(rule); ++i) slot.state.emplace_back(Tensor::from(nothing, shape));
      slots.push_back(std::move(slot));
    }
  }

  ops::UpdateScalars scalars() const {
    const auto t = static_cast<double>(steps + 1);
    double step_size = rate, second_scale = 1;
    if (rule == ops::UpdateRule::adam) {
      step_size = rate / (1 - std::pow(constants.beta1, t));
      second_scale = 1 / std::sqrt(1 - std::pow(constants.beta2, t));
    }
    return {Tensor::scalar(step_size), Tensor::scalar(1 - rate * shrink_decay), Tensor::scalar(second_scale)};
  }

  /// The gradient of each parameter, taken at the value that the loss was built with; undefined where the loss does not
  /// reach it.
  std::vector<Tensor> gradients_of(const Tensor& loss) const {
    const auto reached = leaves_by_slot(loss);
    std::vector<Tensor> leaves;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto& slot = slots[i];
      const auto found = reached.find(slot.parameter.slot()->id);
      if (found == reached.end()) continue;
      if (found->second.size() > 1)
        throw Error(fmt::format(
            "{}: the loss was made with {} different values of {}, before and after a change; detach() what the other "
            "ones gave",
            name, found->second.size(), slot.name));
      leaves.push_back(found->second[0]);
      which.push_back(i);
    }
    if (leaves.empty())
      throw Error(fmt::format("{}: the loss depends on none of its {} parameters{}; it may be another model's", name,
                              slots.size(), slots.empty() ? "" : fmt::format(" ({} is the first)", slots[0].name)));
    const auto reached_gradients = gradients(loss, leaves);
    std::vector<Tensor> result(slots.size());
    for (std::size_t i = 0; i < which.size(); ++i) result[which[i]] = reached_gradients[i];
    return result;
  }

  /// The new values of everything that a step changes, and where they go.
  using Update = std::vector<std::pair<nn::Parameter, Tensor>>;

  /// Parameters with an undefined gradient stay as they are.
  Update update(const std::vector<Tensor>& all) const {
    std::vector<const Slot*> moved;
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!all[i].defined()) continue;
      moved.push_back(&slots[i]);
      gradients.push_back(all[i]);
    }
    if (clip_norm > 0) gradients = clip_by_norm(gradients, clip_norm);
    std::vector<ops::UpdateTensors> tensors;
    std::vector<nn::Parameter> targets;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const auto& slot = *moved[i];
      tensors.push_back({slot.parameter, gradients[i], {slot.state.begin(), slot.state.end()}});
      targets.push_back(slot.parameter);
      targets.insert(targets.end(), slot.state.begin(), slot.state.end());
    }
    const auto values = ops::optimizer_update(rule, tensors, constants, scalars());
    Update result;
    for (std::size_t i = 0; i < targets.size(); ++i) result.emplace_back(targets[i], values[i]);
    return result;
  }

  /// Computes the update along with `more`, and only then changes anything.
  void run(const Update& update, const Tensor& more = {}) {
    std::vector<Tensor> wanted;
    for (const auto& [target, value] : update) wanted.push_back(value);
    if (more.defined()) wanted.push_back(more);
    eval(wanted);
    // assign() would evaluate once more.
    for (const auto& [target, value] : update) nn::Parameter(target).set(value);
    ++steps;
  }
};

void Optimizer::require_made(std::string_view call) const {
  if (!impl_) throw Error(fmt::format("optimizer: {}() on an optimizer that was never made", call));
}

Tensor Optimizer::step(const Tensor& loss) {
  require_made("step");
  if (!loss.defined()) throw Error(fmt::format("{}: the loss is undefined", impl_->name));
  impl_->run(impl_->update(impl_->gradients_of(loss)), loss);
  return loss.detach();
}

void Optimizer::apply(const std::vector<Tensor>& gradients) {
  require_made("apply");
  const auto& slots = impl_->slots;
  if (gradients.size() != slots.size())
    throw Error(fmt::format("{}: {} gradients for {} parameters", impl_->name, gradients.size(), slots.size()));
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!gradients[i].defined()) throw Error(fmt::format("{}: the gradient of {} is undefined", impl_->name, slots[i].name));
  impl_->run(impl_->update(gradients));
}

double Optimizer::learning_rate() const {
  require_made("learning_rate");
  return impl_->rate;
}
void Optimizer::set_learning_rate(double rate) {
  require_made("set_learning_rate");
  require(rate >= 0 && std::isfinite(rate), "optimizer", "the learning rate", rate);
  impl_->rate = rate;
}
std::int64_t Optimizer::steps() const {
  require_made("steps");
  return impl_->steps;
}

bool Optimizer::made_for(const nn::Module& module) const {
  const auto parameters = module.parameters();
  return impl_ && std::equal(parameters.begin(), parameters.end(), impl_->slots.begin(), impl_->slots.end(),
                             [](const auto& theirs, const Impl::Slot& ours) {
                               return theirs.first == ours.name && theirs.second.same(ours.parameter);
                             });
}

io::StateDict Optimizer::state() const {
  require_made("state");
  io::StateDict result{{"step", Tensor::scalar(static_cast<double>(impl_->steps), Dtype::i64)}};
  const auto names = state_names(impl_->rule);
  for (const auto& slot : impl_->slots)
    for (std::size_t i = 0; i < names.size(); ++i) result.emplace_back(slot.name + '.' + names[i], slot.state[i].value());
  return result;
}

void Optimizer::load_state(const io::StateDict& state) {
  require_made("load_state");
  std::map<std::string, Tensor> given;
  std::vector<std::string> faults;
  std::vector<std::pair<nn::Parameter, Tensor>> changes;
  for (const auto& [name, tensor] : state)
    if (!given.emplace(name, tensor).second) faults.push_back(fmt::format("{} is given twice", name));
  const auto take = [&](const std::string& name, const Spec& spec) -> Tensor {
    const auto found = given.find(name);
    if (found == given.end()) {
      faults.push_back(fmt::format("{} is missing", name));
      return {};
    }
    auto tensor = found->second;
    given.erase(found);
    if (!tensor.defined())
      faults.push_back(fmt::format("{} is undefined", name));
    else if (tensor.spec() != spec)
      faults.push_back(fmt::format("{} is {}, not {}", name, to_string(tensor.spec()), to_string(spec)));
    return tensor;
  };
  const auto step = take("step", {Shape{}, Dtype::i64});
  const auto names = state_names(impl_->rule);
  for (const auto& slot : impl_->slots)
    for (std::size_t i = 0; i < names.size(); ++i)
      changes.emplace_back(slot.state[i], take(slot.name + '.' + names[i], slot.state[i].value().spec()));
  for (const auto& [name, tensor] : given) faults.push_back(fmt::format("{} is not known", name));
  const auto steps = faults.empty() ? step.item<std::int64_t>() : 0;
  if (steps < 0) faults.push_back(fmt::format("step is {}", steps));
  if (!faults.empty()) throw Error(fmt::format("the state does not fit the optimizer: {}", fmt::join(faults, "; ")));
  impl_->steps = steps;
  for (auto& [parameter, tensor] : changes) parameter.set(tensor);
}

SGD::SGD(const nn::Module& module, const SGDOptions& o)
    : Optimizer([&] {
        require(o.learning_rate >= 0, "SGD", "learning_rate", o.learning_rate);
        require(o.momentum >= 0, "SGD", "momentum", o.momentum);
        require(o.weight_decay >= 0, "SGD", "weight_decay", o.weight_decay);
        if (o.nesterov) require(o.momentum > 0, "SGD", "nesterov's momentum", o.momentum);
        return std::make_shared<Impl>("SGD", module, o.momentum > 0 ? ops::UpdateRule::sgd_momentum : ops::UpdateRule::sgd,
                                      ops::UpdateConstants{.decay = o.weight_decay, .beta1 = o.momentum, .nesterov = o.nesterov},
                                      o.learning_rate, 0.0, o.clip_norm);
      }()) {}

namespace {

ops::UpdateConstants adam_constants(const char* name, const AdamOptions& o, double decay) {
  require(o.learning_rate >= 0, name, "learning_rate", o.learning_rate);
  require(o.beta1 >= 0 && o.beta1 < 1, name, "beta1", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, name, "beta2", o.beta2);
  require(o.eps >= 0, name, "eps", o.eps);
  require(o.weight_decay >= 0, name, "weight_decay", o.weight_decay);
  return {.decay = decay, .beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps};
}

}  // namespace

Adam::Adam(const nn::Module& module, const AdamOptions& o)
    : Optimizer(std::make_shared<Impl>("Adam", module, ops::UpdateRule::adam, adam_constants("Adam", o, o.weight_decay),
                                       o.learning_rate, 0.0, o.clip_norm)) {}

AdamW::AdamW(const nn::Module& module, const AdamOptions& o)
    : Optimizer(std::make_shared<Impl>("AdamW", module, ops::UpdateRule::adam, adam_constants("AdamW", o, 0), o.learning_rate,
                                       o.weight_decay, o.clip_norm)) {}

RMSprop::RMSprop(const nn::Module& module, const RMSpropOptions& o)
    : Optimizer([&] {
        require(o.learning_rate >= 0, "RMSprop", "learning_rate", o.learning_rate);
        require(o.alpha >= 0, "RMSprop", "alpha", o.alpha);
        require(o.eps >= 0, "RMSprop", "eps", o.eps);
        require(o.momentum >= 0, "RMSprop", "momentum", o.momentum);
        require(o.weight_decay >= 0, "RMSprop", "weight_decay", o.weight_decay);
        return std::make_shared<Impl>(
            "RMSprop", module, o.momentum > 0 ? ops::UpdateRule::rmsprop_momentum : ops::UpdateRule::rmsprop,
            ops::UpdateConstants{.decay = o.weight_decay, .beta1 = o.momentum, .beta2 = o.alpha, .eps = o.eps}, o.learning_rate,
            0.0, o.clip_norm);
      }()) {}

std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double max_norm) {
  if (!(max_norm > 0)) throw Error(fmt::format("clip_by_norm: the norm must be above 0, not {}", max_norm));
  const Tensor scale = minimum(max_norm / (global_norm(gradients) + 1e-6), 1.0);
  std::vector<Tensor> result;
  for (const auto& gradient : gradients) result.push_back(cast(cast(gradient, Dtype::f32) * scale, gradient.dtype()));
  return result;
}

}  // namespace clnet::optim
