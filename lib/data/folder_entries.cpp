#include "lib/data/folder_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <system_error>

#include "clnet/error.h"

namespace clnet::data {
namespace {

namespace fs = std::filesystem;

constexpr int most_levels = 16;
constexpr std::size_t most_files = 100'000'000;

bool has_ending(const fs::path& path, const FileKind& kind) {
  auto ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kind.endings.begin(), kind.endings.end(), ending) != kind.endings.end();
}

/// Calls `take(path)`; `count` files were taken before.
template <class Take>
void collect(const fs::path& folder, const FileKind& kind, int levels, std::size_t& count, const Take& take) {
  if (levels > most_levels) throw FileError(fmt::format("{}: lies more than {} levels deep", folder.string(), most_levels));
  for (const auto& path : entries_of(folder)) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      if (!fs::is_symlink(path, error)) collect(path, kind, levels + 1, count, take);
    } else if (has_ending(path, kind)) {
      if (++count > most_files) throw FileError(fmt::format("{}: holds more than {} files", folder.string(), most_files));
      take(path);
    }
  }
}

}  // namespace

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

std::vector<fs::path> files_below(const fs::path& folder, const FileKind& kind) {
  std::vector<fs::path> found;
  std::size_t count = 0;
  collect(folder, kind, 1, count, [&](const fs::path& path) { found.push_back(path); });
  return found;
}

ClassFiles files_by_class(const fs::path& folder, const FileKind& kind) {
  ClassFiles result;
  fs::path without;
  std::size_t count = 0;
  for (const auto& path : entries_of(folder)) {
    std::error_code error;
    if (!fs::is_directory(path, error)) continue;
    const auto before = count;
    const auto label = static_cast<std::int32_t>(result.names.size());
    collect(path, kind, 1, count, [&](const fs::path& file) { result.files.emplace_back(file, label); });
    if (count == before && without.empty()) without = path;
    result.names.push_back(path.filename().string());
  }
  if (result.files.empty())
    throw FileError(
        fmt::format("{}: holds no folders of {}; expected a folder per class with {}", folder.string(), kind.what, kind.files));
  if (!without.empty())
    throw FileError(fmt::format("{}: is the folder of a class and holds no {}", without.string(), kind.files));
  return result;
}

}  // namespace clnet::data
