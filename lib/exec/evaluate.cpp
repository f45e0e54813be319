// eval(): collects what has to be computed and runs it; what was asked for and what effects bring gets its values.
#include "lib/exec/evaluate.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/cl/lifetime.h"
#include "lib/exec/anomaly.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/collect/effects.h"
#include "lib/exec/parts.h"
#include "lib/exec/plan/cache.h"
#include "lib/graph/capture.h"

namespace clnet {

namespace exec {

namespace {

/// Returns the effects that remain to be done.
std::vector<CallEffect> evaluate_once(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted,
                                      const Giving& giving, std::span<const CallEffect> more) {
  Effects effects(asked);
  const auto work = effects.collect(giving, more);
  if (work.nodes.empty()) return effects.commit([&](const Tensor& tensor) { return work.value_of(tensor, Results()); });
  if (const auto what = computed_again(work); !what.empty()) {
    logging::print(logging::Level::plan, "{} is computed again, as nothing held its value", what);
    logging::warn_once(
        "eval: what was computed before is computed again, as nothing held it: what is read or detached before its gradients are "
        "asked for costs a second forward pass (docs/guide/tensors.md, \"What is computed once\"; CLNET_DEBUG=1 names the "
        "operation)");
  }
  std::vector<CallEffect> left;
  const auto publish = [&](const Results& results, std::span<const Work::Result> kept) {
    left = effects.commit([&](const Tensor& tensor) { return work.value_of(tensor, results); });
    // Another thread may have evaluated the same meanwhile: the first one's value stays.
    const auto asked_for = work.wanted.size();
    for (std::size_t i = 0; i < asked_for; ++i) slot_of(work.wanted[i]).exchange(nullptr, results[i]);
    std::map<ocl::Context*, std::vector<KeptValues::Kept>> kept_values;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto tensor = work.tensor(kept[i]);
      const auto& value = results[asked_for + i];
      if (slot_of(tensor).exchange(nullptr, value) == value) kept_values[value->device.get()].push_back({tensor, value});
    }
    for (const auto& [device, values] : kept_values) PlanCache::of(*device).kept().add(values);
    for (const auto& node : work.nodes) node->past.store(Node::Past::computed, std::memory_order_relaxed);
  };
  if (Parts::are_needed(work, work.values)) {
    Parts parts(work, work.values, wanted, asked);
    parts.run(work.leaves, work.values, Options::now(), publish);
    return left;
  }
  std::shared_ptr<Plan> plan;
  execute(work, work.leaves, work.values, device_of(work.values, wanted), Options::now(), plan,
          [&](const Results& results) { publish(results, plan->kept()); });
  return left;
}

}  // namespace

void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted, const Giving& giving) {
  auto left = evaluate_once(asked, wanted, giving, {});
  while (!left.empty()) left = evaluate_once({}, wanted, {}, left);
}

std::shared_ptr<Value> evaluated(const Tensor& tensor) {
  // What is there without having been asked for may be taken away by another thread that finds no memory.
  for (;;) {
    eval({tensor});
    if (auto value = value_of(tensor)) {
      require_given(value.get());
      if (const auto* placed = dynamic_cast<const DeviceValue*>(value.get())) require_there(*placed, tensor.spec());
      return value;
    }
  }
}

void evaluate_checked(std::span<const Tensor> tensors, const Device* wanted, const Giving& giving) {
  for (const auto& tensor : tensors)
    if (!tensor.defined()) throw Error("eval: an undefined tensor has no value");
  ocl::require_drivers();
  const auto what = [&] {
    const auto& op = tensors.empty() ? nullptr : node_of(tensors.front())->op;
    return fmt::format("eval of {}", op ? op->name() : "leaves");
  };
  try {
    const auto device = wanted ? context_of(*wanted) : nullptr;
    look_for_anomaly(tensors, [&](std::span<const Tensor> outputs) {
      // Nothing is given: it is all computed again. What is on the way may be elsewhere than what is wanted.
      evaluate(outputs, device_of_graph(outputs[0]) ? nullptr : device);
    });
    evaluate(tensors, device, giving);
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
  // Asked at the first operation: before main() nobody could catch what a wrong value throws.
  static const bool eager = env::flag("CLNET_EAGER");
  if (!eager || capturing()) return;
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
