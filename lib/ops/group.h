// Kernels for GPUs whose work-items reduce together: kernels/group.clh.
#pragma once

#include "lib/exec/record/recorder.h"

namespace clnet::ops {

/// Defines GROUP, the device's group_size(), and SUB_GROUPS_<way> where sub-groups exchange values.
exec::Launch& define_group(exec::Launch& launch, const DeviceInfo& device);

}  // namespace clnet::ops
