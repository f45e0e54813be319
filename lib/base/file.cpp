#include "lib/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <ostream>
#include <string_view>

#include "clnet/error.h"

namespace clnet::file {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(code)));
}

void sync(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot be opened for syncing", errno);
  const int result = ::fsync(descriptor), code = errno;
  ::close(descriptor);
  // Some file systems cannot sync a folder; the file's own data are what matters.
  if (result != 0 && !(flags & O_DIRECTORY)) fail(path, "cannot be synced", code);
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
  enum class Wait : std::uint8_t { no, yes };
  Locked(const fs::path& path, Wait wait) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    removed_ = descriptor_ < 0 && errno == ENOENT;
    if (descriptor_ < 0) return;
    do {
      locked_ = ::flock(descriptor_, wait == Wait::yes ? LOCK_EX : LOCK_EX | LOCK_NB) == 0;
    } while (!locked_ && errno == EINTR);
    struct stat status {};
    removed_ = ::fstat(descriptor_, &status) == 0 && status.st_nlink == 0;
  }
  ~Locked() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const { return locked_; }
  /// Whether somebody took it for an abandoned one before it was locked.
  bool removed() const { return removed_; }

 private:
  int descriptor_;
  bool locked_ = false, removed_ = false;
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
    if (const Locked lock(entry->path(), Locked::Wait::no); lock) fs::remove(entry->path(), ignored);
  }
}

/// Opens and locks a new temporary file of the target's.
std::unique_ptr<Locked> create(const fs::path& temporary, std::ofstream& out) {
  for (;;) {
    errno = 0;
    out.open(temporary, std::ios::binary | std::ios::trunc);
    if (!out) return nullptr;
    auto lock = std::make_unique<Locked>(temporary, Locked::Wait::yes);
    if (!lock->removed()) return lock;
    out.close();
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
  static std::atomic<unsigned> counter{0};
  const fs::path temporary = target.parent_path() / fmt::format("{}{}-{}", temporary_stem(target), ::getpid(), counter++);
  remove_stale(target);
  std::ofstream out;
  const auto lock = create(temporary, out);
  if (!lock) fail(path, "cannot be written", errno);
  try {
    write(out);
    errno = 0;
    out.close();
    if (!out) fail(path, "cannot be written", errno ? errno : EIO);
    sync(temporary, O_RDONLY);
    fs::rename(temporary, target, code);
    if (code) fail(path, "cannot be replaced", code.value());
  } catch (...) {
    out.close();
    fs::remove(temporary, code);
    throw;
  }
  const fs::path folder = target.parent_path();
  try {
    sync(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
  } catch (const FileError&) {
    // A folder that may be written but not read: the file is in place all the same.
  }
}

void replace(const fs::path& path, std::string_view content) {
  replace(path, [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

}  // namespace clnet::file
