#include "lib/ops/optimize/optimizer_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "clnet/error.h"
#include "lib/exec/choose/past_caches.h"
#include "lib/exec/record/recorder.h"
#include "lib/ops/rows.h"

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
  OptimizerUpdate(UpdateRule rule, const UpdateConstants& constants, bool gated)
      : rule_(rule), constants_(constants), gated_(gated) {}
  std::string_view name() const override { return "optimizer_update"; }
  Precision precision() const override { return Precision::own; }
  Fields fields() const override {
    Fields fields{{"rule", static_cast<std::int64_t>(rule_)},
                  {"decay", constants_.decay},
                  {"beta2", constants_.beta2},
                  {"eps", constants_.eps},
                  {"nesterov", constants_.nesterov}};
    if (gated_) fields.emplace_back("gated", gated_);
    return fields;
  }

  // Inputs: rate, shrink, second scale, beta1 and its rest, finite where it is gated; then for each parameter: itself, its
  // gradient, its state.
  Specs infer(const Specs& inputs) const override {
    Specs outputs;
    for (std::size_t at = scalars(); at < inputs.size(); at += 2 + states()) {
      const auto& parameter = inputs[at];
      if (inputs[at + 1].shape != parameter.shape)
        throw ShapeError(fmt::format("optimizer_update: a parameter of {} with a gradient of {}", to_string(parameter),
                                     to_string(inputs[at + 1])));
      outputs.push_back(parameter);
      for (std::size_t i = 0; i < states(); ++i) {
        const auto& state = inputs[at + 2 + i];
        if (state != Spec{parameter.shape, Dtype::f32})
          throw ShapeError(
              fmt::format("optimizer_update: a parameter of {} with state {}", to_string(parameter), to_string(state)));
        outputs.push_back(state);
      }
    }
    return outputs;
  }

  void lower(exec::Recorder& r) const override {
    // As many parameters of one dtype per launch as the kernel knows and the device takes: 16 bytes per buffer, 8 for the sizes,
    // 48 for the rest, and as much for scalars in buffers. A function in SPIR-V takes 255 arguments; a buffer is two of them.
    const auto buffers = 3 + 2 * states(), bytes = 16 * buffers + 8, room = r.device().max_parameter_size - (gated_ ? 96 : 48);
    const auto most = std::clamp<std::size_t>(std::min(room / bytes, (255 - 16) / (2 * buffers + 2)), 1, 16);
    struct Batch {
      std::vector<std::size_t> which;
      std::int64_t elements = 0;
    };
    std::map<std::pair<Dtype, Dtype>, Batch> batches;
    for (std::size_t k = 0; k < (r.input_count() - scalars()) / (2 + states()); ++k) {
      r.expect_change(parameter(r, k));
      const auto& spec = r.spec(parameter(r, k));
      if (spec.shape.numel() == 0) continue;
      auto& batch = batches[{spec.dtype, r.spec(gradient(r, k)).dtype}];
      // The kernel's work-items are counted in 32 bits over all of a launch's tensors.
      if (batch.which.size() == most || batch.elements + spec.shape.numel() > std::numeric_limits<std::int32_t>::max())
        lower_batch(r, std::exchange(batch, {}).which);
      batch.which.push_back(k);
      batch.elements += spec.shape.numel();
    }
    for (const auto& [dtypes, batch] : batches)
      if (!batch.which.empty()) lower_batch(r, batch.which);
  }

 private:
  /// Elements per work-item on CPUs: enough to be worth starting one.
  static constexpr std::int64_t chunk = 4096;

  std::size_t scalars() const { return gated_ ? 6 : 5; }
  std::size_t states() const { return static_cast<std::size_t>(state_count(rule_)); }
  exec::Ref parameter(const exec::Recorder& r, std::size_t k) const { return r.input(scalars() + k * (2 + states())); }
  exec::Ref gradient(const exec::Recorder& r, std::size_t k) const { return r.input(scalars() + k * (2 + states()) + 1); }

  /// Of all launches: who reads them comes after the last one.
  std::int64_t result_bytes(const exec::Recorder& r) const {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < (r.input_count() - scalars()) / (2 + states()); ++k)
      for (std::size_t i = 0; i <= states(); ++i) bytes += r.spec(r.output(k * (1 + states()) + i)).bytes();
    return bytes;
  }

  void lower_batch(exec::Recorder& r, const std::vector<std::size_t>& batch) const {
    constexpr std::string_view names[] = {"m", "v"};
    const bool vectors = r.device().prefers_vector_kernels;
    std::int64_t items = 0, elements = 0;
    for (const auto k : batch) elements += r.spec(parameter(r, k)).shape.numel();
    // On GPUs 16 bytes of state at a time, as long as there are two waves of work-items or more for each unit.
    const std::int64_t lanes = !vectors && elements / 4 >= 64 * std::int64_t{r.device().compute_units} ? 4 : 1;
    auto& launch = r.kernel("optimizer_update", "optimizer_update");
    launch.define("RULE", static_cast<std::int64_t>(rule_)).define("COUNT", static_cast<std::int64_t>(batch.size()));
    launch.define("VW", vectors ? vector_width(r.device()) : 1).define("CHUNK", chunk);
    if (lanes > 1) launch.define("LANES", lanes);
    if (exec::past_caches(r.device(), result_bytes(r))) launch.define("STREAM", 1);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto first_in = scalars() + batch[i] * (2 + states()), first_out = batch[i] * (1 + states());
      const auto count = r.spec(r.input(first_in)).shape.numel(), its_items = ceil_div(count, vectors ? chunk : lanes);
      launch.in(fmt::format("p{}", i), r.input(first_in)).in(fmt::format("g{}", i), r.input(first_in + 1));
      launch.out(fmt::format("new_p{}", i), r.output(first_out));
      for (std::size_t s = 0; s < states(); ++s)
        launch.in(fmt::format("{}{}", names[s], i), r.input(first_in + 2 + s), exec::Access::same_element)
            .only_for(r.output(first_out + 1 + s))
            .out(fmt::format("new_{}{}", names[s], i), r.output(first_out + 1 + s));
      launch.args({count, its_items});
      items += its_items;
    }
    // What the device computes is read from its buffer.
    const auto number = [&](const char* name, const char* computed, std::size_t input) {
      if (r.host_scalar(input))
        launch.scalar(name, r.input(input));
      else
        launch.define(computed, 1).in(name, r.input(input));
    };
    number("rate", "RATE_COMPUTED", 0);
    launch.scalar("shrink", r.input(1));
    number("second_scale", "SECOND_SCALE_COMPUTED", 2);
    launch.scalar("beta1", r.input(3)).scalar("beta1_rest", r.input(4));
    if (gated_) launch.define("GATED", 1).in("finite", r.input(5));
    for (double constant : {constants_.decay, constants_.beta2, 1 - constants_.beta2, constants_.eps})
      launch.arg_float(static_cast<float>(constant));
    launch.arg(constants_.nesterov).range({items}, {vectors ? 1 : group_size(r.device())});
    launch.flops(12.0 * static_cast<double>(elements)).detail(fmt::format("{} parameters", batch.size()));
  }

  UpdateRule rule_;
  UpdateConstants constants_;
  bool gated_;
};

}  // namespace

Tensors optimizer_update(UpdateRule rule, const std::vector<UpdateTensors>& tensors, const UpdateConstants& constants,
                         const UpdateScalars& scalars) {
  if (tensors.empty()) return {};
  Tensors inputs{scalars.rate, scalars.shrink, scalars.second_scale, scalars.beta1, scalars.beta1_rest};
  if (scalars.finite.defined()) inputs.push_back(scalars.finite);
  for (const auto& [parameter, gradient, state] : tensors) {
    inputs.push_back(parameter);
    inputs.push_back(gradient);
    inputs.insert(inputs.end(), state.begin(), state.end());
  }
  return apply_all(std::make_shared<OptimizerUpdate>(rule, constants, scalars.finite.defined()), std::move(inputs));
}

}  // namespace clnet::ops
