// One run of a work's plan: leaves go to the device, the plan is found or made, and its commands are enqueued.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "clnet/error.h"
#include "lib/cl/compile_watch.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/statistics.h"
#include "lib/graph/capture.h"

namespace clnet::exec {

namespace {

struct Counters {
  std::atomic<std::uint64_t> evaluations, operations, kernels, host_calls, plans_made, plans_reused, repeated;
} counters;

/// Moves a leaf's bytes to the device and forgets them on the host; a scalar keeps them, to be passed by value. `value` is what
/// the leaf held when the work was collected.
std::shared_ptr<DeviceValue> place(const std::shared_ptr<ocl::Context>& device, const Tensor& leaf,
                                   const std::shared_ptr<Value>& value) {
  if (auto placed = std::dynamic_pointer_cast<DeviceValue>(value)) {
    require_there(*placed, leaf.spec());
    return placed;
  }
  auto& slot = slot_of(leaf);
  if (auto placed = std::dynamic_pointer_cast<DeviceValue>(slot.get()); placed && placed->device == device) {
    require_there(*placed, leaf.spec());
    return placed;
  }
  const auto host = std::dynamic_pointer_cast<const HostValue>(value);
  const auto& bytes = host->bytes;
  auto buffer = device->memory().allocate(std::max<std::size_t>(1, bytes.size()), [&] { return to_string(leaf.spec()); });
  if (!bytes.empty()) device->write(*buffer, 0, bytes.data(), bytes.size(), value);
  auto placed = std::make_shared<DeviceValue>(device, std::move(buffer), 0);
  placed->keep(leaf.spec(), host);
  if (!is_host_scalar(leaf, value.get())) slot.exchange(value.get(), placed);
  return placed;
}

}  // namespace

void require_given(const Value* value) {
  if (dynamic_cast<const InputValue*>(value))
    throw Error(
        "compile: the function evaluates or reads a value that depends on its inputs or on parameters, or makes a step; it may "
        "only build graph (stop_gradient() does what detach() does)");
}

void require_there(const DeviceValue& value, const Spec& spec) {
  if (value.overwritten)
    throw DeviceError(fmt::format("the value of {} is lost: an update in its place failed half-way", to_string(spec)));
}

std::shared_ptr<ocl::Context> device_of(std::span<const std::shared_ptr<Value>> values, std::shared_ptr<ocl::Context> found) {
  for (const auto& known : values) {
    const auto* value = dynamic_cast<const DeviceValue*>(known.get());
    if (!value) require_given(known.get());
    if (!value || value->device == found) continue;
    if (found) refuse_two_devices(*value->device, *found);
    found = value->device;
  }
  return found ? found : context_of(Device::current());
}

void execute(const Work& work, std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values,
             const std::shared_ptr<ocl::Context>& device, const Options& options, std::shared_ptr<Plan>& plan,
             const std::function<void(const Results&)>& finish) {
  ocl::require_not_telling();
  auto& cache = PlanCache::of(*device);
  bool made = false, first_chains = false;
  const auto measure = [&](std::span<const Tensor> trials) { evaluate(trials, device); };
  if (!plan || plan->is_retired()) plan = cache.plan(work, *device, options, measure, made);
  const auto place_leaf = [&](std::size_t i) { return place(device, leaves[i], values[i]); };
  std::vector<Binding> bindings(leaves.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    bindings[i].on_device = [&place_leaf, i] { return place_leaf(i); };
    if (const auto* host = dynamic_cast<const HostValue*>(values[i].get())) bindings[i].scalar = host->bytes.data();
  }
  const auto run = [&] {
    const auto lock = device->lock();
    // Longer ones, those that others enqueue for, and single commands begin at once.
    constexpr std::size_t short_plan = 64;
    std::optional<ocl::Context::Hold> hold;
    if (plan->commands() > 1 && plan->commands() <= short_plan && plan->host_calls() == 0) hold.emplace(*device);
    // Compiling a new plan tells the program how far it is, and that may make handles.
    for (std::size_t i = 0; i < bindings.size(); ++i) bindings[i].gift = work.gift_now(i);
    const auto run_made = plan->replay(*device, cache.arena(), cache.cached(), bindings, options.chains);
    first_chains = plan->take_first_run() || first_chains;
    // In their place there are others: should somebody still come to read one, it is an error and no wrong number.
    for (const auto& leaf : run_made.overwritten) leaf->set_overwritten();
    finish(run_made.results);
  };
  try {
    run();
  } catch (const LostInPlace&) {
    throw;
  } catch (const DeviceError&) {
    if (!cache.may_shrink(*plan, *device)) throw;
    plan = cache.plan(work, *device, options, measure, made, plan.get());
    run();
  }
  if (made) cache.build_beside(*device);
  if (first_chains || made) device->settle();
  if (made) plan->note_first_run(*device);

  ++counters.evaluations;
  counters.operations += work.nodes.size();
  counters.kernels += plan->kernels();
  counters.host_calls += plan->host_calls();
  counters.repeated += plan->repeated();
  ++(made ? counters.plans_made : counters.plans_reused);
}

Statistics statistics() {
  return {counters.evaluations, counters.operations,   counters.kernels, counters.host_calls,
          counters.plans_made,  counters.plans_reused, counters.repeated};
}

}  // namespace clnet::exec
