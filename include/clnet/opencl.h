// Interoperation with a program's own OpenCL code; the only public header that includes OpenCL's.
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

/// A device from the caller's own objects. clnet retains them while the Device or a tensor on it lives. It enqueues work to
/// `queue`, which must be in-order, and to its own queues in the same context. Throws DeviceError where the queue is out-of-order
/// or belongs to another context or device.
CLNET_API Device wrap(cl_context context, cl_device_id device, cl_command_queue queue);

/// The OpenCL objects of a device. They are not retained: they are valid while the Device or a tensor on it lives.
CLNET_API cl_context context(const Device& device);
CLNET_API cl_device_id device_id(const Device& device);
CLNET_API cl_command_queue queue(const Device& device);

/// A tensor over the caller's buffer, from `offset` bytes on, without a copy. clnet retains the buffer while it is needed and
/// does not count it against the memory limit. The buffer must keep its values while tensors are computed from this one. Work on
/// it in other queues must be finished before. Throws DeviceError where the buffer belongs to another context or is too small,
/// and where `offset` is no multiple of the element size.
CLNET_API Tensor from_buffer(const Device& device, cl_mem memory, const Spec& spec, std::size_t offset = 0);

/// The memory of a tensor's values: row-major, from `offset` bytes on.
struct Memory {
  cl_mem memory = nullptr;
  std::size_t offset = 0;
  std::shared_ptr<const void> owner;  ///< `memory` is valid while this lives
};
/// Enqueues the computation of the tensor and returns at once. Later work on queue() sees its values. It must not write to them:
/// other tensors may share the memory. A value in host memory is copied to Device::current().
CLNET_API Memory buffer(const Tensor& tensor);

}  // namespace clnet::opencl
