// Work-items that run together and see each other's values: which devices' kernels use that.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The way in which they exchange values that the device should have, as kernels/sub_groups.clh knows it (SUB_GROUPS_<way>):
/// NVIDIA's and AMD's by the generation, Intel's by its extension, in groups of 256 work-items.
std::optional<std::string_view> claimed_sub_groups(const DeviceInfo& device);

/// The same where it works: tried at the first question, as fault_of() does (lib/cl/trial.h).
std::optional<std::string_view> sub_groups(const DeviceInfo& device);

/// What is known of them without trying, for people: "work", "not tried yet", or why not. Empty where none is claimed.
std::string sub_groups_state(const DeviceInfo& device);

/// The file in which what came of it is kept; nothing without a cache folder.
std::optional<std::string> sub_groups_file(const DeviceInfo& device);

/// Builds a program (kernels/sub_groups_probe.cl), lets items add up and compares: what is wrong, or nothing. Throws DeviceError
/// where the device fails otherwise.
std::string try_sub_groups(const ::cl::Device& device, const DeviceInfo& info, std::string_view way);

}  // namespace clnet::ocl
