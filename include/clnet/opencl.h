// The meeting point with a program's own OpenCL code; the only public header that includes OpenCL's.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include "clnet/device.h"
#include "clnet/export.h"

namespace clnet::opencl {

/// A device made of the caller's own objects. They are retained as long as the Device (or a tensor on it) lives, and never owned.
/// clnet gives work to `queue`, which must be in-order, and to queues of its own in the same context. Throws DeviceError when the
/// queue is out-of-order or belongs to another context or device.
CLNET_API Device wrap(cl_context context, cl_device_id device, cl_command_queue queue);

/// What a device works with. Not retained: valid as long as the Device (or a tensor on it) lives.
CLNET_API cl_context context(const Device& device);
CLNET_API cl_device_id device_id(const Device& device);
CLNET_API cl_command_queue queue(const Device& device);

}  // namespace clnet::opencl
