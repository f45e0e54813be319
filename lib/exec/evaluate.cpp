// eval(): collects the work, runs its plan, and gives the results and the new values of effects to their nodes.
#include "lib/exec/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/base/process_mutex.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/driver_lifetime.h"
#include "lib/cl/lane_device.h"
#include "lib/exec/anomaly.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/collect/effects.h"
#include "lib/exec/partitions.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/statistics.h"
#include "lib/graph/capture.h"

namespace clnet {

namespace exec {

namespace {

struct Counters {
  std::atomic<std::uint64_t> evaluations, operations, kernels, host_calls, plans_made, plans_reused, repeated;
} counters;

/// Moves a leaf's bytes to the device and frees them on the host; a scalar keeps them, to be passed by value. `value` is the
/// leaf's value at collection.
std::shared_ptr<DeviceValue> place(const std::shared_ptr<ocl::Context>& device, const Tensor& leaf,
                                   const std::shared_ptr<Value>& value, Placements& placements) {
  if (auto placed = std::dynamic_pointer_cast<DeviceValue>(value)) {
    require_there(*placed, leaf.spec());
    return placed;
  }
  if (auto placed = std::dynamic_pointer_cast<DeviceValue>(value_of(leaf)); placed && placed->device == device) {
    require_there(*placed, leaf.spec());
    return placed;
  }
  const auto host = std::dynamic_pointer_cast<const HostValue>(value);
  const auto& bytes = host->bytes;
  auto buffer = device->memory().allocate(std::max<std::size_t>(1, bytes.size()), [&] { return to_string(leaf.spec()); });
  if (!bytes.empty()) device->write(*buffer, 0, bytes.data(), bytes.size(), value);
  auto placed = std::make_shared<DeviceValue>(device, std::move(buffer), 0);
  placed->keep(leaf.spec(), host);
  if (!is_host_scalar(leaf, value.get())) placements.move(leaf, value, placed);
  return placed;
}

}  // namespace

void Placements::move(const Tensor& leaf, const std::shared_ptr<Value>& host, const std::shared_ptr<DeviceValue>& placed) {
  moved_.push_back({uncounted(leaf), host, placed});
  cell_of(leaf).exchange(host.get(), placed);
}

Placements::~Placements() {
  for (const auto& [leaf, host, placed] : moved_) cell_of(leaf).exchange(placed.get(), host);
}

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
             Placements& placements, const std::function<void(const Results&)>& finish) {
  ocl::require_not_telling();
  auto& cache = PlanCache::of(*device);
  bool made = false, first_batches = false;
  const auto measure = [&](std::span<const Tensor> trials) { evaluate(trials, device); };
  if (!plan || plan->is_retired()) plan = cache.plan(work, *device, options, measure, made);
  const auto place_leaf = [&](std::size_t i) { return place(device, leaves[i], values[i], placements); };
  std::vector<Binding> bindings(leaves.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    bindings[i].on_device = [&place_leaf, i] { return place_leaf(i); };
    if (const auto* host = dynamic_cast<const HostValue*>(values[i].get())) bindings[i].scalar = host->bytes.data();
  }
  const auto run = [&] {
    const auto lock = device->lock();
    // Longer plans, plans with host calls, and single commands begin at once.
    constexpr std::size_t short_plan = 64;
    std::optional<ocl::Context::HoldBack> hold;
    if (plan->commands() > 1 && plan->commands() <= short_plan && plan->host_calls() == 0) hold.emplace(*device);
    // Compiling a new plan may run the program's on_compile() function, which may make handles.
    for (std::size_t i = 0; i < bindings.size(); ++i) bindings[i].may_overwrite = work.may_overwrite_now(i);
    const auto result = plan->replay(*device, cache.arena(), cache.prepacks(), bindings, options.launch_batches);
    first_batches = plan->take_first_run() || first_batches;
    // Their memory has new values: a late reader gets an error instead of a wrong number.
    for (const auto& leaf : result.overwritten) leaf->set_overwritten();
    finish(result.results);
  };
  try {
    run();
  } catch (const NotRepeatable&) {
    throw;
  } catch (const DeviceError&) {
    if (!cache.may_shrink(*plan, *device)) throw;
    plan = cache.plan(work, *device, options, measure, made, plan.get());
    run();
  }
  if (made) cache.build_beside(*device);
  if (first_batches || made) device->settle();
  if (made) plan->note_first_run(*device);

  ++counters.evaluations;
  counters.operations += work.nodes.size();
  counters.kernels += plan->kernels();
  counters.host_calls += plan->host_calls();
  counters.repeated += plan->repeated();
  ++(made ? counters.plans_made : counters.plans_reused);
}

Statistics statistics() {
  return {counters.evaluations, counters.operations,   counters.kernels,  counters.host_calls,
          counters.plans_made,  counters.plans_reused, counters.repeated, SharedWaits::so_far()};
}

namespace {

/// Effects of computed nodes that a device could not apply, mostly for lack of memory. The next evaluation by the program begins
/// with them; one in a lane with those of its device.
class Overdue {
 public:
  bool any() const { return any_.load(std::memory_order_relaxed); }
  std::vector<CallEffect> take() {
    if (!any()) return {};
    const auto* lane = ocl::lane_device().get();
    return take_if([lane](const Entry& entry) { return !lane || entry.lane == lane; });
  }
  void add(const std::vector<CallEffect>& effects) {
    const std::lock_guard lock(mutex_);
    for (const auto& effect : effects) entries_.push_back({effect, ocl::lane_device().get()});
    any_ = true;
  }
  void drop(const Slot& slot) {
    if (!any()) return;
    // Freed without the lock.
    const auto dropped = take_if([&](const Entry& entry) { return entry.effect.effect->slot.lock().get() == &slot; });
    for (const auto& each : dropped) each.effect->finish();
  }

