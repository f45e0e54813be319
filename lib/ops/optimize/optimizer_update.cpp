#include "lib/ops/optimize/optimizer_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "clnet/error.h"
#include "lib/exec/choose/nontemporal_stores.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
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

class OptimizerUpdate;

/// The parameters of one launch: `which` are indices into the operation's, `elements` is their total.
struct UpdateProblem {
  const OptimizerUpdate* update = nullptr;
  std::vector<std::size_t> which;
  std::int64_t elements = 0;
};
const exec::SolverList<UpdateProblem>& update_solvers();

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
    // As many parameters of one dtype per launch as kernel and device allow: 16 bytes per buffer, 8 for the sizes, 48 for the
    // rest, and as much for scalars in buffers. A SPIR-V function takes 255 arguments; a buffer is two of them.
    const auto buffers = 3 + 2 * states(), bytes = 16 * buffers + 8, room = r.device().max_parameter_size - (gated_ ? 96 : 48);
    const auto most = std::clamp<std::size_t>(std::min(room / bytes, (255 - 16) / (2 * buffers + 2)), 1, 16);
    std::map<std::pair<Dtype, Dtype>, UpdateProblem> batches;
    const auto launch = [&](const UpdateProblem& batch) {
      if (!batch.which.empty()) update_solvers().lower({this, batch.which, batch.elements}, r.device(), r);
    };
    for (std::size_t k = 0; k < (r.input_count() - scalars()) / (2 + states()); ++k) {
      r.expect_change(parameter(r, k));
      const auto& spec = r.spec(parameter(r, k));
      if (spec.shape.numel() == 0) continue;
      auto& batch = batches[{spec.dtype, r.spec(gradient(r, k)).dtype}];
      // The kernel counts its work-items in 32 bits over all of a launch's tensors.
      if (batch.which.size() == most || batch.elements + spec.shape.numel() > std::numeric_limits<std::int32_t>::max())
        launch(std::exchange(batch, {}));
      batch.which.push_back(k);
      batch.elements += spec.shape.numel();
    }
    for (const auto& [dtypes, batch] : batches) launch(batch);
  }

  /// A work-item takes `chunk` elements as vectors, or `lanes` elements with one load and store.
  void lower_batch(exec::Recorder& r, const UpdateProblem& batch) const {
    constexpr std::string_view names[] = {"m", "v"};
    const auto lanes = r.config()["lanes"], chunk = r.config().value("chunk", 0);
    std::int64_t items = 0;
    auto& launch = r.kernel("optimizer_update", "optimizer_update");
    launch.define("RULE", static_cast<std::int64_t>(rule_)).define("COUNT", static_cast<std::int64_t>(batch.which.size()));
    launch.define("VW", chunk > 0 ? lanes : 1);
    if (chunk > 0) launch.define("CHUNK", chunk);
    if (chunk == 0 && lanes > 1) launch.define("LANES", lanes);
    const auto bytes = result_bytes(r);
    if (exec::nontemporal_stores(r.device(), bytes)) launch.define("NONTEMPORAL_STORES", 1);
    if (exec::nontemporal_stores_in_place(r.device(), bytes)) launch.define("NONTEMPORAL_STATES", 1);
    for (std::size_t i = 0; i < batch.which.size(); ++i) {
      const auto first_in = scalars() + batch.which[i] * (2 + states()), first_out = batch.which[i] * (1 + states());
      const auto count = r.spec(r.input(first_in)).shape.numel(), its_items = ceil_div(count, chunk > 0 ? chunk : lanes);
      launch.in(fmt::format("p{}", i), r.input(first_in)).in(fmt::format("g{}", i), r.input(first_in + 1));
      launch.out(fmt::format("new_p{}", i), r.output(first_out));
      for (std::size_t s = 0; s < states(); ++s)
        launch.in(fmt::format("{}{}", names[s], i), r.input(first_in + 2 + s), exec::Access::same_element)
            .only_for(r.output(first_out + 1 + s))
            .out(fmt::format("new_{}{}", names[s], i), r.output(first_out + 1 + s));
      launch.args({count, its_items});
      items += its_items;
    }
    // A scalar computed by the device is read from its buffer.
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
    for (double constant : {constants_.decay, constants_.beta2, 1 - constants_.beta2, constants_.eps}) launch.arg_float(constant);
    launch.arg(constants_.nesterov).range({items}, {chunk > 0 ? 1 : group_size(r.device())});
    launch.flops(12.0 * static_cast<double>(batch.elements)).detail(fmt::format("{} parameters", batch.which.size()));
  }

 private:
  std::size_t scalars() const { return gated_ ? 6 : 5; }
  std::size_t states() const { return static_cast<std::size_t>(state_count(rule_)); }
  exec::Ref parameter(const exec::Recorder& r, std::size_t k) const { return r.input(scalars() + k * (2 + states())); }
  exec::Ref gradient(const exec::Recorder& r, std::size_t k) const { return r.input(scalars() + k * (2 + states()) + 1); }

  /// The results' bytes of all launches: their readers come after the last one.
  std::int64_t result_bytes(const exec::Recorder& r) const {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < (r.input_count() - scalars()) / (2 + states()); ++k)
      for (std::size_t i = 0; i <= states(); ++i) bytes += r.spec(r.output(k * (1 + states()) + i)).bytes();
    return bytes;
  }

  UpdateRule rule_;
  UpdateConstants constants_;
  bool gated_;
};

void lower_update(const UpdateProblem& p, exec::Recorder& recorder) { p.update->lower_batch(recorder, p); }

/// Elements per work-item on CPUs: enough to be worth starting one.
std::vector<exec::Config> chunk_configs(const UpdateProblem&, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device)) result.push_back({{"lanes", lanes}, {"chunk", 4096}});
  result.push_back({{"lanes", vector_width(device)}, {"chunk", 16384}});
  return result;
}
/// 16 bytes of state at a time, while each unit has two waves of work-items or more. On CPUs buffers may have any alignment, as a
/// user's memory.
std::vector<exec::Config> element_configs(const UpdateProblem& p, const DeviceInfo& device) {
  if (device.type == DeviceType::cpu && device.prefers_vector_kernels) return {{{"lanes", 1}}};
  const bool many = p.elements / 4 >= 64 * std::int64_t{device.compute_units};
  return {{{"lanes", many ? 4 : 1}}, {{"lanes", many ? 1 : 4}}};
}

const exec::SolverList<UpdateProblem> solvers{
    "optimizer_update",
    {{"chunks_cpu", needs_vectors<UpdateProblem>, lower_update, nullptr, chunk_configs},
     {"direct", exec::accepts_everything<UpdateProblem>, lower_update, nullptr, element_configs}}};
const exec::SolverList<UpdateProblem>& update_solvers() { return solvers; }

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
