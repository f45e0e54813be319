#include "lib/cl/capability_probe.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/json_format.h"
#include "lib/base/log.h"
#include "lib/base/once_per_key.h"
#include "lib/cl/check.h"
#include "lib/cl/devices.h"
#include "lib/cl/quirk_file.h"

namespace clnet::ocl {

namespace {

using nlohmann::json;

constexpr std::uint64_t largest_probe_file = 1 << 20;
constexpr std::string_view probe_format = "clnet probe 1", begun = "begun";
/// For so long another process may be at it; then it has crashed.
constexpr auto longest_probe = std::chrono::minutes(1);

/// What was written; nothing where there is no such file, or one of another driver or state of the kernels.
std::optional<std::string> read_outcome(const CapabilityProbe& probe, const std::string& path, const DeviceInfo& device) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  try {
    const auto content = json::parse(file::read(path, largest_probe_file));
    require_format(path, content, probe_format);
    if (content.at("for").get<std::string>() != identity(device)) return std::nullopt;
    return content.at("fault").get<std::string>();
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "what is known of {} is ignored: {}", probe.what, error.what());
  } catch (const json::exception&) {
    logging::print(logging::Level::plan, "what is known of {} is ignored: {}: is damaged", probe.what, path);
  }
  return std::nullopt;
}

void write_outcome(const CapabilityProbe& probe, const std::string& path, const DeviceInfo& device, std::string_view fault) {
  try {
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
    // Faults may quote what a compiler printed.
    file::replace(path, json{{format_field, probe_format}, {"for", identity(device)}, {"fault", fault}}.dump(
                            1, ' ', false, json::error_handler_t::replace) +
                            "\n");
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "what is known of {} is not kept on disk: {}", probe.what, error.what());
  }
}

/// Nothing where it has to be tried.
std::optional<std::string> known_fault(const CapabilityProbe& probe, const std::string& path, const DeviceInfo& device) {
  auto outcome = read_outcome(probe, path, device);
  if (outcome != begun) return outcome;
  std::error_code code;
  const auto age = std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(path, code);
  if (!code && age >= age.zero() && age < longest_probe) return std::nullopt;
  return fmt::format("a process that tried them ended there; removing {} tries them again", path);
}

/// Whether what is written to the device's memory is read again: the null driver drops it.
bool computes(const ::cl::Device& device) {
  const ::cl::Context context(device);
  const ::cl::CommandQueue queue(context, device);
  const ::cl::Buffer buffer(context, CL_MEM_READ_WRITE, sizeof(std::uint32_t));
  const std::uint32_t written = 0x12345678;
  std::uint32_t kept = 0;
  queue.enqueueWriteBuffer(buffer, true, 0, sizeof written, &written);
  queue.enqueueReadBuffer(buffer, true, 0, sizeof kept, &kept);
  return kept == written;
}

/// The fault, or empty.
std::string tried(const DeviceInfo& device, const CapabilityProbe& probe) {
  const auto path = probe_file(device, probe.name);
  if (path)
    if (auto known = known_fault(probe, *path, device)) return *known;
  for (const auto& candidate : candidates()) {
    const auto& info = candidate.info;
    if (info.platform_index != device.platform_index || info.device_index != device.device_index || info.name != device.name ||
        info.architecture != device.architecture)
      continue;
    try {
      if (!checked("trying a device's memory", [&] { return computes(candidate.device); })) return {};
      // A compiler that crashes does so once; who is started again within a minute leaves the time of the first.
      if (path && read_outcome(probe, *path, device) != begun) write_outcome(probe, *path, device, begun);
      auto fault = probe.run(candidate.device, info);
      if (path) write_outcome(probe, *path, device, fault);
      return fault;
    } catch (const Error& error) {
      // It may be short of memory, which says nothing of the next process.
      std::error_code code;
      if (path) std::filesystem::remove(*path, code);
      return fmt::format("they could not be tried: {}", error.what());
    }
  }
  return {};
}

}  // namespace

std::string capability_fault(const DeviceInfo& device, const CapabilityProbe& probe) {
  // Never destroyed: at exit another thread may still plan.
  static auto& faults = *new OncePerKey<std::string>;
  const auto key = fmt::format("{}:{} {} {} {} {}", device.platform_index, device.device_index, device.name,
                               device.driver_version, device.architecture, probe.name);
  return faults.get(key, [&] {
    auto fault = tried(device, probe);
    logging::print(logging::Level::plan, "{} of {} ({}): {}", probe.what, device.name, probe.claim,
                   fault.empty() ? "in order" : fault);
    return fault;
  });
}

std::optional<std::string> kept_capability_fault(const DeviceInfo& device, std::string_view name) {
  const auto path = probe_file(device, name);
  if (!path) return std::nullopt;
  return known_fault({.what = name, .name = std::string(name), .claim = {}, .run = {}}, *path, device);
}

std::optional<std::string> probe_file(const DeviceInfo& device, std::string_view name) {
  const auto folder = env::cache_folder();
  if (!folder) return std::nullopt;
  const auto hash = Hash().add(device.name).add(device.driver_version).add(device.architecture).hex();
  return (std::filesystem::path(*folder) / fmt::format("{}-{}.json", name, hash)).string();
}

ProbeKernel build_probe_kernel(ProgramCache& programs, const ProgramSource& program) {
  try {
    return {programs.kernel(program, program.name), {}};
  } catch (const BuildError& error) {
    const std::string_view text = error.what();
    const std::string words(text.substr(0, text.find("\nThe source")));
    // A driver that is short of memory has refused neither the program nor how it is to be built.
    const auto refused = [&](std::string_view by) { return words.find(by) != words.npos; };
    if (!refused("CL_BUILD_PROGRAM_FAILURE") && !refused("CL_INVALID_BUILD_OPTIONS")) throw DeviceError(words);
    return {{}, words};
  }
}

}  // namespace clnet::ocl
