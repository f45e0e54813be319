// Rows of elementwise operations on the bits of integers and bool, and on truth values.
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/rows.h"

namespace clnet {

namespace ops {

namespace {

struct WholeTable {
  static constexpr int before = __COUNTER__;
};

}  // namespace

}  // namespace ops

#define CLNET_TABLE WholeTable
// clang-format off
CLNET_BINARY(bitwise_and, {.torch = "bitwise_and", .onnx = {"BitwiseAnd", 18}, .gradient = Gradient::none, .method = true}, Takes::whole, false, "a & b", nullptr, Formula::simple)
CLNET_BINARY(bitwise_or, {.torch = "bitwise_or", .onnx = {"BitwiseOr", 18}, .gradient = Gradient::none, .method = true}, Takes::whole, false, "a | b", nullptr, Formula::simple)
CLNET_BINARY(bitwise_xor, {.torch = "bitwise_xor", .onnx = {"BitwiseXor", 18}, .gradient = Gradient::none, .method = true}, Takes::whole, false, "a ^ b", nullptr, Formula::simple)
// OpenCL shifts by the count modulo the width.
CLNET_BINARY(bitwise_left_shift, {.torch = "bitwise_left_shift", .onnx = {"BitShift", 11}, .gradient = Gradient::none, .method = true, .b = {0, 6}}, Takes::integers, false, "b < 0 || b >= 8 * (int)sizeof(a) ? 0 : a << b", nullptr, Formula::simple)
CLNET_BINARY(bitwise_right_shift, {.torch = "bitwise_right_shift", .onnx = {"BitShift", 11}, .gradient = Gradient::none, .method = true, .b = {0, 6}}, Takes::integers, false, "b < 0 || b >= 8 * (int)sizeof(a) ? (a < 0 ? -1 : 0) : a >> b", nullptr, Formula::simple)
CLNET_ROW(bitwise_not_row, "bitwise_not", 1, {}, Takes::whole, false, "~a", nullptr, Formula::simple)
CLNET_ROW(logical_xor_row, "logical_xor", 2, {.torch = "logical_xor", .onnx = {"Xor", 7}, .gradient = Gradient::none, .method = true}, Takes::bools, true, "(a != 0) != (b != 0)", nullptr)
// clang-format on
#undef CLNET_TABLE

namespace ops {

namespace {

constexpr int behind_whole = __COUNTER__;

}  // namespace

std::vector<Operation> whole_rows() {
  auto rows = entries<WholeTable>(std::make_integer_sequence<int, behind_whole - WholeTable::before - 1>());
  rows.push_back(entry(logical_xor_row, logical_xor));
  return rows;
}

namespace {

/// The number beside `a`: doubles have no whole numbers of more than 53 bits.
Tensor whole_number(const Tensor& a, std::int64_t b) {
  return Tensor::from(std::vector<std::int64_t>{b}, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(a.rank()), 1)));
}
bool is_beyond_double(const Tensor& a, std::int64_t b) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  return a.defined() && a.dtype() == Dtype::i64 && (b > most || b < -most);
}

}  // namespace

}  // namespace ops

Tensor operator&(const Tensor& a, std::int64_t b) {
  return ops::is_beyond_double(a, b) ? bitwise_and(a, ops::whole_number(a, b)) : bitwise_and(a, static_cast<double>(b));
}
Tensor operator|(const Tensor& a, std::int64_t b) {
  return ops::is_beyond_double(a, b) ? bitwise_or(a, ops::whole_number(a, b)) : bitwise_or(a, static_cast<double>(b));
}
Tensor operator^(const Tensor& a, std::int64_t b) {
  return ops::is_beyond_double(a, b) ? bitwise_xor(a, ops::whole_number(a, b)) : bitwise_xor(a, static_cast<double>(b));
}

Tensor logical_xor(const Tensor& a, const Tensor& b) { return ops::binary(ops::logical_xor_row, a, b); }
Tensor bitwise_not(const Tensor& x) {
  require_defined("bitwise_not", {{"x", x}});
  return x.dtype() == Dtype::boolean ? logical_not(x) : ops::unary(ops::bitwise_not_row, x);
}

}  // namespace clnet
