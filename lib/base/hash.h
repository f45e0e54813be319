// A 64-bit hash that is the same on every machine and run (FNV-1a), for cache keys and file names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace clnet {

class Hash {
 public:
  Hash& add(std::string_view text) {
    for (char c : text) mix(static_cast<unsigned char>(c));
    return add(static_cast<std::uint64_t>(text.size()));
  }
  Hash& add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) mix(static_cast<unsigned char>(number >> (8 * i)));
    return *this;
  }
  std::uint64_t value() const { return state_; }
  /// 16 hexadecimal digits.
  std::string hex() const;

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace clnet
