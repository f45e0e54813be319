#include "lib/exec/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>

#include "clnet/error.h"
#include "lib/cl/quirks.h"

namespace clnet::exec {

namespace {

::cl::NDRange range(const std::vector<std::size_t>& sizes) {
  switch (sizes.size()) {
    case 0: return ::cl::NullRange;
    case 1: return {sizes[0]};
    case 2: return {sizes[0], sizes[1]};
    default: return {sizes[0], sizes[1], sizes[2]};
  }
}

}  // namespace

Plan::Plan(Recording recording, std::vector<ValueId> keep, ocl::Context& device, const Placing& placing)
    : recording_(std::move(recording)), keep_(std::move(keep)), placement_(place(recording_, keep_, placing)) {
  build_programs(device);
  steps_.resize(recording_.commands().size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& step = steps_[i];
    step.command = i;
    if (const auto* launch = std::get_if<Launch>(&recording_.commands()[i])) {
      prepare(*launch, step, device);
      // Of two launches of which one is made, one counts.
      if (!step.skipped && launch->when() != Launch::When::in_place) ++kernels_;
    } else {
      ++host_calls_;
    }
  }
}

ocl::KernelToBuild Plan::to_build(const Launch& launch) const {
  ocl::KernelToBuild kernel{launch.program(), launch.function(), launch.local(), {}};
  for (const auto& arg : launch.arguments()) {
    if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
      const auto& info = recording_.value(buffer->ref.value);
      kernel.arguments.emplace_back(ocl::KernelToBuild::Buffer{stored_bytes(recording_.value(info.root).spec)});
      kernel.arguments.emplace_back(static_cast<std::uint64_t>(info.offset + buffer->ref.offset));
    } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
      const auto dtype = recording_.value(scalar->value).spec.dtype;
      // A kernel takes f16 and bf16 scalars as float; one, as some kernels divide by it.
      constexpr std::uint64_t one = 0x3f800000;
      kernel.arguments.emplace_back(is_floating(dtype) ? ocl::KernelToBuild::Scalar{sizeof(float), one}
                                                       : ocl::KernelToBuild::Scalar{size_of(dtype), 1});
    } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
      kernel.arguments.emplace_back(ocl::KernelToBuild::Local{local->bytes});
    } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
      kernel.arguments.emplace_back(*integer);
    } else {
      kernel.arguments.emplace_back(std::get<float>(arg));
    }
  }
  return kernel;
}

void Plan::build_ahead(ocl::Context& device) const {
  const auto processes = ocl::build_processes(device.info());
  if (processes.count <= 1) return;
  // A user's kernel may never end on zeros. Where a range is large, PoCL compiles the kernel in another way than for the one
  // group that is run ahead.
  const auto fits = [](const Launch& launch) {
    return !launch.program().users() && !launch.local().empty() &&
           std::all_of(launch.global().begin(), launch.global().end(), [](auto size) { return size > 0 && size < 65535; });
  };
  const auto less = [](const Launch* a, const Launch* b) {
    const auto key = [](const Launch& launch) { return std::tie(launch.program(), launch.function(), launch.local()); };
    return key(*a) < key(*b);
  };
  std::set<const Launch*, decltype(less)> different(less);
  std::vector<ocl::KernelToBuild> kernels;
  for (const auto& command : recording_.commands()) {
    const auto* launch = std::get_if<Launch>(&command);
    if (launch && fits(*launch) && different.insert(launch).second) kernels.push_back(to_build(*launch));
  }
  ocl::build_ahead(device.info(), kernels, processes);
}

