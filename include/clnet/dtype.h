// The storage types of tensors. Arithmetic on f16 and bf16 is done in float, on i8 and u8 in int; they are storage formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "clnet/export.h"

namespace clnet {

enum class Dtype : std::uint8_t { f32, f16, bf16, i32, i64, i8, u8, boolean };

/// Bytes of one element.
CLNET_API std::size_t size_of(Dtype dtype);
/// "f32", "f16", "bf16", "i32", "i64", "i8", "u8" or "bool".
CLNET_API std::string_view to_string(Dtype dtype);
/// f32, f16 and bf16: the types that gradients flow through.
CLNET_API bool is_floating(Dtype dtype);

/// Conversions of one value, round to nearest even, infinities and NaN kept.
CLNET_API std::uint16_t float_to_half(float value);
CLNET_API float half_to_float(std::uint16_t bits);
CLNET_API std::uint16_t float_to_bfloat16(float value);
CLNET_API float bfloat16_to_float(std::uint16_t bits);

/// The Dtype that stores a C++ type: dtype_of<float> is Dtype::f32.
template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<std::int8_t> {
  static constexpr Dtype value = Dtype::i8;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::boolean;
};
/// The type that tensors take T for: signed integers of the size of std::int32_t and std::int64_t, as long long, are these.
template <class T>
using ElementType = std::conditional_t<!std::is_integral_v<T> || !std::is_signed_v<T> || sizeof(T) < 4, T,
                                       std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>>;
/// Whether there are tensors of T. Doubles are stored as f32.
template <class T>
inline constexpr bool is_element_type = std::is_same_v<T, double> || requires {
  DtypeOf<ElementType<T>>::value;
};

template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

}  // namespace clnet
