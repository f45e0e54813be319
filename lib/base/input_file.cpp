#include "lib/base/input_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clnet/error.h"

namespace clnet {

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(os::open(path_, os::Opening::read_at_once)) {
  if (!descriptor_.is_open()) fail(fmt::format("cannot open: {}", std::strerror(errno)));
  const auto status = descriptor_.status();
  if (!status) fail(fmt::format("cannot read its status: {}", std::strerror(errno)));
  if (status->kind == os::FileStatus::Kind::folder) fail("is a folder, not a file");
  if (status->kind != os::FileStatus::Kind::regular) fail("is not a regular file");
  size_ = status->size;
}

void InputFile::read_at(std::uint64_t offset, void* target, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    fail(fmt::format("ends at byte {}, expected {} bytes at {}", size_, bytes, offset));
  auto* out = static_cast<char*>(target);
  while (bytes > 0) {
    constexpr std::size_t most = std::size_t{1} << 30;  // the kernel reads no more than 2 GiB in one call
    const auto got = descriptor_.read_at(offset, out, std::min(bytes, most));
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
