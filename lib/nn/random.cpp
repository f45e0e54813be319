#include "lib/nn/random.h"

#include <array>
#include <cstdint>

#include "lib/graph/random_stream.h"

namespace clnet::nn {

namespace {

/// Philox4x32-10; see kernels/clnet.clh.
std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t offset, std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::array<std::uint32_t, 4> c{low(index), high(index), low(offset), high(offset)};
  std::uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const auto first = std::uint64_t{0xD2511F53U} * c[0], second = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {high(second) ^ c[1] ^ k0, low(second), high(first) ^ c[3] ^ k1, low(first)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

}  // namespace

std::vector<double> draw_uniform(std::size_t count) {
  const auto state = take_random_position();
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; i += 4) {
    const auto block = philox(state.seed, state.offset, i / 4);
    for (std::size_t lane = 0; lane < 4 && i + lane < count; ++lane) values[i + lane] = (block[lane] >> 8) * 0x1p-24;
  }
  return values;
}

}  // namespace clnet::nn
