// Elements of a file's types in clnet's dtypes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "clnet/dtype.h"

namespace clnet::io {

/// Converts `count` elements; false: some value does not fit.
using ConvertValues = bool (*)(const std::byte* in, std::size_t count, std::byte* out);

template <class From, class To>
bool convert_values(const std::byte* in, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, in + i * sizeof value, sizeof value);
    if constexpr (std::is_integral_v<From>)
      if (!std::in_range<To>(value)) return false;
    const auto converted = static_cast<To>(value);
    std::memcpy(out + i * sizeof converted, &converted, sizeof converted);
  }
  return true;
}

/// Elements as they are.
template <std::size_t bytes>
bool copy_values(const std::byte* in, std::size_t count, std::byte* out) {
  std::copy_n(in, bytes * count, out);
  return true;
}

/// Values of one byte as they are; of bool only 0 and 1.
inline bool copy_bools(const std::byte* in, std::size_t count, std::byte* out) {
  std::copy_n(in, count, out);
  return std::all_of(in, in + count, [](std::byte value) { return std::to_integer<int>(value) <= 1; });
}

}  // namespace clnet::io
