#include "tests/fuzz/rounding.h"

#include <cmath>
#include <cstring>

namespace clnet::fuzz {

using testing::Array;

namespace {

struct Format {
  int digits, least, most;  ///< digits of the significand; exponents of the smallest and the largest normal number
};

Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return {11, -14, 15};
    case Dtype::bf16: return {8, -126, 127};
    case Dtype::f64: return {53, -1022, 1023};
    default: return {24, -126, 127};
  }
}

double to_float(double value, const Format& format) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.least), shift = format.digits - 1 - exponent;
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  return std::ilogb(result) > format.most ? std::copysign(INFINITY, value) : result;
}

/// The bits of a value that the format holds: sign, exponent, fraction.
std::uint32_t bits_of(double value, const Format& format, int exponent_bits) {
  const int fraction_bits = format.digits - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + fraction_bits) : 0;
  const std::uint32_t top = ((1u << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) return sign | top | 1u << (fraction_bits - 1);
  if (std::isinf(value)) return sign | top;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), format.least);
  const auto digits = static_cast<std::uint32_t>(std::ldexp(std::fabs(value), fraction_bits - exponent));
  const bool normal = digits >> fraction_bits != 0;
  return sign | (normal ? static_cast<std::uint32_t>(exponent - format.least + 1) << fraction_bits : 0) |
         (digits & ((1u << fraction_bits) - 1));
}

double value_of(std::uint32_t bits, const Format& format, int exponent_bits) {
  const int fraction_bits = format.digits - 1;
  const auto exponent = static_cast<int>(bits >> fraction_bits & ((1u << exponent_bits) - 1));
  const auto fraction = bits & ((1u << fraction_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) & 1u ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  const double digits = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
  return sign * std::ldexp(digits, std::max(exponent, 1) - 1 + format.least - fraction_bits);
}

template <class T>
void store(std::vector<std::byte>& bytes, std::size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
}

template <class T>
T fetch(const std::vector<std::byte>& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

double rounded(double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f16:
    case Dtype::bf16: return to_float(value, format_of(dtype));
    case Dtype::f64: return value;
    case Dtype::boolean: return value != 0;
    case Dtype::i8: {
      const double byte = rounded(value, Dtype::u8);
      return byte < 128 ? byte : byte - 256;
    }
    case Dtype::u8: {
      const double whole = std::trunc(value), rest = std::fmod(whole, 256);
      return rest < 0 ? rest + 256 : rest;
    }
    default: return std::trunc(value);
  }
}

double unit(Dtype dtype) { return is_floating(dtype) ? std::ldexp(1, -format_of(dtype).digits) : 0; }

double tiniest(Dtype dtype) {
  const auto format = format_of(dtype);
  return is_floating(dtype) ? std::ldexp(1, format.least - format.digits) : 0;
}

std::vector<std::byte> to_storage(const Array& array, Dtype dtype) {
  const auto count = static_cast<std::size_t>(array.numel());
  std::vector<std::byte> bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = array.values[i];
    switch (dtype) {
      case Dtype::f32: store(bytes, i, static_cast<float>(value)); break;
      case Dtype::f64: store(bytes, i, value); break;
      case Dtype::f16: store(bytes, i, static_cast<std::uint16_t>(bits_of(value, format_of(dtype), 5))); break;
      case Dtype::bf16: store(bytes, i, static_cast<std::uint16_t>(bits_of(value, format_of(dtype), 8))); break;
      case Dtype::i32: store(bytes, i, static_cast<std::int32_t>(value)); break;
      case Dtype::i64: store(bytes, i, static_cast<std::int64_t>(value)); break;
      case Dtype::i8: store(bytes, i, static_cast<std::int8_t>(value)); break;
      case Dtype::u8: store(bytes, i, static_cast<std::uint8_t>(value)); break;
      case Dtype::boolean: store(bytes, i, static_cast<std::uint8_t>(value != 0)); break;
    }
  }
  return bytes;
}

Array from_storage(const std::vector<std::byte>& bytes, const Spec& spec) {
  Array array(spec.shape);
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    auto& value = array.values[i];
    switch (spec.dtype) {
      case Dtype::f32: value = static_cast<double>(fetch<float>(bytes, i)); break;
      case Dtype::f64: value = fetch<double>(bytes, i); break;
      case Dtype::f16: value = value_of(fetch<std::uint16_t>(bytes, i), format_of(spec.dtype), 5); break;
      case Dtype::bf16: value = value_of(fetch<std::uint16_t>(bytes, i), format_of(spec.dtype), 8); break;
      case Dtype::i32: value = static_cast<double>(fetch<std::int32_t>(bytes, i)); break;
      case Dtype::i64: value = static_cast<double>(fetch<std::int64_t>(bytes, i)); break;
      case Dtype::i8: value = static_cast<double>(fetch<std::int8_t>(bytes, i)); break;
      case Dtype::u8:
      case Dtype::boolean: value = static_cast<double>(fetch<std::uint8_t>(bytes, i)); break;
    }
  }
  return array;
}

}  // namespace clnet::fuzz
