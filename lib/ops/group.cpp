#include "lib/ops/group.h"

#include <fmt/format.h>

#include "lib/cl/sub_groups.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

exec::Launch& define_group(exec::Launch& launch, const DeviceInfo& device) {
  launch.define("GROUP", group_size(device));
  if (const auto way = ocl::sub_groups(device)) launch.define(fmt::format("SUB_GROUPS_{}", *way), 1);
  return launch;
}

}  // namespace clnet::ops