 private:
  struct Entry {
    CallEffect effect;
    const ocl::Context* lane;  ///< null: none
  };
  std::vector<CallEffect> take_if(const std::function<bool(const Entry&)>& taken) {
    std::vector<CallEffect> effects;
    const std::lock_guard lock(mutex_);
    const auto others = std::stable_partition(entries_.begin(), entries_.end(), [&](const auto& entry) { return !taken(entry); });
    for (auto entry = others; entry != entries_.end(); ++entry) effects.push_back(std::move(entry->effect));
    entries_.erase(others, entries_.end());
    any_ = !entries_.empty();
    return effects;
  }

  std::atomic<bool> any_{false};
  ProcessMutex mutex_;
  std::vector<Entry> entries_;
};

auto& overdue = *new Overdue;  // outlives what static tensors do at exit

/// Whether a copy leads to one of the values, behind the last ones that were asked for.
bool is_behind_copy(const std::vector<std::pair<Tensor, std::shared_ptr<DeviceValue>>>& speculative) {
  Walk walk;
  std::vector<Tensor> open;
  for (const auto& [tensor, value] : speculative) open.push_back(uncounted(tensor));
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const auto next = std::move(open.back());
    open.pop_back();
    const auto& node = *node_of(next);
    if (asked_value_of(next) || seen.contains(&node)) continue;
    if (!walk.enter(node_of(next))) {
      open.push_back(uncounted(next));
      continue;
    }
    if (copy_of(node)) return true;
    seen.insert(&node);
    for (const auto& input : node.inputs) open.push_back(uncounted(input));
  }
  return false;
}

/// Whether speculative values decide where an evaluation of `asked` on `wanted` computes the work, which gives `results`.
/// `has_effects`: beside those of the work's nodes.
bool is_decided_by_speculative(const Work& work, std::span<const Tensor> results, std::span<const Tensor> asked,
                               const std::shared_ptr<ocl::Context>& wanted, bool has_effects) {
  if (ocl::Context::made() < 2) return false;
  std::vector<std::shared_ptr<DeviceValue>> placed;
  std::vector<std::pair<Tensor, std::shared_ptr<DeviceValue>>> speculative;
  const auto add = [&](const Tensor& tensor, const std::shared_ptr<Value>& value) {
    auto found = std::dynamic_pointer_cast<DeviceValue>(value);
    if (!found) return;
    if (cell_of(tensor).is_speculative()) speculative.emplace_back(uncounted(tensor), found);
    placed.push_back(std::move(found));
  };
  for (std::size_t i = 0; i < work.leaves.size(); ++i) add(work.leaves[i], work.values[i]);
  for (const auto& tensor : results) add(tensor, value_of(tensor));
  if (speculative.empty()) return false;
  // Where all is on the usual device, and comes from no other one, it would be there without them, too.
  const auto usual = wanted ? wanted : context_of(Device::current());
  const auto is_copy = [](const auto& node) { return copy_of(*node) != nullptr; };
  if (std::all_of(placed.begin(), placed.end(), [&](const auto& value) { return value->device == usual; }) &&
      std::none_of(work.nodes.begin(), work.nodes.end(), is_copy) && !is_behind_copy(speculative))
    return false;
  // Updates of parameters may read whatever there is.
  if (has_effects) return true;
  if (std::any_of(work.nodes.begin(), work.nodes.end(), [](const auto& node) { return !node->effects.empty(); })) return true;
  Walk walk;
  return Partitions::depend_on(speculative, work, wanted, asked, walk);
}

/// Returns the effects that remain to be done.
std::vector<CallEffect> evaluate_once(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted,
                                      const DonationOffer& offer, std::span<const CallEffect> more) {
  const Options options = Options::now();  // a copy: a function of the program may end the scope that has them
  std::optional<Effects> collected(std::in_place, asked);
  auto work = collected->collect(offer, more);
  if (is_decided_by_speculative(work, collected->wanted(), asked, wanted, !more.empty())) {
    SpeculativeOutputs::clear_all();
    work = {};
    collected.emplace(asked);
    work = collected->collect(offer, more);
  }
  auto& effects = *collected;
  // What the program asks for is no longer speculative, whatever made its value.
  const auto finish = [&](const Results& results) {
    auto left = effects.commit([&](const Tensor& tensor) { return work.value_of(tensor, results); });
    // Another thread may have evaluated the same meanwhile: the first value stays.
    for (std::size_t i = 0; i < work.wanted.size(); ++i) cell_of(work.wanted[i]).ask(results[i]);
    // Also what updates gave: they may give what was there.
    for (const auto& tensor : effects.wanted())
      if (auto& cell = cell_of(tensor); !cell.is_asked() && !cell.ask()) cell.ask(work.value_of(tensor, results));
    return left;
  };
  if (work.nodes.empty()) return finish({});
  if (const auto what = computed_again(work); !what.empty()) {
    logging::print(logging::Level::plan, "{} is computed again, as its value was not kept", what);
    logging::warn_once(
        "eval: what was computed before is computed again, as its value was not kept: nothing held it, or it was fused into "
        "another kernel. What is read or detached before its gradients are asked for costs a second forward pass; eval() of a "
        "value that several results read keeps it (docs/guide/tensors.md, \"What is computed once\"; CLNET_DEBUG=1 names the "
        "operation)");
  }
  std::vector<CallEffect> left;
  Placements placements;
  const auto publish = [&](const Results& results, std::span<const Work::Result> speculative) {
    left = finish(results);
    placements.keep();
    const auto asked_for = work.wanted.size();
    std::map<ocl::Context*, std::vector<SpeculativeOutputs::Output>> outputs;
    for (std::size_t i = 0; i < speculative.size(); ++i) {
      const auto tensor = work.tensor(speculative[i]);
      const auto& value = results[asked_for + i];
      if (cell_of(tensor).exchange(nullptr, value) == value) outputs[value->device.get()].push_back({tensor, value});
    }
    for (const auto& [device, values] : outputs) PlanCache::of(*device).speculative_outputs().add(values);
    for (const auto& node : work.nodes) node->past.store(Node::Past::computed, std::memory_order_relaxed);
  };
  if (Partitions::are_needed(work, work.values, wanted)) {
    Partitions partitions(work, work.values, wanted, asked);
    partitions.run(work.leaves, work.values, options, placements, publish);
    return left;
  }
  std::shared_ptr<Plan> plan;
  execute(work, work.leaves, work.values, device_of(work.values, wanted), options, plan, placements,
          [&](const Results& results) { publish(results, plan->speculative()); });
  return left;
}

/// Applies effects of an evaluation that is done, those of one node together. Its caller has to learn of its results, so nothing
/// is thrown.
void apply_left(std::vector<CallEffect> left, const std::shared_ptr<ocl::Context>& wanted = nullptr) {
  while (!left.empty()) {
    const auto node = node_of(left.front().value);
    const auto others =
        std::stable_partition(left.begin(), left.end(), [&](const auto& effect) { return node_of(effect.value) == node; });
    std::vector<CallEffect> now(std::make_move_iterator(left.begin()), std::make_move_iterator(others));
    left.erase(left.begin(), others);
    try {
      while (!now.empty()) now = evaluate_once({}, wanted, {}, now);
    } catch (const std::exception& error) {
      const bool may_pass = !dynamic_cast<const Error*>(&error) || dynamic_cast<const DeviceError*>(&error) ||
                            dynamic_cast<const ocl::CompilingCancelled*>(&error);
      logging::warn_once(fmt::format("eval: updates of parameters {}: {}",
                                     may_pass ? "wait for the next evaluation" : "are given up", error.what()));
      if (may_pass)
        overdue.add(now);
      else
        for (const auto& effect : now) effect.effect->finish();
    }
  }
}

/// Throws Error where a parameter follows one of the values that the function under compile() has made and evaluates.
void require_unfollowed(std::span<const Tensor> tensors, std::uint64_t first) {
  Walk walk;
  for (const auto& node : collect(tensors, walk).nodes)
    if (node->order >= first && !node->effects.empty())
      throw Error(fmt::format("compile: the function evaluates {}, which a parameter follows; it may only build graph",
                              node->op->name()));
}

}  // namespace

