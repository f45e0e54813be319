#include "lib/exec/run.h"

#include <fmt/format.h>

#include <cstring>

#include "clnet/error.h"
#include "lib/base/env.h"

namespace clnet::exec {

namespace {

class Run : public HostContext {
 public:
  Run(const Recording& recording, ocl::Context& device, const Bindings& bindings)
      : recording_(recording), device_(device), bindings_(bindings), slots_(recording.value_count()) {}

  std::vector<std::shared_ptr<DeviceValue>> operator()(const std::vector<ValueId>& keep) {
    const auto& commands = recording_.commands();
    std::vector<std::size_t> last(recording_.value_count(), 0);
    for (std::size_t i = 0; i < commands.size(); ++i) for_each_ref(commands[i], [&](Ref ref) { last[root(ref.value)] = i; });
    for (auto id : keep) last[root(id)] = commands.size();
    std::vector<std::vector<std::size_t>> done(commands.size() + 1);
    for (std::size_t id = 0; id < last.size(); ++id) done[last[id]].push_back(id);

    for (std::size_t i = 0; i < commands.size(); ++i) {
      std::visit([&](const auto& command) { execute(command); }, commands[i]);
      for (auto id : done[i]) slots_[id] = {};
    }
    std::vector<std::shared_ptr<DeviceValue>> results;
    for (auto id : keep) {
      const auto& base = slot(root(id));
      results.push_back(
          std::make_shared<DeviceValue>(device_.shared_from_this(), base.buffer, base.offset + recording_.value(id).offset));
    }
    return results;
  }

  ocl::Context& device() override { return device_; }
  const ::cl::Buffer& buffer(Ref ref) override { return slot(root(ref.value)).buffer->memory(); }
  std::size_t offset(Ref ref) override {
    return static_cast<std::size_t>(slot(root(ref.value)).offset + recording_.value(ref.value).offset + ref.offset);
  }

 private:
  struct Slot {
    ocl::BufferPtr buffer;
    std::int64_t offset = 0;
  };

  std::size_t root(ValueId id) const { return static_cast<std::size_t>(recording_.value(id).root); }

  /// The memory of a root value, taken now if this is its first use.
  Slot& slot(std::size_t id) {
    auto& place = slots_[id];
    if (place.buffer) return place;
    const auto& info = recording_.value(static_cast<ValueId>(id));
    if (info.leaf) {
      const auto value = bindings_[id].leaf();
      place = {value->buffer, value->offset};
    } else {
      place.buffer =
          device_.memory().allocate(std::max<std::size_t>(1, static_cast<std::size_t>(info.spec.bytes())), to_string(info.spec));
      static const bool poison = env::flag("CLNET_POISON");
      if (poison) device_.fill(*place.buffer, 0xff);
    }
    return place;
  }

  template <class Function>
  static void for_each_ref(const Command& command, const Function& function) {
    if (const auto* launch = std::get_if<Launch>(&command)) {
      for (const auto& arg : launch->arguments())
        if (const auto* buffer = std::get_if<BufferArg>(&arg)) function(buffer->ref);
    } else {
      const auto& call = std::get<HostCall>(command);
      for (auto ref : call.reads) function(ref);
      for (auto ref : call.writes) function(ref);
    }
  }

  void execute(const HostCall& call) { call.call(*this); }

  void execute(const Launch& launch) {
    for (auto size : launch.global())
      if (size == 0) return;
    auto kernel = device_.programs().kernel(launch.program(), launch.function());
    cl_uint index = 0;
    double bytes = 0;
    try {
      for (const auto& arg : launch.arguments()) set(kernel, index, arg, bytes);
    } catch (const ::cl::Error& error) {
      throw DeviceError(fmt::format("{}: argument {} was refused: {}", launch.function(), index, ocl::error_name(error.err())));
    }
    device_.launch(kernel, range(launch.global()), range(launch.local()),
                   {launch.function(), launch.detail_text(), bytes, launch.flop_count()});
  }

  void set(::cl::Kernel& kernel, cl_uint& index, const Arg& arg, double& bytes) {
    if (const auto* buffer_arg = std::get_if<BufferArg>(&arg)) {
      kernel.setArg(index++, buffer(buffer_arg->ref));
      kernel.setArg(index++, static_cast<cl_ulong>(offset(buffer_arg->ref)));
      bytes += static_cast<double>(recording_.value(buffer_arg->ref.value).spec.bytes());
    } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
      set_scalar(kernel, index++, recording_.value(scalar->value).spec.dtype,
                 bindings_[static_cast<std::size_t>(scalar->value)].scalar);
    } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
      kernel.setArg(index++, local->bytes, nullptr);
    } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
      kernel.setArg(index++, static_cast<cl_int>(*integer));
    } else {
      kernel.setArg(index++, static_cast<cl_float>(std::get<float>(arg)));
    }
  }

  /// A kernel takes f16 and bf16 scalars as float.
  static void set_scalar(::cl::Kernel& kernel, cl_uint index, Dtype dtype, const std::byte* value) {
    if (dtype == Dtype::f16 || dtype == Dtype::bf16) {
      std::uint16_t bits;
      std::memcpy(&bits, value, sizeof bits);
      kernel.setArg(index, static_cast<cl_float>(dtype == Dtype::f16 ? half_to_float(bits) : bfloat16_to_float(bits)));
    } else {
      kernel.setArg(index, size_of(dtype), value);
    }
  }

  static ::cl::NDRange range(const std::vector<std::size_t>& sizes) {
    switch (sizes.size()) {
      case 0: return ::cl::NullRange;
      case 1: return {sizes[0]};
      case 2: return {sizes[0], sizes[1]};
      default: return {sizes[0], sizes[1], sizes[2]};
    }
  }

  const Recording& recording_;
  ocl::Context& device_;
  const Bindings& bindings_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<std::shared_ptr<DeviceValue>> run(const Recording& recording, ocl::Context& device, const Bindings& bindings,
                                              const std::vector<ValueId>& keep) {
  return Run(recording, device, bindings)(keep);
}

}  // namespace clnet::exec
