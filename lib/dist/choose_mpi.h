// Which implementation of MPI this process needs: the one that started it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/dist/mpi/module.h"

namespace clnet::dist {

/// What the choice depends on.
struct MpiFacts {
  std::optional<std::string> asked;                                    ///< CLNET_MPI
  std::string loaded;                                                  ///< the version of an MPI that the program has itself
  std::function<std::optional<std::string>(const char*)> environment;  ///< variables of launchers
  std::function<bool(std::string_view name)> has_module = [](auto) { return false; };
};

/// "openmpi", "mpich" or a module's path; nothing for a process that works alone. Throws Error where a launcher has started it,
/// and it cannot be told which.
std::optional<std::string> choose_mpi(const MpiFacts& facts);

/// How many ranks the launcher has started, by its variables; "1" where it says nothing.
std::string launched_ranks();

/// The choice for this process.
std::optional<std::string> choose_mpi();

/// Opens the module of that name or path. Throws Error, with the reason.
const MpiModule& load_mpi(const std::string& name);
bool has_mpi_module(std::string_view name);

}  // namespace clnet::dist
