// A regular file opened for reading at any offset. Opening never blocks (a FIFO, a device or a folder is refused), and its size
// is known before anything is read, so that sizes in headers can be checked against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "lib/base/os/descriptor.h"

namespace clnet {

class InputFile {
 public:
  /// Throws FileError, with path and reason, when it is missing, unreadable or not a regular file.
  explicit InputFile(std::filesystem::path path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Bytes, when it was opened.
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes`. Throws FileError when the file ends before.
  void read_at(std::uint64_t offset, void* target, std::size_t bytes) const;
  /// Throws FileError: "PATH: REASON".
  [[noreturn]] void fail(std::string_view reason) const;

 private:
  std::filesystem::path path_;
  os::Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

/// Text from a file, for use in a line of an error: in quotes, without control characters, cut when long.
std::string in_quotes(std::string_view text);

}  // namespace clnet
