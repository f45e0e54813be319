// A check sum of texts and bytes.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace clnet {

/// CRC-32 of texts and bytes, each with its length, so that none can pass into the next.
class Checksum {
 public:
  Checksum& add(std::string_view text) { return add(text.data(), text.size()); }
  Checksum& add(const void* data, std::size_t bytes) {
    const std::uint64_t length = bytes;
    update(&length, sizeof length);
    update(data, bytes);
    return *this;
  }
  /// Eight hexadecimal digits.
  std::string text() const;

 private:
  void update(const void* data, std::size_t bytes);

  uLong sum_ = ::crc32_z(0, nullptr, 0);
};

}  // namespace clnet