void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted, const DonationOffer& offer,
              std::span<const CallEffect> more) {
  apply_left(evaluate_once(asked, wanted, offer, more), wanted);
}

void forget_elsewhere(std::span<const Tensor> tensors) {
  const auto is_elsewhere = [&] {
    Effects effects(tensors);
    return is_decided_by_speculative(effects.collect(), effects.wanted(), tensors, nullptr, false);
  };
  if (ocl::Context::made() > 1 && is_elsewhere()) SpeculativeOutputs::clear_all();
}

void forget_speculative() {
  if (const auto& lane = ocl::lane_device())
    PlanCache::of(*lane).speculative_outputs().clear();
  else
    SpeculativeOutputs::clear_all();
}

void apply_overdue() {
  if (!overdue.any() || capturing() || ocl::is_telling() || !Options::now().refusal.empty()) return;
  apply_left(overdue.take());
}

void drop_overdue(const Slot& slot) { overdue.drop(slot); }

namespace {

void require_none_elsewhere(std::span<const Tensor> tensors, const ocl::Context& device) {
  for (const auto& tensor : tensors) {
    const auto value = asked_value_of(tensor);
    const auto* placed = dynamic_cast<const DeviceValue*>(value.get());
    if (placed && placed->device.get() != &device) refuse_two_devices(*placed->device, device);
  }
}

}  // namespace

