// How the ICD loader finds the null driver: the only symbols that the library exports.
#include "tests/null_opencl/functions.h"

namespace null_opencl {

namespace {

cl_int retain_device(cl_device_id) { return CL_SUCCESS; }

void* extension_of_platform(cl_platform_id, const char* name) {
  return std::string_view(name) == "nullOpenclCounts" ? reinterpret_cast<void*>(counts) : nullptr;
}

cl_icd_dispatch make_table() {
  cl_icd_dispatch table{};
  table.clGetPlatformIDs = get_platforms;
  table.clGetPlatformInfo = get_platform_info;
  table.clGetDeviceIDs = get_devices;
  table.clGetDeviceInfo = get_device_info;
  table.clRetainDevice = retain_device;
  table.clReleaseDevice = retain_device;
  table.clGetExtensionFunctionAddressForPlatform = extension_of_platform;

  table.clCreateContext = create_context;
  table.clRetainContext = retain<cl_context>;
  table.clReleaseContext = release<cl_context>;
  table.clGetContextInfo = get_context_info;

  table.clCreateCommandQueue = create_queue;
  table.clRetainCommandQueue = retain<cl_command_queue>;
  table.clReleaseCommandQueue = release<cl_command_queue>;
  table.clGetCommandQueueInfo = get_queue_info;
  table.clFlush = flush;
  table.clFinish = finish;

  table.clCreateBuffer = create_buffer;
  table.clCreateSubBuffer = create_sub_buffer;
  table.clRetainMemObject = retain<cl_mem>;
  table.clReleaseMemObject = release<cl_mem>;
  table.clGetMemObjectInfo = get_memory_info;
  table.clEnqueueReadBuffer = enqueue_read;
  table.clEnqueueWriteBuffer = enqueue_write;
  table.clEnqueueCopyBuffer = enqueue_copy;
  table.clEnqueueFillBuffer = enqueue_fill;
  table.clEnqueueMapBuffer = enqueue_map;
  table.clEnqueueUnmapMemObject = enqueue_unmap;

  table.clCreateProgramWithSource = create_program;
  table.clCreateProgramWithBinary = create_program_of_binary;
  table.clRetainProgram = retain<cl_program>;
  table.clReleaseProgram = release<cl_program>;
  table.clBuildProgram = build_program;
  table.clGetProgramInfo = get_program_info;
  table.clGetProgramBuildInfo = get_build_info;

  table.clCreateKernel = create_kernel;
  table.clRetainKernel = retain<cl_kernel>;
  table.clReleaseKernel = release<cl_kernel>;
  table.clSetKernelArg = set_kernel_argument;
  table.clGetKernelInfo = get_kernel_info;
  table.clGetKernelWorkGroupInfo = get_kernel_group_info;
  table.clEnqueueNDRangeKernel = enqueue_kernel;

  table.clRetainEvent = retain<cl_event>;
  table.clReleaseEvent = release<cl_event>;
  table.clGetEventInfo = get_event_info;
  table.clGetEventProfilingInfo = get_profiling_info;
  table.clSetEventCallback = set_event_callback;
  table.clWaitForEvents = wait_for_events;
  table.clEnqueueMarkerWithWaitList = enqueue_marker;
  table.clEnqueueBarrierWithWaitList = enqueue_barrier;
  return table;
}

}  // namespace

const cl_icd_dispatch dispatch_table = make_table();

}  // namespace null_opencl

extern "C" __attribute__((visibility("default"))) void* clGetExtensionFunctionAddress(const char* name) {
  const std::string_view wanted(name);
  if (wanted == "clIcdGetPlatformIDsKHR") return reinterpret_cast<void*>(null_opencl::get_platforms);
  if (wanted == "clGetPlatformInfo") return reinterpret_cast<void*>(null_opencl::get_platform_info);
  return nullptr;
}
