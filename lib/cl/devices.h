// The devices of all platforms that clnet can use.
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

/// Asks every platform; platforms without devices, and devices that cannot run clnet (OpenCL older than 1.2, no compiler), are
/// left out with a line in the log, and with one in `failures` where a driver has failed. Throws Error when an environment
/// variable has a value that it cannot have.
std::vector<Candidate> candidates(std::vector<std::string>* failures = nullptr);

/// What a device says, corrected by the quirk table. Throws DeviceError when it does not answer.
DeviceInfo describe(const cl::Device& device);

/// What to say where there is none at all, and why that may be.
std::string no_device_text();

/// The index of the one that `selector` means (empty: the best), or -1.
int choose(const std::vector<DeviceInfo>& devices, std::string_view selector);

}  // namespace clnet::ocl
