#include "lib/base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <ostream>
#include <string_view>
#include <system_error>

#include "clnet/error.h"
#include "lib/base/os/descriptor.h"
#include "lib/base/os/process.h"

namespace clnet::file {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(code)));
}

void sync(const fs::path& path, os::Opening how) {
  const auto descriptor = os::open(path, how);
  if (!descriptor.is_open()) fail(path, "cannot be opened for syncing", errno);
  // Some file systems cannot sync a folder; the file's own data are what matters.
  if (!descriptor.sync() && how != os::Opening::folder) fail(path, "cannot be synced", errno);
}

/// The end of a chain of links, which need not exist yet.
fs::path behind_links(const fs::path& path) {
  fs::path target = path;
  std::error_code code;
  for (int links = 0; fs::is_symlink(target, code); ++links) {
    constexpr int most_links = 40;  // as the kernel has it
    if (links == most_links) fail(path, "cannot be resolved", ELOOP);
    const auto next = fs::read_symlink(target, code);
    if (code) fail(path, "cannot be resolved", code.value());
    target = target.parent_path() / next;
  }
  return target;
}

/// What the temporary files of a target are called, before the process' number.
std::string temporary_stem(const fs::path& target) { return target.filename().string() + ".tmp-"; }

/// A file that a process keeps locked for as long as it writes it.
class Locked {
 public:
  /// Makes a new file, or (`writing` false) takes one that is there and that nobody holds.
  Locked(const fs::path& path, bool writing) : descriptor_(os::open(path, writing ? os::Opening::create : os::Opening::read)) {
    error_ = descriptor_.is_open() ? 0 : errno;
    if (!descriptor_.is_open()) return;
    locked_ = descriptor_.lock(writing);
    // Before it was locked, somebody may have taken it for an abandoned one, and have given its name to a new one.
    const auto own = descriptor_.status();
    in_place_ = own && own->names > 0;
    if (writing || !in_place_) return;
    const auto named = os::status(path);
    in_place_ = named && named->identity == own->identity;
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  bool locked() const { return locked_; }
  /// Whether the name still is this file's, which does not change while it is locked.
  bool in_place() const { return in_place_; }
  /// Why there is no file: of errno, or 0.
  int error() const { return error_; }

 private:
  os::Descriptor descriptor_;
  int error_ = 0;
  bool locked_ = false, in_place_ = false;
};

/// Removes temporary files of processes that were killed while they wrote the target: none, on whatever machine, holds their
/// lock. Their numbers tell nothing, as other processes get them.
void remove_stale(const fs::path& target) {
  const auto stem = temporary_stem(target);
  const fs::path folder = target.parent_path().empty() ? fs::path(".") : target.parent_path();
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with(stem)) continue;
    const auto ours = [](char c) { return c == '-' || (c >= '0' && c <= '9'); };
    const auto rest = std::string_view(name).substr(stem.size());
    if (rest.find('-') == std::string_view::npos || !std::all_of(rest.begin(), rest.end(), ours)) continue;
    std::error_code ignored;
    if (const Locked lock(entry->path(), false); lock.locked() && lock.in_place()) fs::remove(entry->path(), ignored);
  }
}

/// A temporary file of a target's.
struct Temporary {
  fs::path path;
  std::unique_ptr<Locked> lock;
};

/// Makes and locks a new one. A name that is taken is left to its owner: processes of other machines, or in containers, that
/// write to the same folder may have the same number.
Temporary make_temporary(const fs::path& path, const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  for (;;) {
    Temporary made{target.parent_path() / fmt::format("{}{}-{}", temporary_stem(target), os::own_process(), counter++), nullptr};
    made.lock = std::make_unique<Locked>(made.path, true);
    if (made.lock->in_place()) return made;
    if (const int code = made.lock->error(); code != 0 && code != EEXIST) fail(path, "cannot be written", code);
  }
}

/// Writes a temporary file beside the target, which `put` then gives the target's name.
template <class Write, class Put>
void write_beside(const fs::path& path, const fs::path& target, const Write& write, const Put& put) {
  std::error_code code;
  remove_stale(target);
  const auto [temporary, lock] = make_temporary(path, target);
  std::ofstream out;
  try {
    errno = 0;
    out.open(temporary, std::ios::binary | std::ios::trunc);
    if (!out) fail(path, "cannot be written", errno);
    write(out);
    errno = 0;
    out.close();
    if (!out) fail(path, "cannot be written", errno ? errno : EIO);
    sync(temporary, os::Opening::read);
    put(temporary);
  } catch (...) {
    out.close();
    fs::remove(temporary, code);
    throw;
  }
  const fs::path folder = target.parent_path();
  try {
    sync(folder.empty() ? fs::path(".") : folder, os::Opening::folder);
  } catch (const FileError&) {
    // A folder that may be written but not read: the file is in place all the same.
  }
}

}  // namespace

std::string read(const fs::path& path, std::uint64_t limit) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) throw FileError(fmt::format("{}: no such file", path.string()));
  if (status.type() == fs::file_type::directory) throw FileError(fmt::format("{}: is a folder, not a file", path.string()));
  if (code) fail(path, "cannot be read", code.value());
  if (status.type() != fs::file_type::regular) throw FileError(fmt::format("{}: is not a regular file", path.string()));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "cannot be opened", errno);
  const std::uint64_t size = fs::file_size(path, code);
  if (code) fail(path, "cannot be read", code.value());
  if (size > limit) throw FileError(fmt::format("{}: has {} bytes, expected at most {}", path.string(), size, limit));
  std::string content(size, '\0');
  in.read(content.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(in.gcount()) != size) {
    throw FileError(fmt::format("{}: ended after {} of {} bytes", path.string(), in.gcount(), size));
  }
  return content;
}

void replace(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code code;
  const fs::path target = behind_links(path);
  const fs::file_type type = fs::status(target, code).type();
  if (type == fs::file_type::directory) throw FileError(fmt::format("{}: is a folder, not a file", path.string()));
  if (type != fs::file_type::regular && type != fs::file_type::not_found) {
    throw FileError(fmt::format("{}: is not a regular file and cannot be replaced", path.string()));
  }
  write_beside(path, target, write, [&](const fs::path& temporary) {
    fs::rename(temporary, target, code);
    if (code) fail(path, "cannot be replaced", code.value());
  });
}

void replace(const fs::path& path, std::string_view content) {
  replace(path, [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

bool create(const fs::path& path, std::string_view content) {
  const fs::path target = behind_links(path);
  bool made = true;
  const auto write = [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); };
  write_beside(path, target, write, [&](const fs::path& temporary) {
    // Unlike a new name, a second one is refused where there is a file.
    std::error_code refused, ignored;
    fs::create_hard_link(temporary, target, refused);
    made = !refused;
    if (!made && refused != std::errc::file_exists) fail(path, "cannot be written", refused.value());
    fs::remove(temporary, ignored);
  });
  return made;
}

void require_writable(const fs::path& folder) {
  const auto probe = folder / ".clnet-probe";
  remove_stale(probe);
  const auto [temporary, lock] = make_temporary(probe, probe);
  std::error_code ignored;
  fs::remove(temporary, ignored);
}

}  // namespace clnet::file
