// One run of a plan: finds where its values are this time, sets the arguments that changed, and enqueues.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/exec/plan/plan.h"

namespace clnet::exec {

class Plan::Run : public HostContext {
 public:
  Run(Plan& plan, ocl::Context& device, Arena& arena, const std::vector<Binding>& leaves)
      : plan_(plan), device_(device), leaves_(leaves), spots_(plan.homes_.size()) {
    for (std::size_t id = 0; id < spots_.size(); ++id) spots_[id] = find(id, arena);
    moved_ = plan.generation_ != arena.generation();
    plan.generation_ = arena.generation();
  }

  std::vector<std::shared_ptr<DeviceValue>> operator()() {
    static const bool poison = env::flag("CLNET_POISON");
    for (auto& step : plan_.steps_) {
      if (poison) poison_outputs(step);
      const auto& command = plan_.recording_.commands()[step.command];
      if (const auto* call = std::get_if<HostCall>(&command))
        call->call(*this);
      else if (!step.skipped && !is_packed(step))
        launch(std::get<Launch>(command), step);
    }
    for (std::size_t id = 0; id < spots_.size(); ++id)
      if (spots_[id].leaf && !spots_[id].buffer->imported()) plan_.packed_from_[id] = spots_[id].leaf;
    std::vector<std::shared_ptr<DeviceValue>> results;
    for (auto id : plan_.keep_) {
      const auto& spot = spots_[plan_.root(id)];
      results.push_back(
          std::make_shared<DeviceValue>(device_.shared_from_this(), spot.buffer, spot.first + plan_.recording_.value(id).offset));
    }
    return results;
  }

  ocl::Context& device() override { return device_; }
  const ::cl::Buffer& buffer(Ref ref) override { return spots_[plan_.root(ref.value)].buffer->memory(); }
  std::size_t offset(Ref ref) override {
    const auto first = spots_[plan_.root(ref.value)].first;
    return static_cast<std::size_t>(first + plan_.recording_.value(ref.value).offset + ref.offset);
  }

 private:
  /// Where a root value is: its buffer and first element.
  struct Spot {
    ocl::BufferPtr buffer;
    std::int64_t first = 0;
    std::shared_ptr<DeviceValue> leaf;
  };

  Spot find(std::size_t id, Arena& arena) {
    const auto& spec = plan_.recording_.value(static_cast<ValueId>(id)).spec;
    const auto allocate = [&] {
      return device_.memory().allocate(std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())), to_string(spec));
    };
    switch (plan_.homes_[id]) {
      case Home::leaf: {
        if (!plan_.needs_buffer_[id]) return {};
        auto leaf = leaves_[id].on_device();
        return {leaf->buffer, leaf->offset, leaf};
      }
      case Home::arena: {
        const auto& place = plan_.places_[id];
        return {arena.segment(place.segment), static_cast<std::int64_t>(place.offset / size_of(spec.dtype)), nullptr};
      }
      case Home::own: return {allocate(), 0, nullptr};
      case Home::packed:
        if (!plan_.packed_[id]) plan_.packed_[id] = allocate();
        return {plan_.packed_[id], 0, nullptr};
      case Home::nowhere: break;
    }
    return {};
  }

  /// Whether the launch would only pack again what it packed before.
  bool is_packed(const Step& step) const {
    return !step.packs_for.empty() && std::all_of(step.packs_for.begin(), step.packs_for.end(), [&](ValueId leaf) {
      const auto id = static_cast<std::size_t>(leaf);
      return plan_.packed_from_[id].lock() == spots_[id].leaf;
    }) && std::all_of(step.scalars.begin(), step.scalars.end(), [&](const ScalarSlot& slot) {
      return slot.set && slot.bits == bits_of(slot);
    });
  }

  void poison_outputs(const Step& step) {
    for (auto id : step.first_uses) {
      const auto index = static_cast<std::size_t>(id);
      const auto& spec = plan_.recording_.value(id).spec;
      const auto home = plan_.homes_[index];
      if ((home != Home::arena && home != Home::own) || spec.bytes() == 0) continue;
      const auto& spot = spots_[index];
      device_.fill(*spot.buffer, static_cast<std::size_t>(spot.first) * size_of(spec.dtype),
                   static_cast<std::size_t>(spec.bytes()), 0xff);
    }
  }

  void launch(const Launch& launch, Step& step) {
    try {
      if (moved_)
        for (auto& slot : step.fixed) set(step.kernel, slot);
      for (auto& slot : step.changing) set(step.kernel, slot);
      for (auto& slot : step.scalars) set(step.kernel, slot);
    } catch (const ::cl::Error& error) {
      throw DeviceError(fmt::format("{}: an argument was refused: {}", launch.function(), ocl::error_name(error.err())));
    }
    device_.launch(step.kernel, step.global, step.local,
                   {launch.function(), launch.detail_text(), step.bytes, launch.flop_count()});
  }

  void set(::cl::Kernel& kernel, BufferSlot& slot) {
    const auto& spot = spots_[static_cast<std::size_t>(slot.root)];
    const auto& memory = spot.buffer->memory();
    if (slot.memory != memory()) {
      kernel.setArg(slot.index, memory);
      slot.memory = memory();
      ++plan_.arguments_set_;
    }
    const auto offset = spot.first + slot.offset;
    if (slot.set_offset != offset) {
      kernel.setArg(slot.index + 1, static_cast<cl_ulong>(offset));
      slot.set_offset = offset;
      ++plan_.arguments_set_;
    }
  }

  std::uint64_t bits_of(const ScalarSlot& slot) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, leaves_[static_cast<std::size_t>(slot.leaf)].scalar, size_of(slot.dtype));
    return bits;
  }

  void set(::cl::Kernel& kernel, ScalarSlot& slot) {
    const auto bits = bits_of(slot);
    if (slot.set && bits == slot.bits) return;
    // A kernel takes f16 and bf16 scalars as float.
    if (slot.dtype == Dtype::f16 || slot.dtype == Dtype::bf16) {
      const auto half = static_cast<std::uint16_t>(bits);
      kernel.setArg(slot.index, static_cast<cl_float>(slot.dtype == Dtype::f16 ? half_to_float(half) : bfloat16_to_float(half)));
    } else {
      kernel.setArg(slot.index, size_of(slot.dtype), &bits);
    }
    slot.bits = bits;
    slot.set = true;
    ++plan_.arguments_set_;
  }

  Plan& plan_;
  ocl::Context& device_;
  const std::vector<Binding>& leaves_;
  std::vector<Spot> spots_;
  bool moved_ = false;
};

std::vector<std::shared_ptr<DeviceValue>> Plan::replay(ocl::Context& device, Arena& arena, const std::vector<Binding>& leaves) {
  const auto prepare_run = [&] {
    arena.reserve(device.memory(), layout_.segments, what());
    return std::make_unique<Run>(*this, device, arena, leaves);
  };
  std::unique_ptr<Run> run;
  try {
    run = prepare_run();
  } catch (const DeviceError&) {
    // Another plan may have left a larger arena than this one needs.
    if (arena.bytes() <= layout_.bytes()) throw;
    arena.clear();
    run = prepare_run();
  }
  return (*run)();
}

}  // namespace clnet::exec
