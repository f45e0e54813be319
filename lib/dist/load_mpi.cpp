#include <fmt/format.h>

#include <filesystem>

#include "clnet/error.h"
#include "lib/base/os/library.h"
#include "lib/base/os/own_library.h"
#include "lib/dist/choose_mpi.h"

namespace clnet::dist {

namespace {

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos; }

/// Modules stand in a folder `clnet` beside the library. A program may have the library inside: the folder is then beside the
/// installed library, or beside the folder where the program was built.
std::filesystem::path module_path(std::string_view name) {
  if (is_path(name)) return name;
  const auto own = os::own_library();
  const auto file = fmt::format("clnet-mpi-{}.so", name);
  std::error_code code;
  for (const auto* folder : {".", CLNET_LIBRARIES_FROM_PROGRAMS, ".."}) {
    auto path = own.parent_path() / folder / "clnet" / file;
    if (std::filesystem::exists(path, code)) return path.lexically_normal();
  }
  return {};
}

}  // namespace

bool has_mpi_module(std::string_view name) { return !module_path(name).empty(); }

const MpiModule& load_mpi(const std::string& name) {
  const auto path = module_path(name);
  if (path.empty())
    throw Error(
        fmt::format("this process was started by MPI, and clnet was built without clnet-mpi-{}.so: build clnet where {} is "
                    "installed, or set CLNET_MPI=off",
                    name, name == "openmpi" ? "Open MPI (Debian's libopenmpi-dev)" : "MPICH (Debian's libmpich-dev)"));
  std::string error;
  void* const library = os::open_library(path, error);
  if (!library) throw Error(fmt::format("{}: cannot be loaded: {}", path.string(), error));
  using Function = const MpiModule*();
  auto* const function = reinterpret_cast<Function*>(os::symbol_of(library, mpi_module_function));
  const MpiModule* const module = function ? function() : nullptr;
  if (!module) throw Error(fmt::format("{}: is no module for clnet: it has no {}()", path.string(), mpi_module_function));
  if (module->version != mpi_module_version)
    throw Error(
        fmt::format("{}: is of version {}, expected {}: build it anew", path.string(), module->version, mpi_module_version));
  return *module;
}

}  // namespace clnet::dist
