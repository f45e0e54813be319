// The storage types of tensors. Kernels compute f64 in double, f16 and bf16 in float, i8 and u8 in int.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "clnet/export.h"

namespace clnet {

/// Storage types: floats of 32 and 16 bits, bfloat16, signed integers of 32, 64 and 8 bits, bytes, bool in one byte, and floats
/// of 64 bits, for devices that have them (DeviceInfo::fp64).
enum class Dtype : std::uint8_t { f32, f16, bf16, i32, i64, i8, u8, boolean, f64 };

/// Bytes of one element.
CLNET_API std::size_t size_of(Dtype dtype);
/// The name: "f32", "f16", "bf16", "i32", "i64", "i8", "u8", "bool" or "f64".
CLNET_API std::string_view to_string(Dtype dtype);
/// Whether gradients flow through the type: f32, f16, bf16 and f64.
CLNET_API bool is_floating(Dtype dtype);

/// Conversion of one value: rounds to nearest even, keeps infinities and NaN.
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
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
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
/// The element type for T. Signed integers of 32 and 64 bits, as long long, become std::int32_t and std::int64_t.
template <class T>
using ElementType = std::conditional_t<!std::is_integral_v<T> || !std::is_signed_v<T> || sizeof(T) < 4, T,
                                       std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>>;
/// Whether a tensor can be made from values of type T.
template <class T>
inline constexpr bool is_element_type = requires {
  DtypeOf<ElementType<T>>::value;
};

template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

}  // namespace clnet
