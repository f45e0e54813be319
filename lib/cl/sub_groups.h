// Sub-groups: work-items that run together and exchange values, and the devices whose kernels use them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The claimed way to exchange values, by its name in kernels/sub_groups.clh (SUB_GROUPS_<way>). NVIDIA's and AMD's follow from
/// the architecture, Intel's from its extension. In groups of 256 work-items.
std::optional<std::string_view> claimed_sub_groups(const DeviceInfo& device);

/// The same where it works: the first call tries it, as capability_fault() does (lib/cl/capability_probe.h).
std::optional<std::string_view> sub_groups(const DeviceInfo& device);

/// A report for users, without a probe: "work", "not tried yet", or the fault. Empty where none is claimed.
std::string sub_groups_state(const DeviceInfo& device);

/// The file of the result; nothing without a cache folder.
std::optional<std::string> sub_groups_file(const DeviceInfo& device);

/// Builds kernels/sub_groups_probe.cl, lets work-items add up and compares. Returns the fault, or an empty text. Throws
/// DeviceError where the device fails otherwise.
std::string try_sub_groups(const ::cl::Device& device, const DeviceInfo& info, std::string_view way);

}  // namespace clnet::ocl
