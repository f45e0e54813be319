#include "lib/base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clnet/error.h"

namespace clnet {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for one.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) fail(fmt::format("cannot open: {}", std::strerror(errno)));
  struct stat status {};
  std::string reason;
  if (::fstat(descriptor_, &status) != 0) {
    reason = fmt::format("cannot read its status: {}", std::strerror(errno));
  } else if (S_ISDIR(status.st_mode)) {
    reason = "is a folder, not a file";
  } else if (!S_ISREG(status.st_mode)) {
    reason = "is not a regular file";
  }
  if (!reason.empty()) {
    ::close(descriptor_);
    fail(reason);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(std::uint64_t offset, void* target, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    fail(fmt::format("ends at byte {}, expected {} bytes at {}", size_, bytes, offset));
  auto* out = static_cast<char*>(target);
  while (bytes > 0) {
    constexpr std::size_t most = std::size_t{1} << 30;  // the kernel reads no more than 2 GiB in one call
    const ssize_t got = ::pread(descriptor_, out, std::min(bytes, most), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("cannot read: {}", std::strerror(errno)));
    if (got == 0) fail("became shorter while it was read");
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

void InputFile::fail(std::string_view reason) const { throw FileError(fmt::format("{}: {}", path_.string(), reason)); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string out = "\"";
  for (char c : text.substr(0, most)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > most ? "...\"" : "\"");
}

}  // namespace clnet
