// Philox4x32-10 by Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), and what clnet makes of its numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace clnet::testing::reference {

inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t offset, std::uint64_t index) {
  std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                       static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset >> 32)};
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// In [0, 1), of 24 bits.
inline double philox_uniform(std::uint64_t seed, std::uint64_t offset, std::uint64_t index) {
  return philox(seed, offset, index)[0] / 256 * 0x1p-24;
}
inline double philox_normal(std::uint64_t seed, std::uint64_t offset, std::uint64_t index) {
  const auto bits = philox(seed, offset, index);
  const double radius = std::sqrt(-2 * std::log((bits[0] / 256 + 1) * 0x1p-24));
  return radius * std::cos(3.14159265358979323846 * (bits[1] / 256) * 0x1p-23);
}

}  // namespace clnet::testing::reference
