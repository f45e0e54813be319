#include "clnet/dtype.h"

#include <bit>
#include <cstring>

#include "clnet/error.h"

namespace clnet {

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::f64:
    case Dtype::i64: return 8;
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::boolean: return 1;
  }
  throw DtypeError("not a dtype");
}

std::string_view to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::i32: return "i32";
    case Dtype::i64: return "i64";
    case Dtype::i8: return "i8";
    case Dtype::u8: return "u8";
    case Dtype::boolean: return "bool";
    case Dtype::f64: return "f64";
  }
  throw DtypeError("not a dtype");
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f64;
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal halves: adding 0.5 lines the half's last bit up with the float's and lets the FPU round.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float bfloat16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace clnet
