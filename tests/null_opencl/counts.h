// What the null driver counts. A program gets it with clGetExtensionFunctionAddressForPlatform(platform, "nullOpenclCounts").
#pragma once

#include <cstdint>

namespace null_opencl {

struct Counts {
  std::uint64_t buffers = 0, bytes = 0, programs = 0, kernels = 0, events = 0;  ///< alive now
  std::uint64_t launches = 0, reads = 0, writes = 0, builds = 0, waits = 0;     ///< so far
  std::uint64_t arguments = 0, repeated_arguments = 0;                          ///< set so far; those of them that were so before
};

using GetCounts = Counts (*)();

}  // namespace null_opencl
