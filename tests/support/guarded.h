// Tensors at the end of memory: reading one element more than there is ends the process, where the driver uses the host's memory
// itself, as PoCL does.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "clnet/opencl.h"

namespace clnet::test {

/// A copy of floats that ends where a page begins that cannot be read. It has to outlive the tensor.
class Guarded {
 public:
  explicit Guarded(const std::vector<float>& values) : count_(values.size()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes = count_ * sizeof(float);
    const auto room = (bytes + page - 1) / page * page;
    size_ = room + page;
    start_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    mprotect(static_cast<std::byte*>(start_) + room, page, PROT_NONE);
    values_ = reinterpret_cast<float*>(static_cast<std::byte*>(start_) + room - bytes);
    std::copy(values.begin(), values.end(), values_);
  }
  ~Guarded() { munmap(start_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Tensor tensor(const Shape& shape) const {
    const auto device = Device::current();
    cl_int error = CL_SUCCESS;
    const auto memory =
        clCreateBuffer(opencl::context(device), CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, count_ * sizeof(float), values_, &error);
    if (error != CL_SUCCESS) throw std::runtime_error("clCreateBuffer failed");
    Tensor result = opencl::from_buffer(device, memory, {shape, Dtype::f32});
    clReleaseMemObject(memory);
    return result;
  }

 private:
  void* start_ = nullptr;
  float* values_ = nullptr;
  std::size_t count_ = 0, size_ = 0;
};

}  // namespace clnet::test
