// Kernels for GPUs whose work-items reduce together: kernels/group.clh.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"

namespace clnet::ops {

/// Whether sub-groups may exchange values; only floats they do.
enum class Exchange : std::uint8_t { where_possible, never };

/// Of kernels whose groups reduce as a whole: `group` work-items, and whether `sub_groups` exchange values (1) or all meet in
/// local memory (0). The device's group_size(), and sub-groups where it has them, are the first.
std::vector<exec::Config> group_configs(const DeviceInfo& device, Exchange exchange = Exchange::where_possible);
/// The same of kernels in which `threads` of a group share a row of so many elements; threads_per_row() are the first.
std::vector<exec::Config> row_configs(std::int64_t length, const DeviceInfo& device,
                                      Exchange exchange = Exchange::where_possible);
/// By the same names, for kernels of a work-item per line.
std::vector<exec::Config> line_configs(const DeviceInfo& device);

/// Defines GROUP, and SUB_GROUPS_<way> where sub-groups exchange values, as the solver is configured.
exec::Launch& define_group(exec::Launch& launch, const exec::Recorder& recorder);

}  // namespace clnet::ops
