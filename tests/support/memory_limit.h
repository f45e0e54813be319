// Another memory limit for a while.
#pragma once

#include <cstddef>

#include "clnet/device.h"

namespace clnet::test {

class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(Device::current().memory().limit) {
    Device::current().set_memory_limit(bytes);
  }
  ~MemoryLimit() { Device::current().set_memory_limit(before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  std::size_t before_;
};

}  // namespace clnet::test
