// What the null driver can claim to be.
#pragma once

#include <CL/cl.h>

#include <cstddef>

namespace null_opencl {

struct Profile {
  const char* key;  ///< as in NULL_OPENCL_DEVICE=rtx3090
  const char *platform, *vendor, *name, *version, *driver, *board, *extensions;
  cl_device_type type;
  cl_uint units, clock_mhz, float_width, address_alignment_bits;
  cl_ulong local_memory, global_memory, max_allocation;
  std::size_t max_work_group_size, max_parameter_size;
  bool unified_memory;
  cl_ulong cache = 1 << 20;
  cl_uint capability_major = 0, capability_minor = 0;  ///< NVIDIA only
  cl_uint wavefront = 0;                               ///< AMD only
  std::size_t smallest_sub_group = 0;                  ///< Intel only: the powers of two from it to 32
  cl_uint ip_version = 0;                              ///< Intel only; 0: the driver is too old to tell
};

/// Work-items of a group that a built kernel may have: NULL_OPENCL_KERNEL_GROUP, or as many as the device.
std::size_t kernel_group_limit();

/// How many devices of the profile there are: NULL_OPENCL_DEVICES, or one.
cl_uint device_count();
constexpr cl_uint most_devices = 4;

/// The profile that NULL_OPENCL_DEVICE names; null, after a line on stderr that lists all, when it names none.
const Profile* profile();

}  // namespace null_opencl
