#include "lib/cl/quirk_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "clnet/version.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/json_format.h"
#include "lib/base/log.h"
#include "lib/cl/kernel_source.h"

namespace clnet::ocl {

namespace {

using nlohmann::json;

constexpr std::string_view quirks_format = "clnet quirks 1";
constexpr std::uint64_t largest_quirk_file = 1 << 20;

/// Kernels for CPUs depend on the width of vectors, which CLNET_VECTOR_WIDTH may change.
std::string wide_identity(const DeviceInfo& device) {
  return fmt::format("{} | {} lanes", identity(device), device.native_float_width);
}

/// Read once where no folder has others in their place: plans ask, too, and it takes longer than to make a small one.
std::string state_of_kernels() {
  const auto read = [] {
    Hash kernels;
    for (const auto& file : embedded_files()) kernels.add(file.name).add(kernel_file(file.name).value());
    return kernels.hex();
  };
  if (env::text("CLNET_KERNEL_DIR")) return read();
  // Never destroyed: at exit another thread may still plan.
  static const auto& built_in = *new std::string(read());
  return built_in;
}

}  // namespace

std::string identity(const DeviceInfo& device) {
  return fmt::format("{} | {} | clnet {} | kernels {}", device.name, device.driver_version, version(), state_of_kernels());
}

std::optional<std::string> quirk_file(const DeviceInfo& device) {
  const auto folder = env::cache_folder();
  if (!folder) return std::nullopt;
  const auto name =
      Hash().add(device.name).add(device.driver_version).add(static_cast<std::uint64_t>(device.native_float_width)).hex();
  return (std::filesystem::path(*folder) / fmt::format("quirks-{}.json", name)).string();
}

FoundQuirks read_quirks(const std::string& path, const DeviceInfo& device) {
  FoundQuirks result;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return result;
  try {
    const auto content = json::parse(file::read(path, largest_quirk_file));
    require_format(path, content, quirks_format);
    if (content.at("for").get<std::string>() != wide_identity(device)) return result;
    for (const auto& entry : content.at("broken"))
      result.broken.push_back(
          {entry.at("op").get<std::string>(), entry.at("solver").get<std::string>(), entry.at("reason").get<std::string>()});
    for (const auto& [name, value] : content.at("limits").items()) {
      // Numbers of more than 64 bits are floating ones to the parser.
      if (!value.is_number_unsigned())
        throw FileError(
            fmt::format("{}: the limit {} is {}, not a whole number from 0 to 2^64 - 1; clnet-info --self-test writes "
                        "it anew",
                        path, name, value.dump(-1, ' ', false, json::error_handler_t::replace)));
      result.limits[name] = value.get<std::uint64_t>();
    }
    return result;
  } catch (const FileError& error) {
    logging::warn_once(fmt::format("what the self-test found is ignored: {}", error.what()));
  } catch (const json::exception&) {
    logging::warn_once(
        fmt::format("what the self-test found is ignored: {}: is damaged; clnet-info --self-test writes it anew", path));
  }
  return {};
}

void write_quirks(const std::string& path, const DeviceInfo& device, const FoundQuirks& quirks) {
  json content{
      {format_field, quirks_format}, {"for", wide_identity(device)}, {"broken", json::array()}, {"limits", quirks.limits}};
  for (const auto& [op, solver, reason] : quirks.broken)
    content["broken"].push_back({{"op", op}, {"solver", solver}, {"reason", reason}});
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  // Reasons may quote what a compiler printed.
  file::replace(path, content.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

bool found_quirks_count() { return env::word("CLNET_QUIRKS", {"on", "off"}).value_or("on") == "on"; }

void apply_found_quirks(DeviceInfo& info) {
  const auto path = quirk_file(info);
  if (!path) return;
  const auto found = read_quirks(*path, info);
  for (const auto& [op, solver, reason] : found.broken) info.broken_solvers.push_back(op + ":" + solver);
  const auto lower = [&](const char* name, std::size_t& value) {
    const auto limit = found.limits.find(name);
    if (limit != found.limits.end() && limit->second > 0) value = std::min<std::size_t>(value, limit->second);
  };
  lower("max_work_group_size", info.max_work_group_size);
  lower("local_memory", info.local_memory);
  lower("max_allocation", info.max_allocation);
}

}  // namespace clnet::ocl
