// Platform, device, context and queue.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "tests/null_opencl/functions.h"

namespace null_opencl {

// What the device says beyond OpenCL's headers, and CLBlast asks.
constexpr cl_device_info capability_major_nv = 0x4000, capability_minor_nv = 0x4001, board_name_amd = 0x4038;
constexpr cl_device_info warp_size_nv = 0x4003, wavefront_width_amd = 0x4043, sub_group_sizes_intel = 0x4108;
constexpr cl_device_info ip_version_intel = 0x4250;
constexpr cl_device_info work_group_multiple = 0x1067;  // of OpenCL 3.0

_cl_platform_id the_platform;
_cl_device_id the_devices[most_devices];

namespace {

bool is_device(cl_device_id device) {
  return std::any_of(std::begin(the_devices), std::end(the_devices), [&](const auto& known) { return device == &known; });
}

}  // namespace

cl_int get_platforms(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  if (!profile()) return CL_PLATFORM_NOT_FOUND_KHR;
  if (count) *count = 1;
  if (platforms && room > 0) *platforms = &the_platform;
  return CL_SUCCESS;
}

cl_int get_platform_info(cl_platform_id, cl_platform_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_PLATFORM_PROFILE: return answer.text("FULL_PROFILE");
    case CL_PLATFORM_VERSION: return answer.text(profile()->version);
    case CL_PLATFORM_NAME: return answer.text(profile()->platform);
    case CL_PLATFORM_VENDOR: return answer.text(profile()->vendor);
    case CL_PLATFORM_EXTENSIONS: return answer.text("cl_khr_icd");
    case CL_PLATFORM_ICD_SUFFIX_KHR: return answer.text("NULL");
    default: return CL_INVALID_VALUE;
  }
}

cl_int get_devices(cl_platform_id, cl_device_type type, cl_uint room, cl_device_id* devices, cl_uint* count) {
  const bool wanted = (type & (profile()->type | CL_DEVICE_TYPE_DEFAULT)) != 0;
  const cl_uint there = wanted ? device_count() : 0;
  if (count) *count = there;
  if (!wanted) return CL_DEVICE_NOT_FOUND;
  for (cl_uint i = 0; devices && i < std::min(room, there); ++i) devices[i] = &the_devices[i];
  return CL_SUCCESS;
}