void Plan::build_programs(ocl::Context& device) const {
  build_ahead(device);
  const auto less = [](const ocl::ProgramSource* a, const ocl::ProgramSource* b) { return *a < *b; };
  std::set<const ocl::ProgramSource*, decltype(less)> different(less);
  std::vector<const ocl::ProgramSource*> programs;
  for (const auto& command : recording_.commands()) {
    const auto* launch = std::get_if<Launch>(&command);
    if (launch && different.insert(&launch->program()).second) programs.push_back(&launch->program());
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto build = [&] {
    for (std::size_t i; (i = next++) < programs.size();) {
      try {
        device.programs().prepare(*programs[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const auto threads =
      device.info().thread_safe ? std::min<std::size_t>(programs.size(), std::thread::hardware_concurrency()) : 1;
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(build);
  build();
  helpers.clear();
  if (failure) std::rethrow_exception(failure);
}

namespace {

/// The launch's work-group, made smaller where the kernel as it was built allows less than the device does: its registers may not
/// suffice for more. A group that a kernel counts on (GROUP, and those of users' kernels) is not changed.
std::vector<std::size_t> allowed_group(const Launch& launch, const ::cl::Kernel& kernel, const ocl::Context& device) {
  auto local = launch.local();
  const auto items = [&] { return std::accumulate(local.begin(), local.end(), std::size_t{1}, std::multiplies{}); };
  if (items() <= 1 || ocl::has_quirk(device.info(), "rusticl-kernel-groups")) return local;
  const auto& program = launch.program();
  const bool fixed = program.defines.count("GROUP") != 0 || program.users();
  const auto most =
      ocl::checked(launch.function(), [&] { return kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device.device()); });
  while (items() > most) {
    const auto largest = std::max_element(local.begin(), local.end());
    if (fixed || *largest % 2 != 0)
      throw Unsupported(fmt::format("{}: a work-group of {} work-items, and the device takes {} of this kernel",
                                    launch.function(), items(), most));
    *largest /= 2;
  }
  return local;
}

}  // namespace

void Plan::prepare(const Launch& launch, Step& step, ocl::Context& device) {
  step.skipped = std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size == 0; });
  if (step.skipped) return;
  step.kernel = device.programs().kernel(launch.program(), launch.function());
  step.global = range(launch.global());
  step.local = range(allowed_group(launch, step.kernel, device));
  cl_uint index = 0;
  double bytes = 0;
  try {
    for (const auto& arg : launch.arguments()) {
      if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
        const auto& info = recording_.value(buffer->ref.value);
        const auto home = placement_.homes[root(buffer->ref.value)];
        auto& slots = home == Home::arena ? step.fixed : step.changing;
        slots.push_back({index, info.root, info.offset + buffer->ref.offset});
        bytes += static_cast<double>(info.spec.bytes());
        index += 2;
      } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
        step.scalars.push_back({index++, scalar->value, recording_.value(scalar->value).spec.dtype});
      } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
        step.kernel.setArg(index++, local->bytes, nullptr);
      } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
        step.kernel.setArg(index++, static_cast<cl_int>(*integer));
      } else {
        step.kernel.setArg(index++, static_cast<cl_float>(std::get<float>(arg)));
      }
    }
  } catch (const ::cl::Error& error) {
    throw DeviceError(fmt::format("{}: argument {} was refused: {}", launch.function(), index, ocl::error_name(error.err())));
  }
  step.bytes = launch.moved_bytes() >= 0 ? launch.moved_bytes() : bytes;
}

std::size_t Plan::bytes_at(Home home) const {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < placement_.homes.size(); ++id)
    if (placement_.homes[id] == home) bytes += stored_bytes(recording_.value(static_cast<ValueId>(id)).spec);
  return bytes;
}

std::string Plan::what() const {
  std::size_t largest = 0, count = 0;
  for (std::size_t id = 0; id < placement_.homes.size(); ++id) {
    if (placement_.homes[id] != Home::arena) continue;
    ++count;
    const auto bytes = [&](std::size_t value) { return recording_.value(static_cast<ValueId>(value)).spec.bytes(); };
    if (placement_.homes[largest] != Home::arena || bytes(id) > bytes(largest)) largest = id;
  }
  if (count == 0) return "no intermediate";
  const auto spec = to_string(recording_.value(static_cast<ValueId>(largest)).spec);
  return count == 1 ? spec : fmt::format("{} intermediates, the largest {}", count, spec);
}

}  // namespace clnet::exec
