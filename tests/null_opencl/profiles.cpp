#include "tests/null_opencl/profiles.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace null_opencl {

namespace {

constexpr cl_ulong kib = 1 << 10, gib = 1 << 30;

constexpr const char* nvidia_extensions =
    "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics cl_khr_local_int32_base_atomics "
    "cl_khr_local_int32_extended_atomics cl_khr_fp64 cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_icd "
    "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_nv_compiler_options cl_nv_device_attribute_query";
constexpr const char* amd_extensions =
    "cl_khr_fp64 cl_khr_global_int32_base_atomics cl_khr_local_int32_base_atomics cl_khr_int64_base_atomics "
    "cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_fp16 cl_khr_subgroups cl_khr_icd cl_amd_device_attribute_query "
    "cl_amd_media_ops cl_amd_media_ops2";
#define INTEL_EXTENSIONS                                                                                                   \
  "cl_khr_byte_addressable_store cl_khr_fp16 cl_khr_global_int32_base_atomics cl_khr_icd cl_khr_local_int32_base_atomics " \
  "cl_intel_subgroups cl_intel_required_subgroup_size cl_intel_subgroups_short cl_khr_subgroups"
/// Of drivers from before cl_intel_device_attribute_query.
constexpr const char* older_intel_extensions = INTEL_EXTENSIONS;
constexpr const char* intel_extensions = INTEL_EXTENSIONS " cl_intel_device_attribute_query";
constexpr const char* intel_matrix_extensions =
    INTEL_EXTENSIONS " cl_intel_device_attribute_query cl_intel_subgroup_matrix_multiply_accumulate";

/// CL_DEVICE_IP_VERSION_INTEL.
constexpr cl_uint ip(cl_uint architecture, cl_uint release, cl_uint revision) {
  return architecture << 22 | release << 14 | revision;
}

constexpr const char* cpu_extensions =
    "cl_khr_byte_addressable_store cl_khr_global_int32_base_atomics cl_khr_local_int32_base_atomics cl_khr_fp64 cl_khr_icd";

constexpr Profile nvidia(const char* key, const char* name, cl_uint units, cl_uint mhz, cl_ulong memory, cl_uint major,
                         cl_uint minor) {
  return {.key = key,
          .platform = "NVIDIA CUDA",
          .vendor = "NVIDIA Corporation",
          .name = name,
          .version = "OpenCL 3.0 CUDA",
          .driver = "550.54.14",
          .board = "",
          .extensions = nvidia_extensions,
          .type = CL_DEVICE_TYPE_GPU,
          .units = units,
          .clock_mhz = mhz,
          .float_width = 1,
          .address_alignment_bits = 4096,
          .local_memory = 48 * kib,
          .global_memory = memory,
          .max_allocation = memory / 4,
          .max_work_group_size = 1024,
          .max_parameter_size = 4352,
          .unified_memory = false,
          .capability_major = major,
          .capability_minor = minor};
}

constexpr Profile amd(const char* key, const char* name, const char* board, cl_uint units, cl_uint mhz, cl_ulong memory,
                      cl_uint wavefront) {
  return {.key = key,
          .platform = "AMD Accelerated Parallel Processing",
          .vendor = "Advanced Micro Devices, Inc.",
          .name = name,
          .version = "OpenCL 2.0 ",
          .driver = "3614.0 (HSA1.1,LC)",
          .board = board,
          .extensions = amd_extensions,
          .type = CL_DEVICE_TYPE_GPU,
          .units = units,
          .clock_mhz = mhz,
          .float_width = 1,
          .address_alignment_bits = 1024,
          .local_memory = 64 * kib,
          .global_memory = memory,
          .max_allocation = memory / 8 * 7,
          .max_work_group_size = 256,
          .max_parameter_size = 1024,
          .unified_memory = false,
          .wavefront = wavefront};
}

constexpr Profile intel(const char* key, const char* name, cl_uint units, cl_uint mhz, cl_ulong memory, std::size_t group,
                        bool unified, const char* extensions, std::size_t smallest_sub_group, cl_uint ip_version) {
  return {.key = key,
          .platform = "Intel(R) OpenCL Graphics",
          .vendor = "Intel(R) Corporation",
          .name = name,
          .version = "OpenCL 3.0 NEO ",
          .driver = "24.26.30049",
          .board = "",
          .extensions = extensions,
          .type = CL_DEVICE_TYPE_GPU,
          .units = units,
          .clock_mhz = mhz,
          .float_width = 1,
          .address_alignment_bits = 1024,
          .local_memory = 64 * kib,
          .global_memory = memory,
          .max_allocation = 4 * gib,
          .max_work_group_size = group,
          .max_parameter_size = 2048,
          .unified_memory = unified,
          .smallest_sub_group = smallest_sub_group,
          .ip_version = ip_version};
}

/// A CPU of no vendor: no quirk applies to it.
constexpr Profile cpu(const char* key, const char* name, cl_uint lanes) {
  return {.key = key,
          .platform = "Null OpenCL",
          .vendor = "clnet",
          .name = name,
          .version = "OpenCL 1.2 null",
          .driver = "1",
          .board = "",
          .extensions = cpu_extensions,
          .type = CL_DEVICE_TYPE_CPU,
          .units = 8,
          .clock_mhz = 3000,
          .float_width = lanes,
          .address_alignment_bits = 1024,
          .local_memory = 256 * kib,
          .global_memory = 32 * gib,
          .max_allocation = 8 * gib,
          .max_work_group_size = 4096,
          .max_parameter_size = 1024,
          .unified_memory = true};
}

constexpr std::array profiles{
    cpu("cpu4", "CPU with vectors of 4 floats", 4),
    cpu("cpu8", "CPU with vectors of 8 floats", 8),
    cpu("cpu16", "CPU with vectors of 16 floats", 16),
    nvidia("gtx1080", "NVIDIA GeForce GTX 1080", 20, 1733, 8 * gib, 6, 1),
    nvidia("v100", "Tesla V100-PCIE-16GB", 80, 1380, 16 * gib, 7, 0),
    nvidia("rtx2080", "NVIDIA GeForce RTX 2080", 46, 1710, 8 * gib, 7, 5),
    nvidia("rtx3090", "NVIDIA GeForce RTX 3090", 82, 1695, 24 * gib, 8, 6),
    nvidia("rtx4090", "NVIDIA GeForce RTX 4090", 128, 2520, 24 * gib, 8, 9),
    nvidia("a100", "NVIDIA A100-PCIE-40GB", 108, 1410, 40 * gib, 8, 0),
    nvidia("h100", "NVIDIA H100 PCIe", 114, 1755, 80 * gib, 9, 0),
    nvidia("h200", "NVIDIA H200", 132, 1980, 140 * gib, 9, 0),
    nvidia("rtx5090", "NVIDIA GeForce RTX 5090", 170, 2407, 32 * gib, 12, 0),
    amd("mi50", "gfx906:sramecc+:xnack-", "AMD Instinct MI50", 60, 1725, 16 * gib, 64),
    amd("mi210", "gfx90a:sramecc+:xnack-", "AMD Instinct MI210", 104, 1700, 64 * gib, 64),
    amd("mi300x", "gfx942:sramecc+:xnack-", "AMD Instinct MI300X", 304, 2100, 192 * gib, 64),
    amd("rx6900xt", "gfx1030", "Radeon RX 6900 XT", 40, 2250, 16 * gib, 32),
    amd("rx7900xtx", "gfx1100", "Radeon RX 7900 XTX", 48, 2526, 24 * gib, 32),
    amd("rx9070xt", "gfx1201", "Radeon RX 9070 XT", 32, 2970, 16 * gib, 32),
    intel("a770", "Intel(R) Arc(TM) A770 Graphics", 512, 2400, 16 * gib, 1024, false, intel_matrix_extensions, 8, ip(12, 55, 8)),
    intel("b580", "Intel(R) Arc(TM) B580 Graphics", 160, 2670, 12 * gib, 1024, false, intel_matrix_extensions, 16, ip(20, 1, 4)),
    intel("max1100", "Intel(R) Data Center GPU Max 1100", 448, 1550, 48 * gib, 1024, false, intel_matrix_extensions, 16,
          ip(12, 60, 7)),
    intel("irisxe", "Intel(R) Iris(R) Xe Graphics", 96, 1350, 12 * gib, 512, true, intel_extensions, 8, ip(12, 0, 0)),
    intel("uhd630", "Intel(R) UHD Graphics 630", 24, 1150, 12 * gib, 256, true, older_intel_extensions, 8, 0),
};

const Profile* find() {
  const char* wanted = std::getenv("NULL_OPENCL_DEVICE");
  std::string known;
  for (const Profile& candidate : profiles) {
    if (wanted && std::string_view(wanted) == candidate.key) return &candidate;
    known += known.empty() ? candidate.key : std::string(" | ") + candidate.key;
  }
  std::fprintf(stderr, "null_opencl: NULL_OPENCL_DEVICE=%s: expected %s\n", wanted ? wanted : "", known.c_str());
  return nullptr;
}

}  // namespace

const Profile* profile() {
  static const Profile* const chosen = find();
  return chosen;
}

cl_uint device_count() {
  const char* count = std::getenv("NULL_OPENCL_DEVICES");
  return count ? std::clamp(static_cast<cl_uint>(std::strtoul(count, nullptr, 10)), 1U, most_devices) : 1;
}

std::size_t kernel_group_limit() {
  const char* limit = std::getenv("NULL_OPENCL_KERNEL_GROUP");
  return limit ? std::strtoull(limit, nullptr, 10) : profile()->max_work_group_size;
}

}  // namespace null_opencl
