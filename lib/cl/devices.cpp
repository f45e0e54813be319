#include "lib/cl/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <sstream>
#include <tuple>

#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/driver_lifetime.h"
#include "lib/cl/gpu_architecture.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/quirks.h"

namespace clnet::ocl {

namespace {

std::optional<int> forced_vector_width() {
  const auto width = env::integer("CLNET_VECTOR_WIDTH", 1, 16);
  return width ? std::optional(static_cast<int>(*width)) : std::nullopt;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ' || text.back() == '\n')) text.pop_back();
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

DeviceType type_of(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return DeviceType::gpu;
  if (type & CL_DEVICE_TYPE_ACCELERATOR) return DeviceType::accelerator;
  if (type & CL_DEVICE_TYPE_CPU) return DeviceType::cpu;
  return DeviceType::other;
}

/// "OpenCL 3.0 CUDA" is 30.
int version_of(const std::string& text) {
  int major = 0, minor = 0;
  return std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

/// Why clnet cannot use a device, or empty.
std::string refusal(const cl::Device& device, const DeviceInfo& info) {
  if (version_of(info.device_version) < 12) return fmt::format("{} is older than OpenCL 1.2", info.device_version);
  if (!device.getInfo<CL_DEVICE_AVAILABLE>()) return "it is not available";
  if (!device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>()) return "it has no compiler";
  if (!device.getInfo<CL_DEVICE_ENDIAN_LITTLE>()) return "it is not little-endian";
  return why_unusable(info);
}

/// Larger is better, first element first.
auto rank(const DeviceInfo& info) {
  const int type = info.type == DeviceType::gpu           ? 3
                   : info.type == DeviceType::accelerator ? 2
                   : info.type == DeviceType::cpu         ? 1
                                                          : 0;
  const bool discrete = info.type != DeviceType::cpu && !info.unified_memory;
  return std::tuple(type, discrete, info.prefers_vector_kernels, static_cast<long>(info.compute_units) * info.clock_mhz,
                    info.global_memory);
}

}  // namespace

DeviceInfo describe(const cl::Device& device) {
  return checked("asking a device what it can do", [&] {
    DeviceInfo info;
    info.name = trimmed(device.getInfo<CL_DEVICE_NAME>());
    info.vendor = trimmed(device.getInfo<CL_DEVICE_VENDOR>());
    info.platform = trimmed(cl::Platform(device.getInfo<CL_DEVICE_PLATFORM>()).getInfo<CL_PLATFORM_NAME>());
    info.device_version = trimmed(device.getInfo<CL_DEVICE_VERSION>());
    info.driver_version = trimmed(device.getInfo<CL_DRIVER_VERSION>());
    info.type = type_of(device.getInfo<CL_DEVICE_TYPE>());
    info.compute_units = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    info.clock_mhz = static_cast<int>(device.getInfo<CL_DEVICE_MAX_CLOCK_FREQUENCY>());
    info.max_work_group_size = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
    info.global_memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
    info.max_allocation = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
    info.local_memory = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
    info.base_address_alignment = std::max<std::size_t>(device.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>() / 8, 1);
    info.max_parameter_size = device.getInfo<CL_DEVICE_MAX_PARAMETER_SIZE>();
    info.native_float_width = std::max(static_cast<int>(device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>()), 1);
    info.unified_memory = device.getInfo<CL_DEVICE_HOST_UNIFIED_MEMORY>() != 0;
    info.images = device.getInfo<CL_DEVICE_IMAGE_SUPPORT>() != 0;
    const auto words = trimmed(device.getInfo<CL_DEVICE_EXTENSIONS>());
    describe_gpu_architecture(device, words, info);
    std::istringstream extensions(words);
    for (std::string extension; extensions >> extension;) {
      if (extension == "cl_khr_fp16") info.fp16 = true;
      if (extension == "cl_khr_fp64") info.fp64 = true;
      if (extension == "cl_khr_subgroups" || extension == "cl_intel_subgroups") info.subgroups = true;
    }
    info.prefers_vector_kernels = info.type == DeviceType::cpu && info.native_float_width >= 4;
    apply_quirks(info);
    if (const auto width = forced_vector_width()) {
      info.native_float_width = *width;
      // Also a simulator is to run these kernels when it is asked to.
      if ((device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0) info.prefers_vector_kernels = *width > 1;
    }
    if (found_quirks_count()) apply_found_quirks(info);
    return info;
  });
}

std::vector<Candidate> candidates(std::vector<std::string>* failures) {
  env::check();
  require_drivers();
  use_drivers();
  const auto failed = [&](std::string reason) {
    logging::print(logging::Level::plan, "{}", reason);
    if (failures) failures->push_back(std::move(reason));
  };
  std::vector<Candidate> found;
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error& error) {
    if (error.err() == CL_PLATFORM_NOT_FOUND_KHR) {
      logging::print(logging::Level::plan, "no OpenCL platform");
    } else {
      failed(device_error("no OpenCL platform", error).what());
    }
    return found;
  }
  for (std::size_t p = 0; p < platforms.size(); ++p) {
    std::vector<cl::Device> devices;
    try {
      platforms[p].getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error& error) {
      if (error.err() == CL_DEVICE_NOT_FOUND) {
        logging::print(logging::Level::plan, "platform {} has no device", p);
      } else {
        failed(device_error(fmt::format("platform {} has no device", p), error).what());
      }
      continue;
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
      try {
        Candidate candidate{devices[d], describe(devices[d])};
        candidate.info.platform_index = static_cast<int>(p);
        candidate.info.device_index = static_cast<int>(d);
        if (const std::string reason = refusal(devices[d], candidate.info); !reason.empty()) {
          failed(fmt::format("device {}:{} {} left out: {}", p, d, candidate.info.name, reason));
          continue;
        }
        found.push_back(std::move(candidate));
      } catch (const cl::Error& error) {
        failed(device_error(fmt::format("device {}:{} left out", p, d), error).what());
      } catch (const DeviceError& error) {
        failed(fmt::format("device {}:{} left out: {}", p, d, error.what()));
      }
    }
  }
  return found;
}

std::string no_device_text() { return "no OpenCL device found: " + driver_advice(); }

int choose(const std::vector<DeviceInfo>& devices, std::string_view selector) {
  const std::string wanted = lower(selector);
  int best = -1;
  const auto choose_if = [&](auto&& matches) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (matches(devices[i]) && (best < 0 || rank(devices[i]) > rank(devices[static_cast<std::size_t>(best)]))) {
        best = static_cast<int>(i);
      }
    }
    return best;
  };
  if (wanted.empty()) return choose_if([](const DeviceInfo&) { return true; });
  if (wanted == "gpu") return choose_if([](const DeviceInfo& info) { return info.type == DeviceType::gpu; });
  if (wanted == "cpu") return choose_if([](const DeviceInfo& info) { return info.type == DeviceType::cpu; });
  if (wanted == "accelerator") return choose_if([](const DeviceInfo& info) { return info.type == DeviceType::accelerator; });
  const char* last = wanted.data() + wanted.size();
  int platform = 0, device = 0;
  if (const auto colon = std::from_chars(wanted.data(), last, platform);
      colon.ec == std::errc() && colon.ptr != last && *colon.ptr == ':') {
    if (const auto end = std::from_chars(colon.ptr + 1, last, device); end.ec == std::errc() && end.ptr == last) {
      return choose_if([&](const DeviceInfo& info) { return info.platform_index == platform && info.device_index == device; });
    }
  }
  if (choose_if([&](const DeviceInfo& info) { return lower(info.name).find(wanted) != std::string::npos; }) >= 0) return best;
  return choose_if(
      [&](const DeviceInfo& info) { return lower(info.platform + '\n' + info.vendor).find(wanted) != std::string::npos; });
}

}  // namespace clnet::ocl
