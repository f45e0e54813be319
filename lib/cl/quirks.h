// What drivers get wrong, in one table: recognised by what the device says of itself, never by a vendor id.
#pragma once

#include <span>
#include <string_view>

#include "clnet/device.h"

namespace clnet::ocl {

struct Quirk {
  std::string_view name;
  std::string_view fault;  ///< what goes wrong, and what clnet does about it
  bool (*applies)(const DeviceInfo&);
  void (*work_around)(DeviceInfo&);
};

std::span<const Quirk> quirks();

/// Corrects what the device said and notes the names of the quirks that apply in info.quirks.
void apply_quirks(DeviceInfo& info);
bool is_pocl(const DeviceInfo& info);
/// Whether the quirk of this name applies.
bool has_quirk(const DeviceInfo& info, std::string_view name);

}  // namespace clnet::ocl
