#include "clnet/device.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/leave_scope.h"
#include "lib/base/log.h"
#include "lib/base/process_mutex.h"
#include "lib/cl/context.h"
#include "lib/cl/devices.h"
#include "lib/cl/driver_lifetime.h"

namespace clnet {

namespace {

struct Default {
  ProcessMutex mutex;
  std::optional<Device> device;
  bool chosen = false;  ///< by set_default()
};

thread_local DeviceScope* innermost_device = nullptr;

/// Never destroyed: at exit the driver may be gone before it.
Default& the_default() {
  static auto& instance = *new Default;
  return instance;
}

std::vector<DeviceInfo> infos(const std::vector<ocl::Candidate>& candidates) {
  std::vector<DeviceInfo> result;
  for (const auto& candidate : candidates) result.push_back(candidate.info);
  return result;
}

/// `asked` says who wanted it, in the error.
Device open(std::string_view selector, std::string_view asked) {
  std::vector<std::string> failures;
  const auto candidates = ocl::candidates(&failures);
  const int index = ocl::choose(infos(candidates), selector);
  if (index >= 0) return device_with(ocl::Context::open(candidates[static_cast<std::size_t>(index)]));
  if (candidates.empty() && !failures.empty()) {
    throw DeviceError(fmt::format("{}no OpenCL device can be used: {}", asked, fmt::join(failures, "; ")));
  }
  if (candidates.empty()) {
    throw DeviceError(fmt::format("{}{}", asked, ocl::no_device_text()));
  }
  std::string there;
  for (const auto& [device, info] : candidates) {
    there += fmt::format("{}{}:{} {}", there.empty() ? "" : ", ", info.platform_index, info.device_index, info.name);
  }
  throw DeviceError(
      fmt::format("{}no device fits '{}': expected gpu, cpu, accelerator, platform:device or a part of a name; there is {}",
                  asked, selector, there));
}

}  // namespace

std::vector<DeviceInfo> Device::list() { return infos(ocl::candidates()); }

Device Device::find(std::string_view selector) { return open(selector, ""); }

Device Device::current() {
  ocl::require_drivers();
  if (innermost_device) return innermost_device->device();
  Default& state = the_default();
  const std::lock_guard lock(state.mutex);
  if (!state.device) {
    const auto selector = env::text("CLNET_DEVICE");
    state.device = open(selector.value_or(""), selector ? "CLNET_DEVICE: " : "");
    const DeviceInfo& info = state.device->info();
    logging::print(logging::Level::plan, "device {}:{} {} ({}, driver {})", info.platform_index, info.device_index, info.name,
                   info.platform, info.driver_version);
  }
  return *state.device;
}

void Device::set_default(const Device& device) {
  Default& state = the_default();
  const std::lock_guard lock(state.mutex);
  state.chosen = true;
  state.device = device;
}

DeviceScope::DeviceScope(const Device& device) : device_(device), outer_(std::exchange(innermost_device, this)) {}
DeviceScope::~DeviceScope() { leave_scope(innermost_device, this, &DeviceScope::outer_); }

std::shared_ptr<ocl::Context> ocl::chosen_device() {
  if (innermost_device) return context_of(innermost_device->device());
  Default& state = the_default();
  const std::lock_guard lock(state.mutex);
  return state.chosen ? context_of(*state.device) : nullptr;
}

bool ocl::belongs_elsewhere(const Context& context) {
  return innermost_device && context_of(innermost_device->device()).get() != &context;
}

const DeviceInfo& Device::info() const { return context_->info(); }
MemoryStats Device::memory() const { return context_->memory().stats(); }
void Device::set_memory_limit(std::size_t bytes) { context_->memory().set_limit(bytes); }
void Device::trim() { context_->trim(); }
void Device::finish() const { context_->finish(); }
void Device::start_trace(const std::string& path) { context_->start_trace(path); }
void Device::stop_trace() { context_->stop_trace(); }

}  // namespace clnet
