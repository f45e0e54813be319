#include "lib/data/folder_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "clnet/error.h"

namespace clnet::data {

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw FileError(fmt::format("{}: {}", folder.string(), error ? error.message() : "is not a folder"));
  std::vector<std::filesystem::path> paths;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) paths.push_back(entry->path());
  if (error) throw FileError(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace clnet::data
