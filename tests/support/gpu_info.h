// A GPU that is not here, as solvers see it.
#pragma once

#include <string>

#include "clnet/device.h"

namespace clnet::test {

inline DeviceInfo gpu_info(const std::string& architecture, std::size_t sub_group = 32, int compute_units = 16) {
  DeviceInfo info;
  info.name = "a GPU of the tests";
  info.type = DeviceType::gpu;
  info.architecture = architecture;
  info.sub_group_size = sub_group;
  info.compute_units = compute_units;
  info.max_work_group_size = 256;
  info.local_memory = 48 << 10;
  return info;
}

}  // namespace clnet::test
