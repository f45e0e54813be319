// The meeting point with a program's own OpenCL code; the only public header that includes OpenCL's.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <cstddef>
#include <memory>

#include "clnet/device.h"
#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::opencl {

/// A device made of the caller's own objects. They are retained as long as the Device (or a tensor on it) lives, and never owned.
/// clnet gives work to `queue`, which must be in-order, and to queues of its own in the same context. Throws DeviceError when the
/// queue is out-of-order or belongs to another context or device.
CLNET_API Device wrap(cl_context context, cl_device_id device, cl_command_queue queue);

/// What a device works with. Not retained: valid as long as the Device (or a tensor on it) lives.
CLNET_API cl_context context(const Device& device);
CLNET_API cl_device_id device_id(const Device& device);
CLNET_API cl_command_queue queue(const Device& device);

/// A tensor whose values are in the caller's buffer, from `offset` bytes on; nothing is copied. The buffer is retained as long as
/// something needs it, does not count against the memory limit, and must keep its values as long as tensors are computed from
/// this one: work enqueued on another queue has to be finished before. Throws DeviceError when the buffer is of another context,
/// too small, or the offset is not a multiple of an element.
CLNET_API Tensor from_buffer(const Device& device, cl_mem memory, const Spec& spec, std::size_t offset = 0);

/// Where a tensor's values are: row-major, from `offset` bytes on.
struct Memory {
  cl_mem memory = nullptr;
  std::size_t offset = 0;
  std::shared_ptr<const void> owner;  ///< `memory` is good as long as this lives
};
/// Enqueues the computation of the tensor without waiting; work that is enqueued on queue() from now on sees its values. It must
/// not write to them: other tensors may share the memory. Values that are still in host memory are copied to Device::current().
CLNET_API Memory buffer(const Tensor& tensor);

}  // namespace clnet::opencl
