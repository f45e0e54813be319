// Where compiled programs lie on this machine: clnet's own folder and those of the drivers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace clnet::tools {

/// A folder; clnet's and PoCL's need not be there.
struct Cache {
  std::string whose, variable;
  std::filesystem::path folder;
  std::uint64_t programs = 0, kernels = 0, bytes = 0;  ///< kernels: where they are files of their own
  std::uint64_t others = 0;                            ///< files of clnet's that hold what was measured or found
  bool clears = false;                                 ///< clear_caches() empties it
};

/// clnet's first, then PoCL's where it keeps one, then those of other drivers that are there.
std::vector<Cache> caches();
/// Programs in all of them.
std::uint64_t cached_programs();
/// Removes what was compiled from clnet's folder and PoCL's, with what clnet noted of it: how many files and folders. What clnet
/// measured and found stays, and so do other drivers' caches, which have no form that clnet knows. Throws FileError.
std::uint64_t clear_caches();

}  // namespace clnet::tools
