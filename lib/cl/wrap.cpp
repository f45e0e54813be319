#include "clnet/opencl.h"
#include "lib/cl/context.h"

namespace clnet::opencl {

Device wrap(cl_context context, cl_device_id device, cl_command_queue queue) {
  return Device(ocl::Context::wrap(context, device, queue));
}

cl_context context(const Device& device) { return device.context()->context()(); }
cl_device_id device_id(const Device& device) { return device.context()->device()(); }
cl_command_queue queue(const Device& device) { return device.context()->queue()(); }

}  // namespace clnet::opencl
