// How many kernels something takes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clnet/device.h"
#include "clnet/tensor.h"
#include "lib/cl/context.h"
#include "lib/exec/statistics.h"

namespace clnet::testing {

/// On the current device, where a launch batch is one launch.
inline std::uint64_t launches_of(const std::function<void()>& what) {
  const auto context = context_of(Device::current());
  const auto before = context->launches();
  what();
  return context->launches() - before;
}

inline std::uint64_t kernels_of(const std::vector<Tensor>& wanted) {
  const auto before = exec::statistics().kernels;
  eval(wanted);
  return exec::statistics().kernels - before;
}

}  // namespace clnet::testing
