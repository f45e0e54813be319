#include "lib/dist/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "clnet/error.h"
#include "lib/base/narrow_floats.h"

namespace clnet::dist {

namespace {

/// So many elements are added at a time, which stay in the nearest cache. Loops over all of them have a length that compilers
/// know, and so use vectors; what is left of the last tile is computed and not used.
constexpr std::size_t tile = 512;

/// Load and store convert between the array's elements and what is added.
template <class Stored, class Added, class Load, class Store>
void add_as(std::span<const std::byte* const> parts, std::byte* sums, std::size_t count, Load load, Store store) {
  std::array<Stored, tile> elements{};
  std::array<Added, tile> added;
  for (std::size_t begin = 0; begin < count; begin += tile) {
    const auto bytes = std::min(tile, count - begin) * sizeof(Stored);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::memcpy(elements.data(), parts[part] + begin * sizeof(Stored), bytes);
      if (part == 0) {
        for (std::size_t i = 0; i < tile; ++i) added[i] = load(elements[i]);
      } else {
        for (std::size_t i = 0; i < tile; ++i) added[i] = static_cast<Added>(added[i] + load(elements[i]));
      }
    }
    for (std::size_t i = 0; i < tile; ++i) elements[i] = store(added[i]);
    std::memcpy(sums + begin * sizeof(Stored), elements.data(), bytes);
  }
}

template <class T>
void add_plainly(std::span<const std::byte* const> parts, std::byte* sums, std::size_t count) {
  const auto same = [](T value) { return value; };
  add_as<T, T>(parts, sums, count, same, same);
}

}  // namespace

void require_sums(Dtype dtype) {
  if (dtype == Dtype::boolean) throw DtypeError("a sum over ranks: bool has no sums, expected numbers");
}

void add_parts(Dtype dtype, std::span<const std::byte* const> parts, std::byte* sums, std::size_t count) {
  switch (dtype) {
    case Dtype::f32: return add_plainly<float>(parts, sums, count);
    case Dtype::f64: return add_plainly<double>(parts, sums, count);
    case Dtype::f16:
      return add_as<std::uint16_t, float>(
          parts, sums, count, [](auto bits) { return float_of_half(bits); }, [](float value) { return half_bits(value); });
    case Dtype::bf16:
      return add_as<std::uint16_t, float>(
          parts, sums, count, [](auto bits) { return float_of_bfloat16(bits); },
          [](float value) { return bfloat16_bits(value); });
    // Unsigned, as these wrap around.
    case Dtype::i32: return add_plainly<std::uint32_t>(parts, sums, count);
    case Dtype::i64: return add_plainly<std::uint64_t>(parts, sums, count);
    case Dtype::i8:
    case Dtype::u8: return add_plainly<std::uint8_t>(parts, sums, count);
    case Dtype::boolean: require_sums(dtype);
  }
}

}  // namespace clnet::dist
