#include "lib/ops/optimizer_update.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/exec/recorder.h"

namespace clnet::ops {

int state_count(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd: return 0;
    case UpdateRule::sgd_momentum:
    case UpdateRule::rmsprop: return 1;
    case UpdateRule::adam:
    case UpdateRule::rmsprop_momentum: return 2;
  }
  return 0;
}

namespace {

class OptimizerUpdate : public Op {
 public:
  OptimizerUpdate(UpdateRule rule, const UpdateConstants& constants) : rule_(rule), constants_(constants) {}
  std::string_view name() const override { return "optimizer_update"; }
  Fields fields() const override {
    return {{"rule", static_cast<std::int64_t>(rule_)},
            {"decay", constants_.decay},
            {"beta1", constants_.beta1},
            {"beta2", constants_.beta2},
            {"eps", constants_.eps},
            {"nesterov", constants_.nesterov}};
  }

  // Inputs: parameter, gradient, rate, shrink, second scale, then the state.
  Specs infer(const Specs& inputs) const override {
    const auto& parameter = inputs[0];
    if (inputs[1].shape != parameter.shape)
      throw ShapeError(
          fmt::format("optimizer_update: a parameter of {} with a gradient of {}", to_string(parameter), to_string(inputs[1])));
    Specs outputs{parameter};
    for (std::size_t i = first_state; i < inputs.size(); ++i) {
      if (inputs[i] != Spec{parameter.shape, Dtype::f32})
        throw ShapeError(
            fmt::format("optimizer_update: a parameter of {} with state {}", to_string(parameter), to_string(inputs[i])));
      outputs.push_back(inputs[i]);
    }
    return outputs;
  }

  void lower(exec::Recorder& r) const override {
    constexpr std::string_view names[] = {"m", "v"}, new_names[] = {"new_m", "new_v"};
    const auto count = r.spec(r.input(0)).shape.numel();
    auto& launch = r.kernel("optimizer_update", "optimizer_update");
    launch.define("RULE", static_cast<std::int64_t>(rule_)).in("p", r.input(0)).in("g", r.input(1)).out("new_p", r.output(0));
    for (std::size_t i = 0; i + first_state < r.input_count(); ++i)
      launch.in(names[i], r.input(first_state + i)).out(new_names[i], r.output(1 + i));
    launch.scalar("rate", r.input(2)).scalar("shrink", r.input(3)).scalar("second_scale", r.input(4));
    for (double constant : {constants_.decay, constants_.beta1, constants_.beta2, constants_.eps})
      launch.arg_float(static_cast<float>(constant));
    const auto group = static_cast<std::int64_t>(std::min<std::size_t>(256, r.device().max_work_group_size));
    launch.arg(constants_.nesterov).arg(count).range({count}, {group}).flops(12.0 * static_cast<double>(count));
  }

 private:
  static constexpr std::size_t first_state = 5;
  UpdateRule rule_;
  UpdateConstants constants_;
};

}  // namespace

Tensors optimizer_update(UpdateRule rule, const Tensor& parameter, const Tensor& gradient, const Tensors& state,
                         const UpdateConstants& constants, const UpdateScalars& scalars) {
  Tensors inputs{parameter, gradient, scalars.rate, scalars.shrink, scalars.second_scale};
  inputs.insert(inputs.end(), state.begin(), state.end());
  return apply_all(std::make_shared<OptimizerUpdate>(rule, constants), std::move(inputs));
}

}  // namespace clnet::ops