cl_int get_device_info(cl_device_id, cl_device_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  const Profile& device = *profile();
  constexpr std::size_t intel_sub_groups[] = {8, 16, 32};
  const std::size_t group[3] = {device.max_work_group_size, device.max_work_group_size, device.max_work_group_size};
  constexpr cl_device_fp_config arithmetic = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA;
  switch (what) {
    case CL_DEVICE_NAME: return answer.text(device.name);
    case CL_DEVICE_VENDOR: return answer.text(device.vendor);
    case CL_DEVICE_VERSION: return answer.text(device.version);
    case CL_DRIVER_VERSION: return answer.text(device.driver);
    case CL_DEVICE_OPENCL_C_VERSION: return answer.text("OpenCL C 1.2 ");
    case CL_DEVICE_PROFILE: return answer.text("FULL_PROFILE");
    case CL_DEVICE_EXTENSIONS: return answer.text(device.extensions);
    case CL_DEVICE_BUILT_IN_KERNELS: return answer.text("");
    case CL_DEVICE_TYPE: return answer.value(device.type);
    case CL_DEVICE_PLATFORM: return answer.value<cl_platform_id>(&the_platform);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return answer.value(device.units);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: return answer.value(device.clock_mhz);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS: return answer.value<cl_uint>(3);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return answer.bytes(group, sizeof group);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer.value(device.max_work_group_size);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer.value(device.global_memory);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer.value(device.max_allocation);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer.value(device.local_memory);
    case CL_DEVICE_LOCAL_MEM_TYPE: return answer.value<cl_device_local_mem_type>(CL_LOCAL);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return answer.value(device.address_alignment_bits);
    case CL_DEVICE_MAX_PARAMETER_SIZE: return answer.value(device.max_parameter_size);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: return answer.value(device.cache);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE: return answer.value<cl_uint>(64);
    case CL_DEVICE_ADDRESS_BITS: return answer.value<cl_uint>(64);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return answer.value<cl_bool>(device.unified_memory);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE: return answer.value<cl_bool>(CL_TRUE);
    case CL_DEVICE_IMAGE_SUPPORT: return answer.value<cl_bool>(CL_FALSE);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT: return answer.value(device.float_width);
    case CL_DEVICE_QUEUE_PROPERTIES: return answer.value<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE);
    case CL_DEVICE_SINGLE_FP_CONFIG:
    case CL_DEVICE_DOUBLE_FP_CONFIG: return answer.value(arithmetic);
    case CL_DEVICE_REFERENCE_COUNT: return answer.value<cl_uint>(1);
    case work_group_multiple:
      return std::string_view(device.version).starts_with("OpenCL 3") ? answer.value<std::size_t>(32) : CL_INVALID_VALUE;
    case capability_major_nv: return device.capability_major ? answer.value(device.capability_major) : CL_INVALID_VALUE;
    case capability_minor_nv: return device.capability_major ? answer.value(device.capability_minor) : CL_INVALID_VALUE;
    case warp_size_nv: return device.capability_major ? answer.value<cl_uint>(32) : CL_INVALID_VALUE;
    case wavefront_width_amd: return *device.board ? answer.value(device.wavefront) : CL_INVALID_VALUE;
    case sub_group_sizes_intel:
      if (device.smallest_sub_group == 0) return CL_INVALID_VALUE;
      return device.smallest_sub_group == 8 ? answer.bytes(intel_sub_groups, sizeof intel_sub_groups)
                                            : answer.bytes(intel_sub_groups + 1, 2 * sizeof *intel_sub_groups);
    case ip_version_intel: return device.ip_version ? answer.value(device.ip_version) : CL_INVALID_VALUE;
    case board_name_amd: return *device.board ? answer.text(device.board) : CL_INVALID_VALUE;
    default: return CL_INVALID_VALUE;
  }
}

cl_context create_context(const cl_context_properties*, cl_uint count, const cl_device_id* devices,
                          void (*)(const char*, const void*, std::size_t, void*), void*, cl_int* code) {
  if (count != 1 || !devices || !is_device(devices[0])) {
    set(code, CL_INVALID_DEVICE);
    return nullptr;
  }
  set(code, CL_SUCCESS);
  return new _cl_context(devices[0]);
}

cl_int get_context_info(cl_context context, cl_context_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_CONTEXT_DEVICES: return answer.value(context->device);
    case CL_CONTEXT_NUM_DEVICES: return answer.value<cl_uint>(1);
    case CL_CONTEXT_REFERENCE_COUNT: return answer.value(context->references.load());
    case CL_CONTEXT_PROPERTIES: return answer.bytes(nullptr, 0);
    default: return CL_INVALID_VALUE;
  }
}

cl_command_queue create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code) {
  if (device != context->device || (properties & ~cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE}) != 0) {
    set(code, device != context->device ? CL_INVALID_DEVICE : CL_INVALID_QUEUE_PROPERTIES);
    return nullptr;
  }
  set(code, CL_SUCCESS);
  return new _cl_command_queue(context, properties);
}

cl_int get_queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_QUEUE_CONTEXT: return answer.value(queue->context.get());
    case CL_QUEUE_DEVICE: return answer.value(queue->context.get()->device);
    case CL_QUEUE_REFERENCE_COUNT: return answer.value(queue->references.load());
    case CL_QUEUE_PROPERTIES: return answer.value(queue->properties);
    default: return CL_INVALID_VALUE;
  }
}

}  // namespace null_opencl
