// The usable devices of all platforms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

struct Candidate {
  cl::Device device;
  DeviceInfo info;
};

/// The usable devices of every platform. Platforms without devices, and devices that cannot run clnet (OpenCL older than 1.2, no
/// compiler), get a line in the log instead. A driver's failure also gets a line in `failures`. Throws Error where an environment
/// variable has an invalid value.
std::vector<Candidate> candidates(std::vector<std::string>* failures = nullptr);

/// A device's properties, corrected by the quirk table. Throws DeviceError where the device does not answer.
DeviceInfo describe(const cl::Device& device);

/// The error text for a machine without devices, with possible reasons.
std::string no_device_text();

/// The index of the device for `selector` (empty: the best), or -1.
int choose(const std::vector<DeviceInfo>& devices, std::string_view selector);

}  // namespace clnet::ocl
