// What makers' extensions tell about a device beyond OpenCL 1.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// 86 of NVIDIA's "sm_86"; 0 of others.
int compute_capability(std::string_view generation);

/// "gen9", "xe-lp", "xe-hpg", "xe-hpc", "xe-lpg", "xe2" by CL_DEVICE_IP_VERSION_INTEL.
std::string intel_generation(std::uint32_t ip_version);

/// Whether GPUs of this generation ("sm_86", "gfx90a") multiply matrices in units of their own; of sm_75 not all do, and it is
/// false.
bool has_matrix_units(std::string_view generation);

/// Fills in DeviceInfo's work_group_multiple, generation, sub_group_size, smallest_sub_group, matrix_units,
/// cache and cache_line from the device and its extensions, a list of words. What a driver does not answer stays unknown.
void describe_generation(const cl::Device& device, std::string_view extensions, DeviceInfo& info);

}  // namespace clnet::ocl
