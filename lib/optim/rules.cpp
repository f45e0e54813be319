#include "lib/optim/rules.h"

#include "clnet/ops.h"

namespace clnet::optim {

std::vector<Rule::State> NativeRule::states(const Shape&) const {
  std::vector<State> result;
  for (const auto& state : settings_.states) result.push_back({state});
  return result;
}

Rule::Result NativeRule::update(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& states,
                                const Step& step) const {
  return update_all({{parameter, gradient, states}}, step)[0];
}

std::vector<Rule::Result> NativeRule::update_all(const std::vector<Item>& items, const Step& step) const {
  const auto& constants = settings_.constants;
  const double beta1 = step.momentum.value_or(settings_.momentum.value_or(0));
  Number step_size = step.rate, second_scale = 1;
  if (settings_.rule == ops::UpdateRule::adam) {
    step_size = step.rate / seen(beta1, step);
    second_scale = 1 / root(seen(constants.beta2, step));
  }
  const ops::UpdateScalars scalars{step_size.tensor(),        Tensor::scalar(1 - step.rate * settings_.shrink_decay),
                                   second_scale.tensor(),     Tensor::scalar(beta1),
                                   Tensor::scalar(1 - beta1), step.finite};
  std::vector<ops::UpdateTensors> tensors;
  for (const auto& [parameter, gradient, states] : items)
    tensors.push_back({parameter, settings_.maximize ? -gradient : gradient, states});
  const auto values = ops::optimizer_update(settings_.rule, tensors, constants, scalars);
  std::vector<Result> results;
  auto next = values.begin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto states = next + 1;
    const auto end = states + static_cast<std::ptrdiff_t>(settings_.states.size());
    results.push_back({*next, {states, end}});
    next = end;
  }
  return results;
}

Tensor ComposedRule::slope(const Tensor& parameter, const Tensor& gradient) const {
  const Tensor downhill = maximize_ ? -gradient : gradient;
  return how_ == Decay::joins_gradient && decay_ > 0 ? downhill + parameter * decay_ : downhill;
}

Tensor ComposedRule::shrunk(const Tensor& parameter, const Step& step) const {
  return how_ == Decay::shrinks && decay_ > 0 ? parameter * (1 - step.rate * decay_) : parameter;
}

Tensor moving_average(const Tensor& before, const Tensor& now, const Number& share) { return before * share + now * (1 - share); }

Tensor kept_buffer(const Tensor& before, const Tensor& now, double momentum) {
  return where(Tensor::scalar(momentum > 0 ? 1 : 0, Dtype::boolean), now, before);
}

}  // namespace clnet::optim
