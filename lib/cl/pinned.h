// Host memory that the device's copy engine reads and writes directly.
#pragma once

#include <cstddef>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// A block of it, mapped as long as it lives.
class Pinned {
 public:
  /// `access`: how the host uses it. Throws cl::Error where the driver has no such memory.
  Pinned(const cl::Context& context, const cl::CommandQueue& queue, std::size_t bytes, cl_map_flags access);
  /// All commands that use it must be over.
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  std::byte* address() const { return static_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  cl::Buffer buffer_;
  cl::CommandQueue queue_;
  void* address_;
  std::size_t bytes_;
};

}  // namespace clnet::ocl
