// libFuzzer: what earlier runs found out about a device: choices of solvers and quirks. Damaged files are ignored, never an
// error. "device" in an input stands for the identity of the device that the file must be for, or nothing behind that would ever
// be reached.
#include "lib/exec/tune/tuning.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/file.h"
#include "lib/cl/quirk_file.h"
#include "tests/readers/input.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

DeviceInfo make_device() {
  DeviceInfo device;
  device.name = "a device";
  device.driver_version = "1";
  return device;
}

/// What a file of quirks says in "for"; the same file must be read back.
std::string identity_in_file(const DeviceInfo& device) {
  const clnet::test::Folder folder;
  const auto path = (folder / "quirks.json").string();
  ocl::write_quirks(path, device, {.broken = {{"matmul", "cpu", "wrong"}}, .limits = {{"local_memory", 1}}});
  const auto found = ocl::read_quirks(path, device);
  if (found.broken.size() != 1 || found.limits.size() != 1) std::abort();
  return nlohmann::json::parse(file::read(path, 1 << 20)).at("for").get<std::string>();
}

}  // namespace

CLNET_READER(tuning) {
  static const auto device = make_device();
  static const auto identity = identity_in_file(device);
  std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view placeholder = "\"device\"";
  if (const auto at = text.find(placeholder); at != std::string::npos)
    text.replace(at, placeholder.size(), nlohmann::json(identity).dump());
  const clnet::test::MemoryFile file(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  const exec::TuningFile tuning(file.path(), identity);
  (void)tuning.find("problem");
  (void)ocl::read_quirks(file.path(), device);
  return 0;
}
