// eval(): collects what has to be computed, lets each operation record its launches, binds buffers and enqueues.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "clnet/error.h"
#include "clnet/tensor.h"
#include "lib/base/env.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/lifetime.h"
#include "lib/exec/anomaly.h"
#include "lib/exec/effects.h"
#include "lib/exec/execute.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/record/value.h"
#include "lib/exec/record/work.h"
#include "lib/exec/statistics.h"
#include "lib/exec/upload.h"
#include "lib/graph/capture.h"

namespace clnet {

namespace exec {

namespace {

struct Counters {
  std::atomic<std::uint64_t> evaluations, operations, kernels, host_calls, plans_made, plans_reused, repeated;
} counters;

/// Two devices may be equal, and one may have two contexts.
std::string label(const DeviceInfo& info) { return fmt::format("{} ({}:{})", info.name, info.platform_index, info.device_index); }

void require_there(const DeviceValue& value, const Spec& spec) {
  if (value.overwritten)
    throw DeviceError(fmt::format("the value of {} is lost: an update in its place failed half-way", to_string(spec)));
}

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

namespace {

void require_given(const Value* value) {
  if (dynamic_cast<const InputValue*>(value))
    throw Error(
        "compile: the function evaluates or reads a value that depends on its inputs or on parameters, or makes a step; it may "
        "only build graph (stop_gradient() does what detach() does)");
}

}  // namespace

std::shared_ptr<ocl::Context> device_of(std::span<const std::shared_ptr<Value>> values, std::shared_ptr<ocl::Context> found) {
  for (const auto& known : values) {
    const auto* value = dynamic_cast<const DeviceValue*>(known.get());
    if (!value) require_given(known.get());
    if (!value || value->device == found) continue;
    if (found) {
      const auto here = label(value->device->info()), there = label(found->info());
      throw DeviceError(fmt::format("eval: a value lives on {}, another (or the evaluation) on {}; copy_to() copies values", here,
                                    here == there ? "the same device in another context" : there));
    }
    found = value->device;
  }
  return found ? found : context_of(Device::current());
}

namespace {
void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted);
}

void execute(const Work& work, std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values,
             const std::shared_ptr<ocl::Context>& device, std::shared_ptr<Plan>& plan,
             const std::function<void(const Results&)>& finish) {
  ocl::require_not_telling();
  auto& cache = PlanCache::of(*device);
  bool made = false, first_chains = false;
  const auto measure = [&](std::span<const Tensor> trials) { evaluate(trials, device); };
  if (!plan || plan->is_retired()) plan = cache.plan(work, *device, measure, made);
  const auto place_leaf = [&](std::size_t i) { return place(device, leaves[i], values[i]); };
  std::vector<Binding> bindings(leaves.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    bindings[i].on_device = [&place_leaf, i] { return place_leaf(i); };
    if (!work.gifts.empty()) bindings[i].gift = work.gifts[i];
    if (const auto* host = dynamic_cast<const HostValue*>(values[i].get())) bindings[i].scalar = host->bytes.data();
  }
  const auto run = [&] {
    const auto lock = device->lock();
    // Longer ones, those that others enqueue for, and single commands begin at once.
    constexpr std::size_t short_plan = 64;
    std::optional<ocl::Context::Hold> hold;
    if (plan->commands() > 1 && plan->commands() <= short_plan && plan->host_calls() == 0) hold.emplace(*device);
    const auto run_made = plan->replay(*device, cache.arena(), cache.cached(), bindings);
    first_chains = plan->take_first_run() || first_chains;
    // In their place there are others: should somebody still come to read one, it is an error and no wrong number.
    for (const auto& leaf : run_made.overwritten) leaf->overwritten = true;
    finish(run_made.results);
  };
  try {
    run();
  } catch (const LostInPlace&) {
    throw;
  } catch (const DeviceError&) {
    if (!cache.may_shrink(*plan, *device)) throw;
    plan = cache.plan(work, *device, measure, made, plan.get());
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

namespace {

void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted) {
  Effects effects(asked);
  Collector collector;
  int rounds = 1;
  for (auto fresh = collector.add(asked); effects.add(fresh); ++rounds) fresh = collector.add(effects.wanted());
  // An effect on what an effect made may have put another value in the place of one that is collected.
  if (rounds > 2) {
    collector.clear();
    collector.add(effects.wanted());
  }
  const auto work = collector.take();
  if (work.nodes.empty()) return;
  const auto device = device_of(work.values, wanted);
  auto& kept_values = PlanCache::of(*device).kept();
  std::shared_ptr<Plan> plan;
  execute(work, work.leaves, work.values, device, plan, [&](const Results& results) {
    // Another thread may have evaluated the same meanwhile: the first one's value stays.
    const auto asked_for = work.wanted.size();
    for (std::size_t i = 0; i < asked_for; ++i) slot_of(work.wanted[i]).exchange(nullptr, results[i]);
    effects.commit([&](const Tensor& tensor) { return work.value_of(tensor, results); });
    const auto& [kept, written] = plan->besides();
    std::vector<KeptValues::Kept> fresh;
    std::size_t learned = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto tensor = work.tensor(kept[i]);
      const auto& value = results[asked_for + i];
      if (slot_of(tensor).exchange(nullptr, value) != value) continue;
      fresh.push_back({tensor, value});
      learned += !std::binary_search(work.kept.begin(), work.kept.end(), kept[i]);
    }
    kept_values.add(plan->structure(), fresh, learned);
    kept_values.computed(work, plan->structure(), written);
  });
}

/// Nothing but clnet's own errors leaves the library.
void evaluate_checked(std::span<const Tensor> tensors, const Device* wanted) {
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
      const Giving nothing({}, {});  // what is found out may be asked for again
      evaluate(outputs, device);
    });
    evaluate(tensors, device);
  } catch (const Error&) {
    throw;
  } catch (const ::cl::Error& error) {
    throw ocl::device_error(what(), error);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", what(), error.what()));
  }
}

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

