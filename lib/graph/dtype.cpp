#include "clnet/dtype.h"

#include "clnet/error.h"
#include "lib/base/narrow_floats.h"

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

std::uint16_t float_to_half(float value) { return half_bits(value); }
float half_to_float(std::uint16_t bits) { return float_of_half(bits); }
std::uint16_t float_to_bfloat16(float value) { return bfloat16_bits(value); }
float bfloat16_to_float(std::uint16_t bits) { return float_of_bfloat16(bits); }

}  // namespace clnet
