#include "lib/exec/convert.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace clnet::exec {

namespace {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    if (value < static_cast<From>(Limits::min())) return Limits::min();
    if (value >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  }
  return static_cast<To>(value);
}

template <class To, class From, class Decode>
void convert(const std::byte* source, To* target, std::size_t count, const Decode& decode) {
  for (std::size_t i = 0; i < count; ++i) {
    From stored;
    std::memcpy(&stored, source + i * sizeof stored, sizeof stored);
    target[i] = converted<To>(decode(stored));
  }
}

}  // namespace

template <class To>
void convert(Dtype from, const std::byte* source, To* target, std::size_t count) {
  const auto as_is = [](auto value) { return value; };
  switch (from) {
    case Dtype::f32: return convert<To, float>(source, target, count, as_is);
    case Dtype::f64: return convert<To, double>(source, target, count, as_is);
    case Dtype::f16: return convert<To, std::uint16_t>(source, target, count, half_to_float);
    case Dtype::bf16: return convert<To, std::uint16_t>(source, target, count, bfloat16_to_float);
    case Dtype::i32: return convert<To, std::int32_t>(source, target, count, as_is);
    case Dtype::i64: return convert<To, std::int64_t>(source, target, count, as_is);
    case Dtype::i8: return convert<To, std::int8_t>(source, target, count, as_is);
    case Dtype::u8: return convert<To, std::uint8_t>(source, target, count, as_is);
    case Dtype::boolean: return convert<To, std::uint8_t>(source, target, count, [](std::uint8_t value) { return value != 0; });
  }
}

template void convert(Dtype, const std::byte*, float*, std::size_t);
template void convert(Dtype, const std::byte*, double*, std::size_t);
template void convert(Dtype, const std::byte*, std::int32_t*, std::size_t);
template void convert(Dtype, const std::byte*, std::int64_t*, std::size_t);
template void convert(Dtype, const std::byte*, std::int8_t*, std::size_t);
template void convert(Dtype, const std::byte*, std::uint8_t*, std::size_t);
template void convert(Dtype, const std::byte*, bool*, std::size_t);

}  // namespace clnet::exec
