#include "tests/faults/layer/faults.h"

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace faults {

namespace {

constexpr Call table[] = {
    {"clGetPlatformIDs", CL_OUT_OF_HOST_MEMORY},
    {"clGetPlatformInfo", CL_OUT_OF_HOST_MEMORY},
    {"clGetDeviceIDs", CL_OUT_OF_RESOURCES},
    {"clGetDeviceInfo", CL_OUT_OF_RESOURCES},
    {"clCreateContext", CL_DEVICE_NOT_AVAILABLE},
    {"clCreateCommandQueue", CL_OUT_OF_HOST_MEMORY},
    {"clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE},
    {"clCreateProgramWithSource", CL_OUT_OF_HOST_MEMORY},
    {"clBuildProgram", CL_BUILD_PROGRAM_FAILURE},
    {"clCreateKernel", CL_OUT_OF_HOST_MEMORY},
    {"clGetKernelWorkGroupInfo", CL_OUT_OF_RESOURCES},
    {"clSetKernelArg", CL_OUT_OF_RESOURCES},
    {"clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES},
    {"clEnqueueReadBuffer", CL_OUT_OF_RESOURCES},
    {"clEnqueueWriteBuffer", CL_OUT_OF_RESOURCES},
    {"clEnqueueCopyBuffer", CL_OUT_OF_RESOURCES},
    {"clEnqueueFillBuffer", CL_OUT_OF_RESOURCES},
    {"clEnqueueMapBuffer", CL_MAP_FAILURE},
    {"clEnqueueUnmapMemObject", CL_OUT_OF_RESOURCES},
    {"clEnqueueMarkerWithWaitList", CL_OUT_OF_RESOURCES},
    {"clEnqueueBarrierWithWaitList", CL_OUT_OF_RESOURCES},
    {"clFlush", CL_OUT_OF_RESOURCES},
    {"clFinish", CL_OUT_OF_RESOURCES},
    {"clWaitForEvents", CL_OUT_OF_RESOURCES},
    {"clCreateUserEvent", CL_OUT_OF_HOST_MEMORY},
    {"clSetUserEventStatus", CL_OUT_OF_RESOURCES},
};

/// Its place in the table; the table's end when it has none.
constexpr int index_of(std::string_view name) {
  int index = 0;
  for (const Call& call : table) {
    if (call.name == name) return index;
    ++index;
  }
  return index;
}

std::atomic<int> armed{-1};
std::atomic<long> failing{0}, failures{1}, counted{0};
std::atomic<cl_int> failure{CL_SUCCESS};

/// What a call is to fail with, or CL_SUCCESS.
cl_int fails(int index) {
  if (armed.load(std::memory_order_acquire) != index) return CL_SUCCESS;
  const long past = ++counted - failing;
  return past >= 0 && past < failures ? failure.load() : CL_SUCCESS;
}

[[maybe_unused]] const bool from_environment = [] {
  const char* name = std::getenv("FAULT_CALL");
  if (!name) return false;
  const char *number = std::getenv("FAULT_NUMBER"), *code = std::getenv("FAULT_CODE");
  const int index = index_of(name);
  if (index == static_cast<int>(std::size(table))) {
    std::fprintf(stderr, "opencl_faults: FAULT_CALL=%s: expected a call that can fail\n", name);
    std::abort();
  }
  arm(name, number ? std::atol(number) : 1, code ? std::atoi(code) : table[index].code);
  return true;
}();

/// For kernels of the names that FAULT_ABORT lists the process ends, as by a compiler that aborts.
const char* compiled(const char* name) {
  static const std::string fatal = [] {
    const char* names = std::getenv("FAULT_ABORT");
    return names ? "," + std::string(names) + "," : std::string();
  }();
  if (!fatal.empty() && name && fatal.find("," + std::string(name) + ",") != std::string::npos) std::abort();
  return name;
}

}  // namespace

std::span<const Call> calls() { return table; }

void arm(const char* name, long number, int code, long times) {
  armed = -1;
  counted = 0;
  failing = number;
  failures = times;
  failure = code;
  armed.store(index_of(name), std::memory_order_release);
}

long disarm() {
  armed = -1;
  return counted;
}

}  // namespace faults

// One for every call of the table: a function that may fail before OpenCL's own of that name is called. A call whose index is the
// table's end does not compile.
#define INDEX(name)                                     \
  constexpr int index = faults::index_of(#name);        \
  static_assert(index < int{std::size(faults::table)}); \
  static const auto next = reinterpret_cast<decltype(&name)>(::dlsym(RTLD_NEXT, #name))

#define STATUS_CALL(name, parameters, arguments)               \
  extern "C" cl_int name parameters {                          \
    INDEX(name);                                               \
    if (const cl_int code = faults::fails(index)) return code; \
    return next arguments;                                     \
  }

#define OBJECT_CALL(type, name, parameters, arguments) \
  extern "C" type name parameters {                    \
    INDEX(name);                                       \
    if (const cl_int failure = faults::fails(index)) { \
      if (code) *code = failure;                       \
      return nullptr;                                  \
    }                                                  \
    return next arguments;                             \
  }

STATUS_CALL(clGetPlatformIDs, (cl_uint room, cl_platform_id* platforms, cl_uint* count), (room, platforms, count))
STATUS_CALL(clGetPlatformInfo, (cl_platform_id platform, cl_platform_info what, size_t room, void* target, size_t* needed),
            (platform, what, room, target, needed))
STATUS_CALL(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id* devices, cl_uint* count),
            (platform, type, room, devices, count))
STATUS_CALL(clGetDeviceInfo, (cl_device_id device, cl_device_info what, size_t room, void* target, size_t* needed),
            (device, what, room, target, needed))
OBJECT_CALL(cl_context, clCreateContext,
            (const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
             void (*notify)(const char*, const void*, size_t, void*), void* data, cl_int* code),
            (properties, count, devices, notify, data, code))
OBJECT_CALL(cl_command_queue, clCreateCommandQueue,
            (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code),
            (context, device, properties, code))
OBJECT_CALL(cl_mem, clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code),
            (context, flags, bytes, host, code))
OBJECT_CALL(cl_program, clCreateProgramWithSource,
            (cl_context context, cl_uint count, const char** texts, const size_t* lengths, cl_int* code),
            (context, count, texts, lengths, code))
STATUS_CALL(clBuildProgram,
            (cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
             void (*notify)(cl_program, void*), void* data),
            (program, count, devices, options, notify, data))
OBJECT_CALL(cl_kernel, clCreateKernel, (cl_program program, const char* name, cl_int* code),
            (program, faults::compiled(name), code))
STATUS_CALL(clGetKernelWorkGroupInfo,
            (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t room, void* target, size_t* needed),
            (kernel, device, what, room, target, needed))
STATUS_CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index_of_argument, size_t bytes, const void* value),
            (kernel, index_of_argument, bytes, value))
STATUS_CALL(clEnqueueNDRangeKernel,
            (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
             const size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, kernel, dimensions, offset, global, local, waits, wait_list, event))
STATUS_CALL(clEnqueueReadBuffer,
            (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, void* target, cl_uint waits,
             const cl_event* wait_list, cl_event* event),
            (queue, memory, blocking, offset, bytes, target, waits, wait_list, event))
STATUS_CALL(clEnqueueWriteBuffer,
            (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, const void* source,
             cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, memory, blocking, offset, bytes, source, waits, wait_list, event))
STATUS_CALL(clEnqueueCopyBuffer,
            (cl_command_queue queue, cl_mem source, cl_mem target, size_t source_offset, size_t target_offset, size_t bytes,
             cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, source, target, source_offset, target_offset, bytes, waits, wait_list, event))
STATUS_CALL(clEnqueueFillBuffer,
            (cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_bytes, size_t offset, size_t bytes,
             cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, memory, pattern, pattern_bytes, offset, bytes, waits, wait_list, event))
OBJECT_CALL(void*, clEnqueueMapBuffer,
            (cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
             cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* code),
            (queue, memory, blocking, flags, offset, bytes, waits, wait_list, event, code))
STATUS_CALL(clEnqueueUnmapMemObject,
            (cl_command_queue queue, cl_mem memory, void* address, cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, memory, address, waits, wait_list, event))
STATUS_CALL(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, waits, wait_list, event))
STATUS_CALL(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event),
            (queue, waits, wait_list, event))
STATUS_CALL(clFlush, (cl_command_queue queue), (queue))
STATUS_CALL(clFinish, (cl_command_queue queue), (queue))
STATUS_CALL(clWaitForEvents, (cl_uint count, const cl_event* events), (count, events))
OBJECT_CALL(cl_event, clCreateUserEvent, (cl_context context, cl_int* code), (context, code))
STATUS_CALL(clSetUserEventStatus, (cl_event event, cl_int status), (event, status))
