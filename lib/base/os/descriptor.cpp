#include "lib/base/os/descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace clnet::os {

namespace {

FileStatus told(const struct stat& status) {
  const auto kind = S_ISDIR(status.st_mode)   ? FileStatus::Kind::folder
                    : S_ISREG(status.st_mode) ? FileStatus::Kind::regular
                                              : FileStatus::Kind::other;
  return {kind, static_cast<std::uint64_t>(status.st_size), status.st_nlink, {status.st_dev, status.st_ino}};
}

int flags(Opening how) {
  switch (how) {
    case Opening::read: return O_RDONLY;
    case Opening::read_at_once: return O_RDONLY | O_NONBLOCK | O_NOCTTY;
    case Opening::folder: return O_RDONLY | O_DIRECTORY;
    case Opening::create: return O_RDWR | O_CREAT | O_EXCL;
    case Opening::append: return O_WRONLY | O_APPEND;
    case Opening::append_or_create: return O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
  }
  return O_RDONLY;
}

}  // namespace

std::optional<FileStatus> status(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return told(found);
}

Descriptor open(const std::filesystem::path& path, Opening how) {
  return Descriptor(::open(path.c_str(), flags(how) | O_CLOEXEC, 0666));
}

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

std::ptrdiff_t Descriptor::read(void* target, std::size_t bytes) const { return ::read(number_, target, bytes); }

std::ptrdiff_t Descriptor::read_at(std::uint64_t offset, void* target, std::size_t bytes) const {
  return ::pread(number_, target, bytes, static_cast<off_t>(offset));
}

std::ptrdiff_t Descriptor::write(const void* data, std::size_t bytes) const { return ::write(number_, data, bytes); }

bool Descriptor::write_all(std::string_view text) const {
  while (!text.empty()) {
    const auto written = write(text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int Descriptor::wait_to_read(std::chrono::milliseconds longest) const {
  pollfd waiting{number_, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(longest.count()));
}

bool Descriptor::never_wait() const { return ::fcntl(number_, F_SETFL, O_NONBLOCK) == 0; }

bool Descriptor::clear() const { return ::ftruncate(number_, 0) == 0 && ::lseek(number_, 0, SEEK_SET) == 0; }

bool Descriptor::sync() const { return ::fsync(number_) == 0; }

bool Descriptor::lock(bool waits) const {
  bool locked = false;
  do {
    locked = ::flock(number_, waits ? LOCK_EX : LOCK_EX | LOCK_NB) == 0;
  } while (!locked && errno == EINTR);
  return locked;
}

std::optional<FileStatus> Descriptor::status() const {
  struct stat found {};
  if (::fstat(number_, &found) != 0) return std::nullopt;
  return told(found);
}

}  // namespace clnet::os
