#include "lib/cl/sub_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lib/cl/capability_probe.h"
#include "lib/cl/check.h"
#include "lib/cl/gpu_architecture.h"
#include "lib/cl/program_cache.h"

namespace clnet::ocl {

namespace {

/// Of the kernels that reduce, where the device takes as many: sub-groups of all sizes fill them.
constexpr std::size_t group = 256;
constexpr const char* file_name = "sub-groups";

}  // namespace

std::optional<std::string_view> claimed_sub_groups(const DeviceInfo& device) {
  if (device.max_work_group_size < group) return std::nullopt;
  const std::string_view architecture = device.architecture;
  if (compute_capability(architecture) >= 70 && device.sub_group_size == 32) return "shfl";
  for (const std::string_view prefix : {"gfx8", "gfx9"})
    if (architecture.starts_with(prefix) && device.sub_group_size == 64) return "bpermute64";
  // Waves of 64 are two halves there that see only their own values.
  for (const std::string_view prefix : {"gfx10", "gfx11", "gfx12"})
    if (architecture.starts_with(prefix) && device.sub_group_size == 32) return "bpermute32";
  if (device.subgroups && device.smallest_sub_group > 0) return "intel";
  return std::nullopt;
}

std::optional<std::string_view> sub_groups(const DeviceInfo& device) {
  const auto way = claimed_sub_groups(device);
  if (!way) return std::nullopt;
  const auto fault = capability_fault(
      device, {.what = "sub-groups",
               .name = file_name,
               .claim = std::string(*way),
               .run = [&](const ::cl::Device& found, const DeviceInfo& info) { return try_sub_groups(found, info, *way); }});
  return fault.empty() ? way : std::nullopt;
}

std::string sub_groups_state(const DeviceInfo& device) {
  if (!claimed_sub_groups(device)) return "";
  const auto fault = kept_capability_fault(device, file_name);
  return !fault ? "not tried yet" : fault->empty() ? "work" : *fault;
}

std::optional<std::string> sub_groups_file(const DeviceInfo& device) { return probe_file(device, file_name); }

std::string try_sub_groups(const ::cl::Device& device, const DeviceInfo& info, std::string_view way) {
  // Whole numbers whose sums are exact in any order, and differ for any two neighbours.
  std::vector<float> values(group);
  for (std::size_t i = 0; i < group; ++i) values[i] = static_cast<float>(i * 167 % 1021);
  return checked(fmt::format("trying the sub-groups of {}", info.name), [&]() -> std::string {
    const ::cl::Context context(device);
    const ::cl::CommandQueue queue(context, device);
    ProgramCache programs(context, device, info);
    auto [kernel, refusal] =
        build_probe_kernel(programs, {.name = "sub_groups_probe",
                                      .source = {},
                                      .defines = {{"GROUP", std::to_string(group)}, {fmt::format("SUB_GROUPS_{}", way), "1"}}});
    if (!refusal.empty()) return refusal;
    std::vector<float> results;
    for (std::size_t threads = 1; threads <= group; threads *= 2) results.resize(results.size() + 2 * group);
    const ::cl::Buffer input(context, CL_MEM_READ_ONLY, values.size() * sizeof(float));
    const ::cl::Buffer output(context, CL_MEM_READ_WRITE, results.size() * sizeof(float));
    queue.enqueueWriteBuffer(input, true, 0, values.size() * sizeof(float), values.data());
    kernel.setArg(0, input);
    kernel.setArg(1, output);
    queue.enqueueNDRangeKernel(kernel, ::cl::NullRange, ::cl::NDRange(group), ::cl::NDRange(group));
    queue.enqueueReadBuffer(output, true, 0, results.size() * sizeof(float), results.data());
    const float* got = results.data();
    for (std::size_t threads = 1; threads <= group; threads *= 2, got += 2 * group)
      for (std::size_t i = 0; i < group; ++i) {
        const float* first = &values[i / threads * threads];
        float sum = 0;
        for (std::size_t k = 0; k < threads; ++k) sum += first[k];
        const float most = *std::max_element(first, first + threads);
        if (got[i] != sum || got[group + i] != most)
          return fmt::format("{} neighbours make the sum {} and the maximum {} instead of {} and {} for item {}", threads, got[i],
                             got[group + i], sum, most, i);
      }
    return {};
  });
}

}  // namespace clnet::ocl
