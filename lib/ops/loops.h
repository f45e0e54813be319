// For operations whose kernels have loops as long as their arguments say.
#pragma once

#include <cstdint>
#include <string_view>

#include "clnet/device.h"

namespace clnet::ops {

/// Whether the device would leave loops of so many iterations early.
bool leaves_loops(std::int64_t iterations, const DeviceInfo& device);

/// Throws Unsupported, naming the operation, where it would.
void require_loops(std::string_view op, std::int64_t iterations, const DeviceInfo& device);

}  // namespace clnet::ops
