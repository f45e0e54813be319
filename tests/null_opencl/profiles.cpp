#include "tests/null_opencl/profiles.h"

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
constexpr const char* intel_extensions =
    "cl_khr_byte_addressable_store cl_khr_fp16 cl_khr_global_int32_base_atomics cl_khr_icd cl_khr_local_int32_base_atomics "
    "cl_intel_subgroups cl_intel_required_subgroup_size cl_intel_subgroups_short cl_khr_subgroups";
constexpr const char* cpu_extensions =
    "cl_khr_byte_addressable_store cl_khr_global_int32_base_atomics cl_khr_local_int32_base_atomics cl_khr_fp64 cl_khr_icd";

constexpr Profile nvidia(const char* key, const char* name, cl_uint units, cl_uint mhz, cl_ulong memory, cl_uint major,
                         cl_uint minor) {
  return {key,
          "NVIDIA CUDA",
          "NVIDIA Corporation",
          name,
          "OpenCL 3.0 CUDA",
          "550.54.14",
          "",
          nvidia_extensions,
          CL_DEVICE_TYPE_GPU,
          units,
          mhz,
          1,
          4096,
          48 * kib,
          memory,
          memory / 4,
          1024,
          4352,
          false,
          major,
          minor};
}

constexpr Profile amd(const char* key, const char* name, const char* board, cl_uint units, cl_uint mhz, cl_ulong memory) {
  return {key,
          "AMD Accelerated Parallel Processing",
          "Advanced Micro Devices, Inc.",
          name,
          "OpenCL 2.0 ",
          "3614.0 (HSA1.1,LC)",
          board,
          amd_extensions,
          CL_DEVICE_TYPE_GPU,
          units,
          mhz,
          1,
          1024,
          64 * kib,
          memory,
          memory / 8 * 7,
          256,
          1024,
          false,
          0,
          0};
}

constexpr Profile intel(const char* key, const char* name, cl_uint units, cl_uint mhz, cl_ulong memory, std::size_t group,
                        bool unified) {
  return {key,
          "Intel(R) OpenCL Graphics",
          "Intel(R) Corporation",
          name,
          "OpenCL 3.0 NEO ",
          "24.26.30049",
          "",
          intel_extensions,
          CL_DEVICE_TYPE_GPU,
          units,
          mhz,
          1,
          1024,
          64 * kib,
          memory,
          4 * gib,
          group,
          2048,
          unified,
          0,
          0};
}

/// A CPU of no vendor: no quirk applies to it.
constexpr Profile cpu(const char* key, const char* name, cl_uint lanes) {
  return {key,
          "Null OpenCL",
          "clnet",
          name,
          "OpenCL 1.2 null",
          "1",
          "",
          cpu_extensions,
          CL_DEVICE_TYPE_CPU,
          8,
          3000,
          lanes,
          1024,
          256 * kib,
          32 * gib,
          8 * gib,
          4096,
          1024,
          true,
          0,
          0};
}

constexpr std::array profiles{
    cpu("cpu4", "CPU with vectors of 4 floats", 4),
    cpu("cpu8", "CPU with vectors of 8 floats", 8),
    cpu("cpu16", "CPU with vectors of 16 floats", 16),
    nvidia("gtx1080", "NVIDIA GeForce GTX 1080", 20, 1733, 8 * gib, 6, 1),
    nvidia("v100", "Tesla V100-PCIE-16GB", 80, 1380, 16 * gib, 7, 0),
    nvidia("rtx3090", "NVIDIA GeForce RTX 3090", 82, 1695, 24 * gib, 8, 6),
    nvidia("a100", "NVIDIA A100-PCIE-40GB", 108, 1410, 40 * gib, 8, 0),
    nvidia("h100", "NVIDIA H100 PCIe", 114, 1755, 80 * gib, 9, 0),
    amd("mi50", "gfx906:sramecc+:xnack-", "AMD Instinct MI50", 60, 1725, 16 * gib),
    amd("rx7900xtx", "gfx1100", "Radeon RX 7900 XTX", 48, 2526, 24 * gib),
    intel("a770", "Intel(R) Arc(TM) A770 Graphics", 512, 2400, 16 * gib, 1024, false),
    intel("uhd630", "Intel(R) UHD Graphics 630", 24, 1150, 12 * gib, 256, true),
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

std::size_t kernel_group_limit() {
  const char* limit = std::getenv("NULL_OPENCL_KERNEL_GROUP");
  return limit ? std::strtoull(limit, nullptr, 10) : profile()->max_work_group_size;
}

}  // namespace null_opencl
