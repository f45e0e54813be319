// The bytes of a file from the front, inflated when it is gzip, without ever holding more than a small buffer.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lib/base/input_file.h"

namespace clnet::data {

class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills `target` with up to `bytes` and says how many; fewer only at the end of the data. Throws FileError for a damaged
  /// stream; the check sums of gzip are complete once this returned fewer than asked for.
  std::size_t read(void* target, std::size_t bytes);
  /// Reads exactly `bytes`, growing with what arrives: a header's lie costs no memory. Throws FileError, naming `what`, when the
  /// data end before.
  std::vector<std::uint8_t> read_exactly(std::uint64_t bytes, std::string_view what);
  /// Throws FileError when there is more.
  void expect_end(std::string_view what);
  [[noreturn]] void fail(std::string_view reason) const { file_.fail(reason); }

 private:
  void fill_input();

  InputFile file_;
  std::uint64_t offset_ = 0;  ///< of the next byte to read from the file
  bool gzip_ = false;
  bool member_done_ = false;  ///< a gzip member was read to its end
  z_stream stream_{};
  std::vector<unsigned char> input_;
};

}  // namespace clnet::data
