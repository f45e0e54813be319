#include "lib/cl/gpu_architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

namespace clnet::ocl {

namespace {

// cl_nv_device_attribute_query, cl_amd_device_attribute_query, cl_intel_required_subgroup_size, cl_intel_device_attribute_query.
constexpr cl_device_info capability_major_nv = 0x4000, capability_minor_nv = 0x4001, warp_size_nv = 0x4003;
constexpr cl_device_info wavefront_width_amd = 0x4043, sub_group_sizes_intel = 0x4108;
constexpr cl_device_info ip_version_intel = 0x4250;
// CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE of OpenCL 3.0, which headers for 1.2 lack.
constexpr cl_device_info work_group_multiple = 0x1067;

/// 0 where the driver does not know the question.
template <class T>
T ask(const cl::Device& device, cl_device_info what) {
  T value = 0;
  return clGetDeviceInfo(device(), what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{0};
}

/// The smallest and the largest; zeros where the driver does not tell.
std::pair<std::size_t, std::size_t> sub_groups(const cl::Device& device) {
  std::array<std::size_t, 8> sizes{};
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device(), sub_group_sizes_intel, sizeof sizes, sizes.data(), &bytes) != CL_SUCCESS) return {0, 0};
  const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes / sizeof(std::size_t), sizes.size()));
  if (end == sizes.begin()) return {0, 0};
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), end);
  return {*smallest, *largest};
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

int compute_capability(std::string_view architecture) {
  int capability = 0;
  if (architecture.starts_with("sm_"))
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), capability);
  return capability;
}

std::string intel_architecture(std::uint32_t ip_version) {
  // Architecture, release and revision in 10, 8 and 14 bits: gen9 is 9.0.9, Arc A770 12.55.8.
  const auto architecture = ip_version >> 22, release = ip_version >> 14 & 0xff;
  if (architecture == 12) return release < 50 ? "xe-lp" : release < 60 ? "xe-hpg" : release < 70 ? "xe-hpc" : "xe-lpg";
  if (architecture < 12) return fmt::format("gen{}", architecture);
  return fmt::format("xe{}", architecture / 10);
}

bool has_matrix_units(std::string_view architecture) {
  // TU116 and TU117 call themselves sm_75 and have none.
  if (const int capability = compute_capability(architecture); capability > 0) return capability >= 70 && capability != 75;
  for (const std::string_view prefix : {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"})
    if (architecture.starts_with(prefix)) return true;
  return false;
}

void describe_gpu_architecture(const cl::Device& device, std::string_view extensions, DeviceInfo& info) {
  info.work_group_multiple = ask<std::size_t>(device, work_group_multiple);
  info.cache = ask<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  info.cache_line = ask<cl_uint>(device, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
  if (has_word(extensions, "cl_nv_device_attribute_query")) {
    const auto major = ask<cl_uint>(device, capability_major_nv);
    if (major > 0) info.architecture = fmt::format("sm_{}{}", major, ask<cl_uint>(device, capability_minor_nv));
    info.sub_group_size = ask<cl_uint>(device, warp_size_nv);
  } else if (has_word(extensions, "cl_amd_device_attribute_query")) {
    // ROCm's name of a device: gfx90a:sramecc+:xnack-.
    if (info.name.starts_with("gfx")) info.architecture = info.name.substr(0, info.name.find(':'));
    info.sub_group_size = ask<cl_uint>(device, wavefront_width_amd);
  } else if (has_word(extensions, "cl_intel_required_subgroup_size")) {
    std::tie(info.smallest_sub_group, info.sub_group_size) = sub_groups(device);
  }
  if (has_word(extensions, "cl_intel_device_attribute_query")) {
    // CPUs have the extension, too, and not these questions.
    if (const auto version = ask<cl_uint>(device, ip_version_intel); version > 0) info.architecture = intel_architecture(version);
  }
  info.matrix_units = has_matrix_units(info.architecture) || has_word(extensions, "cl_intel_subgroup_matrix_multiply_accumulate");
}

}  // namespace clnet::ocl
