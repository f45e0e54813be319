// Facts about a device from vendor extensions, beyond OpenCL 1.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// 86 for NVIDIA's "sm_86"; 0 for others.
int compute_capability(std::string_view architecture);

/// The architecture for CL_DEVICE_IP_VERSION_INTEL: "gen9", "xe-lp", "xe-hpg", "xe-hpc", "xe-lpg", "xe2".
std::string intel_architecture(std::uint32_t ip_version);

/// Whether GPUs of this architecture ("sm_86", "gfx90a") have matrix units. False for sm_75, of which some lack them.
bool has_matrix_units(std::string_view architecture);

/// Fills in DeviceInfo's work_group_multiple, architecture, sub_group_size, smallest_sub_group, matrix_units, cache and
/// cache_line from the device and its list of extensions. Properties that the driver does not report stay unknown.
void describe_gpu_architecture(const cl::Device& device, std::string_view extensions, DeviceInfo& info);

}  // namespace clnet::ocl
