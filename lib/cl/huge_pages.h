// Large pages under the buffers of CPUs.
#pragma once

#include <cstddef>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// Large buffers of a CPU get pages of 2 MiB where the system has them on request. Any thread may call it.
class HugePages {
 public:
  HugePages(const cl::Context& context, const cl::Device& device, const DeviceInfo& info);

  /// Call it before the buffer's first use.
  void put_under(const cl::Buffer& buffer, std::size_t bytes) const noexcept;

 private:
  cl::CommandQueue queue_;  ///< none: of another device
};

}  // namespace clnet::ocl