/// C++ leaves open what an integer is made of a floating value that does not fit: here it is the nearest one, and 0 for NaN.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    if (value < static_cast<From>(Limits::min())) return Limits::min();
    if (value >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  }
  return static_cast<To>(value);
}

template <class To, class From, class Decode>
void convert(const std::byte* source, To* target, std::size_t count, const Decode& decode) {
  for (std::size_t i = 0; i < count; ++i) {
    From stored;
    std::memcpy(&stored, source + i * sizeof stored, sizeof stored);
    target[i] = converted<To>(decode(stored));
  }
}

template <class To>
void convert(Dtype from, const std::byte* source, To* target, std::size_t count) {
  const auto as_is = [](auto value) { return value; };
  switch (from) {
    case Dtype::f32: return convert<To, float>(source, target, count, as_is);
    case Dtype::f16: return convert<To, std::uint16_t>(source, target, count, half_to_float);
    case Dtype::bf16: return convert<To, std::uint16_t>(source, target, count, bfloat16_to_float);
    case Dtype::i32: return convert<To, std::int32_t>(source, target, count, as_is);
    case Dtype::i64: return convert<To, std::int64_t>(source, target, count, as_is);
    case Dtype::i8: return convert<To, std::int8_t>(source, target, count, as_is);
    case Dtype::u8: return convert<To, std::uint8_t>(source, target, count, as_is);
    case Dtype::boolean: return convert<To, std::uint8_t>(source, target, count, [](std::uint8_t value) { return value != 0; });
  }
}

/// Whether a T is stored as the dtype is.
template <class T>
bool stored_as(Dtype dtype) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, bool>)
    return false;
  else
    return dtype == dtype_of<T>;
}

}  // namespace

Statistics statistics() {
  return {counters.evaluations, counters.operations,   counters.kernels, counters.host_calls,
          counters.plans_made,  counters.plans_reused, counters.repeated};
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

Tensor upload(const Spec& spec, const Device& device, const std::function<void(void*)>& fill) {
  auto buffer =
      context_of(device)->upload(std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())), to_string(spec), fill);
  return make_leaf(spec, std::make_shared<DeviceValue>(context_of(device), std::move(buffer), 0));
}

Tensor upload(const Spec& spec, const Device& device, std::vector<std::byte> bytes) {
  const auto host = std::make_shared<HostValue>(std::move(bytes));
  Tensor leaf = upload(spec, device, [&](void* out) { std::memcpy(out, host->bytes.data(), host->bytes.size()); });
  dynamic_cast<DeviceValue&>(*value_of(leaf)).keep(spec, host);
  return leaf;
}

}  // namespace exec

void eval(std::span<const Tensor> tensors) { exec::evaluate_checked(tensors, nullptr); }
void eval(std::initializer_list<Tensor> tensors) { eval(std::span(tensors.begin(), tensors.size())); }
void eval(std::span<const Tensor> tensors, const Device& device) { exec::evaluate_checked(tensors, &device); }