std::shared_ptr<Value> evaluated(const Tensor& tensor) {
  eval({tensor});  // asks for the value: nobody drops it from then on
  auto value = asked_value_of(tensor);
  require_given(value.get());
  if (const auto* placed = dynamic_cast<const DeviceValue*>(value.get())) require_there(*placed, tensor.spec());
  return value;
}

void evaluate_checked(std::span<const Tensor> tensors, const Device* wanted, const DonationOffer& offer,
                      std::span<const CallEffect> more) {
  for (const auto& tensor : tensors)
    if (!tensor.defined()) throw Error("eval: an undefined tensor has no value");
  ocl::require_drivers();
  const auto what = [&] {
    const auto& op = tensors.empty() ? nullptr : node_of(tensors.front())->op;
    return fmt::format("eval of {}", op ? op->name() : "leaves");
  };
  try {
    const auto device = wanted ? context_of(*wanted) : nullptr;
    if (const auto* capture = capturing()) require_unfollowed(tensors, capture->first);
    const Capturing outside(nullptr);
    apply_overdue();
    if (device) require_none_elsewhere(tensors, *device);
    look_for_anomaly(tensors, device);
    evaluate(tensors, device, offer, more);
  } catch (const Error&) {
    throw;
  } catch (const ::cl::Error& error) {
    throw ocl::device_error(what(), error);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", what(), error.what()));
  }
}

namespace {

void evaluate_at_once(const Tensor& tensor) {
  // Read at the first operation: before main() nothing could catch the error of a wrong value.
  static const bool eager = env::flag("CLNET_EAGER");
  if (!eager || capturing() || !Options::now().refusal.empty()) return;
  Tensors outputs;
  for (std::size_t i = 0; i < node_of(tensor)->outputs.size(); ++i)
    outputs.push_back(tensor_of(node_of(tensor), static_cast<int>(i)));
  eval(outputs);
}

[[maybe_unused]] const bool hooked = (node_made = evaluate_at_once, true);

}  // namespace

}  // namespace exec

void eval(std::span<const Tensor> tensors) { exec::evaluate_checked(tensors, nullptr); }
void eval(std::initializer_list<Tensor> tensors) { eval(std::span(tensors.begin(), tensors.size())); }
void eval(std::span<const Tensor> tensors, const Device& device) { exec::evaluate_checked(tensors, &device); }

void Tensor::eval() const { clnet::eval({*this}); }

Device Tensor::device() const {
  if (!node_) throw Error("device: the tensor is undefined");
  const auto device = exec::device_of_graph(*this);
  return device ? device_with(device) : Device::current();
}

}  // namespace clnet
