// What lies in a folder of samples.
#pragma once

#include <filesystem>
#include <vector>

namespace clnet::data {

/// Files and folders that are not hidden, in the order of their names. Throws FileError.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace clnet::data
