#include "tools/caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/pocl/cache_folder.h"

namespace clnet::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* own_program = ".clnet-program";
constexpr const char* programs = "programs";
constexpr const char* notes = "clnet-kernels";
constexpr const char* locks_of_notes = "clnet-kernels.lock";
constexpr const char* locks_of_programs = "programs.lock";

/// Calls function(file, bytes) for each file below the folder that can be seen.
template <class Function>
void for_each_file(const fs::path& folder, const Function& function) {
  std::error_code code;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end; !code && at != end;
       at.increment(code)) {
    std::error_code ignored;
    if (at->is_symlink(ignored) || !at->is_regular_file(ignored)) continue;
    const auto bytes = at->file_size(ignored);
    if (!ignored) function(at->path(), bytes);
  }
}

bool is_own_program(const fs::path& file, const fs::path& cache) {
  return file.extension() == own_program && file.parent_path() == cache / programs;
}

Cache own_cache(const fs::path& folder) {
  Cache cache{.whose = "clnet", .variable = "CLNET_CACHE_DIR", .folder = folder, .clears = true};
  for_each_file(folder, [&](const fs::path& file, std::uint64_t bytes) {
    ++(is_own_program(file, folder) ? cache.programs : cache.others);
    cache.bytes += bytes;
  });
  return cache;
}

Cache pocl_cache(const fs::path& folder) {
  Cache cache{.whose = "PoCL", .variable = "POCL_CACHE_DIR", .folder = folder, .clears = true};
  for_each_file(folder, [&](const fs::path& file, std::uint64_t bytes) {
    if (file.filename() == "program.bc") ++cache.programs;
    if (file.extension() == ".so") ++cache.kernels;
    cache.bytes += bytes;
  });
  return cache;
}

bool is_of_letters(const fs::path& entry, std::size_t least) {
  const auto name = entry.filename().string();
  return name.size() >= least && std::all_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'P'; });
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(fs::symlink_status(path, code));
}

/// What a process of PoCL's left behind: tempfile_ and six letters or digits, and the same with endings for what was made from
/// it.
bool is_left_behind(const std::string& name) {
  constexpr std::string_view begin = "tempfile_";
  constexpr std::size_t random = 6;
  const auto stem = name.substr(0, name.find('.')), more = name.substr(stem.size());
  constexpr std::array<std::string_view, 7> endings{"", ".cl", ".cl.tmp", ".bc", ".ll", ".so", ".o"};
  const auto is_known = [&](std::string_view ending) { return ending.empty() ? more.empty() : more.ends_with(ending); };
  return std::any_of(endings.begin(), endings.end(), is_known) && stem.starts_with(begin) &&
         stem.size() == begin.size() + random &&
         std::all_of(stem.begin() + begin.size(), stem.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// What of PoCL's cache is PoCL's: folders of programs, which lie by the first two letters of their hash, in those of the other
/// letters; and what a process left behind.
std::vector<fs::path> entries_of_pocl(const fs::path& cache) {
  constexpr std::size_t letters_of_a_hash = 30;
  std::vector<fs::path> result;
  std::error_code code, inner, ignored;
  for (fs::directory_iterator at(cache, code), end; !code && at != end; at.increment(code)) {
    const auto name = at->path().filename().string();
    if ((is_left_behind(name) || name == notes || name == locks_of_notes) && is_file(at->path())) result.push_back(at->path());
    if (name.size() != 2 || !is_of_letters(at->path(), 2) || !fs::is_directory(at->symlink_status(ignored))) continue;
    bool others = false;
    const auto before = result.size();
    for (fs::directory_iterator program(at->path(), inner), last; !inner && program != last; program.increment(inner)) {
      if (is_of_letters(program->path(), letters_of_a_hash) && fs::is_directory(program->symlink_status(ignored)))
        result.push_back(program->path());
      else
        others = true;
    }
    if (others || inner || result.size() == before) continue;
    result.resize(before);
    result.push_back(at->path());
  }
  return result;
}

}  // namespace

std::vector<Cache> caches() {
  std::vector<Cache> result;
  if (const auto folder = env::cache_folder()) result.push_back(own_cache(*folder));
  if (const auto folder = pocl::cache_folder()) result.push_back(pocl_cache(*folder));
  for (const auto& driver : env::driver_caches()) {
    std::error_code code;
    if (!fs::is_directory(driver.folder, code)) continue;
    Cache cache{.whose = driver.driver, .variable = driver.variable, .folder = driver.folder};
    for_each_file(cache.folder, [&](const fs::path&, std::uint64_t bytes) {
      ++cache.programs;
      cache.bytes += bytes;
    });
    result.push_back(std::move(cache));
  }
  return result;
}

std::uint64_t cached_programs() {
  std::uint64_t sum = 0;
  for (const auto& cache : caches()) sum += cache.programs;
  return sum;
}

std::uint64_t clear_caches() {
  std::uint64_t removed = 0;
  const auto remove = [&](const fs::path& path) {
    std::error_code code;
    const auto count = fs::remove_all(path, code);
    if (code) throw FileError(fmt::format("{}: cannot be removed: {}", path.string(), code.message()));
    removed += count;
  };
  for (const auto& cache : caches()) {
    if (!cache.clears) continue;
    std::vector<fs::path> chosen;
    if (cache.whose == "PoCL") {
      chosen = entries_of_pocl(cache.folder);
    } else {
      for_each_file(cache.folder, [&](const fs::path& file, std::uint64_t) {
        if (is_own_program(file, cache.folder)) chosen.push_back(file);
      });
      for (const auto* name : {notes, locks_of_notes, locks_of_programs})
        if (is_file(cache.folder / name)) chosen.push_back(cache.folder / name);
    }
    for (const auto& path : chosen) remove(path);
  }
  return removed;
}

}  // namespace clnet::tools
