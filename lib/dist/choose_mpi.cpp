#include "lib/dist/choose_mpi.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/os/library.h"

namespace clnet::dist {

namespace {

constexpr std::string_view open_mpi = "openmpi", mpich = "mpich";

/// The version of the MPI that the program was linked with; empty without one.
std::string loaded_mpi() {
  using Version = int(char*, int*);
  // Functions and objects have addresses of one size on every system that has this call.
  auto* const version = reinterpret_cast<Version*>(os::loaded_symbol("MPI_Get_library_version"));
  if (!version) return {};
  // The most that any implementation writes.
  std::array<char, 8192 + 1> text{};
  int length = 0;
  version(text.data(), &length);
  return text.data();
}

std::optional<std::string> environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  return text;
}

}  // namespace

std::string launched_ranks() {
  const auto value = environment;
  const auto ranks = value("OMPI_COMM_WORLD_SIZE");
  return ranks ? *ranks : value("PMI_SIZE").value_or("1");
}

std::optional<std::string> choose_mpi(const MpiFacts& facts) {
  if (facts.asked == "off") return std::nullopt;
  if (facts.asked) return facts.asked;
  if (facts.loaded.starts_with("Open MPI")) return std::string(open_mpi);
  if (facts.loaded.find("MPICH") != std::string::npos) return std::string(mpich);
  const std::string remedy = "CLNET_MPI=openmpi, mpich or the path of a module says which, CLNET_MPI=off works without";
  if (!facts.loaded.empty())
    throw Error(fmt::format("this program has loaded an MPI that clnet does not know, \"{}\": {}",
                            facts.loaded.substr(0, facts.loaded.find('\n')), remedy));
  const auto value = facts.environment;
  if (const auto ranks = value("OMPI_COMM_WORLD_SIZE")) return ranks == "1" ? std::nullopt : std::optional(std::string(open_mpi));
  if (const auto ranks = value("PMI_SIZE")) return ranks == "1" ? std::nullopt : std::optional(std::string(mpich));
  if (value("PMI_RANK")) return std::string(mpich);
  const auto tasks = value("SLURM_STEP_NUM_TASKS");
  if (!value("PMIX_RANK") && (!tasks || tasks == "1")) return std::nullopt;
  const auto type = value("SLURM_MPI_TYPE").value_or("");
  if (type.starts_with("pmi2")) return std::string(mpich);
  const bool has_open_mpi = facts.has_module(open_mpi), has_mpich = facts.has_module(mpich);
  if (has_open_mpi != has_mpich) return std::string(has_open_mpi ? open_mpi : mpich);
  if (has_open_mpi && type.starts_with("pmix")) return std::string(open_mpi);
  throw Error(fmt::format("this process is one of several, and clnet has {} of MPI: {}",
                          has_open_mpi ? "modules for two implementations" : "no module for any implementation", remedy));
}

std::optional<std::string> choose_mpi() {
  return choose_mpi(
      {.asked = env::text("CLNET_MPI"), .loaded = loaded_mpi(), .environment = environment, .has_module = has_mpi_module});
}

}  // namespace clnet::dist
