#include "lib/pocl/build_processes.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/base/os/access.h"
#include "lib/base/os/own_library.h"
#include "lib/base/os/process.h"
#include "lib/cl/quirks.h"
#include "lib/pocl/cache_folder.h"

namespace clnet::pocl {

namespace {

constexpr std::int64_t most_processes = 8;

/// clnet-build-kernels stands in a folder `clnet` beside the library. A program may have the library inside: the folder is then
/// beside the installed library, or beside the folder where the program was built.
std::string find_program() {
  const auto own = os::own_library();
  if (own.empty()) return {};
  for (const auto* folder : {".", CLNET_LIBRARIES_FROM_PROGRAMS, ".."}) {
    const auto program = own.parent_path() / folder / "clnet" / "clnet-build-kernels";
    if (os::may_run(program)) return program.lexically_normal().string();
  }
  return {};
}

bool is_writable(const std::optional<std::string>& folder) { return folder && os::may_write(*folder); }

}  // namespace

std::string notes_file(const BuildProcesses& processes) { return processes.folder + "/clnet-kernels"; }
std::string locks_file(const BuildProcesses& processes) { return notes_file(processes) + ".lock"; }

BuildProcesses build_processes(const DeviceInfo& device) {
  BuildProcesses result;
  if (!os::starts_processes()) return result;
  const bool apart = env::flag("CLNET_COMPILE_APART", ocl::has_quirk(device, "compiler-aborts"));
  const bool builds = ocl::has_quirk(device, "compiles-one-at-a-time");
  if (!apart && !builds) return result;
  auto folder = builds ? cache_folder() : std::nullopt;
  if (apart && !is_writable(folder)) {
    folder = env::cache_folder();
    std::error_code code;
    if (folder) std::filesystem::create_directories(*folder, code);
  }
  // Every plan asks.
  static const auto& program = *new std::string(find_program());
  if (!is_writable(folder) || program.empty()) {
    if (apart)
      logging::warn_once(
          "kernels are compiled in this process, which one may end that crashes the driver's compiler: there is no program "
          "clnet/clnet-build-kernels beside the library, or no cache folder that can be written");
    return result;
  }
  result.apart = apart;
  result.program = program;
  result.folder = *folder;
  static const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  result.count = env::integer("CLNET_BUILD_PROCESSES", 1, 64).value_or(std::min(cores, most_processes));
  return result;
}

}  // namespace clnet::pocl