Tensor copy_to(const Tensor& tensor, const Device& device) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(bytes.data(), bytes.size());
  return exec::upload(tensor.spec(), device, [&](void* target) { std::memcpy(target, bytes.data(), bytes.size()); });
}

void Tensor::eval() const { clnet::eval({*this}); }

Device Tensor::device() const {
  if (!node_) throw Error("device: the tensor is undefined");
  std::vector<Tensor> open{*this};
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const Tensor tensor = open.back();
    open.pop_back();
    if (const auto value = exec::slot_of(tensor).get()) {
      if (const auto* placed = dynamic_cast<const exec::DeviceValue*>(value.get())) return device_with(placed->device);
      continue;
    }
    if (!seen.insert(tensor.node_.get()).second) continue;
    open.insert(open.end(), tensor.node_->inputs.begin(), tensor.node_->inputs.end());
  }
  return Device::current();
}

Tensor Tensor::detach() const { return make_leaf(spec(), exec::evaluated(*this)); }

void Tensor::to_bytes(void* target, std::size_t bytes) const {
  if (bytes != static_cast<std::size_t>(spec().bytes()))
    throw ShapeError(fmt::format("to_bytes: room for {} bytes, but {} takes {}", bytes, to_string(spec()), spec().bytes()));
  const auto value = exec::evaluated(*this);
  if (bytes == 0) return;
  if (const auto* host = dynamic_cast<const HostValue*>(value.get())) {
    std::memcpy(target, host->bytes.data(), bytes);
    return;
  }
  const auto& placed = dynamic_cast<const exec::DeviceValue&>(*value);
  placed.device->read(*placed.buffer, static_cast<std::size_t>(placed.offset) * size_of(dtype()), target, bytes);
}

struct PendingRead {
  Spec spec;
  std::shared_ptr<Value> value;                    // keeps the buffer
  std::unique_ptr<ocl::Context::Reading> reading;  // empty: the value is on the host
};

std::shared_ptr<PendingRead> Tensor::start_reading() const {
  auto pending = std::make_shared<PendingRead>(PendingRead{spec(), exec::evaluated(*this), nullptr});
  if (const auto* placed = dynamic_cast<const exec::DeviceValue*>(pending->value.get()))
    pending->reading = placed->device->start_reading(*placed->buffer, static_cast<std::size_t>(placed->offset) * size_of(dtype()),
                                                     static_cast<std::size_t>(spec().bytes()));
  return pending;
}

void require_one_element(const PendingRead& pending) {
  if (pending.spec.shape.numel() != 1)
    throw ShapeError(fmt::format("item: needs one element, the tensor is {}", to_string(pending.spec)));
}

bool is_read(const PendingRead& pending) { return !pending.reading || pending.reading->ready(); }

template <class T>
void finish_reading(const PendingRead& pending, T* target) {
  const auto* bytes = pending.reading ? pending.reading->wait() : dynamic_cast<const HostValue&>(*pending.value).bytes.data();
  exec::convert(pending.spec.dtype, bytes, target, static_cast<std::size_t>(pending.spec.shape.numel()));
}
template CLNET_API void finish_reading(const PendingRead&, float*);
template CLNET_API void finish_reading(const PendingRead&, double*);
template CLNET_API void finish_reading(const PendingRead&, std::int32_t*);
template CLNET_API void finish_reading(const PendingRead&, std::int64_t*);
template CLNET_API void finish_reading(const PendingRead&, std::int8_t*);
template CLNET_API void finish_reading(const PendingRead&, std::uint8_t*);
template CLNET_API void finish_reading(const PendingRead&, bool*);

template <class T>
void Tensor::read(T* target) const {
  const auto count = static_cast<std::size_t>(numel());
  if (exec::stored_as<T>(dtype())) return to_bytes(target, count * sizeof(T));
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec().bytes()));
  to_bytes(bytes.data(), bytes.size());
  exec::convert(dtype(), bytes.data(), target, count);
}
template CLNET_API void Tensor::read(float*) const;
template CLNET_API void Tensor::read(double*) const;
template CLNET_API void Tensor::read(std::int32_t*) const;
template CLNET_API void Tensor::read(std::int64_t*) const;
template CLNET_API void Tensor::read(std::int8_t*) const;
template CLNET_API void Tensor::read(std::uint8_t*) const;
template CLNET_API void Tensor::read(bool*) const;

}  // namespace clnet
