// Another device than the current one: the one that CLNET_TEST_SECOND selects, or else the same one in a context of its own,
// which the library takes for another.
#pragma once

#include <cstdlib>

#include "clnet/device.h"
#include "clnet/opencl.h"
#include "lib/cl/context.h"

namespace clnet::test {

/// Another context of the device.
inline Device in_own_context(const Device& device) {
  const auto underlying = context_of(device)->device();
  const cl::Context context(underlying);
  const cl::CommandQueue queue(context, underlying);
  return opencl::wrap(context(), underlying(), queue());
}

inline Device second_device() {
  const char* selector = std::getenv("CLNET_TEST_SECOND");
  return selector ? Device::find(selector) : in_own_context(Device::current());
}

}  // namespace clnet::test
