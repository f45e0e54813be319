#include "lib/ops/group.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/cl/sub_groups.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t smallest = 64;  // sub-groups of any size fill it

}  // namespace

std::vector<exec::Config> group_configs(const DeviceInfo& device, Exchange exchange) {
  std::vector<exec::Config> result;
  const std::int64_t largest = group_size(device);
  const std::int64_t together = exchange == Exchange::where_possible && ocl::sub_groups(device) ? 1 : 0;
  for (auto group = largest; group == largest || group >= smallest; group /= 2)
    result.push_back({{"group", group}, {"sub_groups", together}});
  if (together != 0) result.push_back({{"group", largest}, {"sub_groups", 0}});
  return result;
}

std::vector<exec::Config> row_configs(std::int64_t length, const DeviceInfo& device, Exchange exchange) {
  std::vector<exec::Config> result;
  const auto add = [&](const exec::Config& config, std::int64_t threads) {
    result.push_back({{"group", config["group"]}, {"threads", threads}, {"sub_groups", config["sub_groups"]}});
  };
  const auto groups = group_configs(device, exchange);
  for (const auto& config : groups) add(config, threads_per_row(length, config["group"]));
  const auto largest = groups[0]["group"], threads = threads_per_row(length, largest);
  for (const auto other : {threads / 2, threads / 4, threads * 2})
    if (other >= 1 && other <= largest) add(groups[0], other);
  return result;
}

std::vector<exec::Config> line_configs(const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto first = std::min(smallest, group_size(device));
  for (auto group = first; group <= group_size(device); group *= 2)
    result.push_back({{"group", group}, {"threads", 1}, {"sub_groups", 0}});
  return result;
}

exec::Launch& define_group(exec::Launch& launch, const exec::Recorder& recorder) {
  const auto& config = recorder.config();
  launch.define("GROUP", config["group"]);
  if (config["sub_groups"] != 0) launch.define(fmt::format("SUB_GROUPS_{}", ocl::sub_groups(recorder.device()).value()), 1);
  return launch;
}

}  // namespace clnet::ops
