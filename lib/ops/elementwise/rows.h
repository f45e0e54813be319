// A row of the tables of elementwise operations: name, entry of the catalogue, accepted dtypes, expression and gradient.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/number.h"
#include "lib/graph/op.h"
#include "lib/ops/catalogue.h"

namespace clnet::ops {

/// What a gradient is built from: inputs a and b; output y; its gradient g; the parameters.
struct At {
  Tensor a, b, y, g;
  const std::vector<double>& p;
  int number;  ///< the input that wants no gradient; -1: none
};
/// The gradients of both operands, of which a number's is not made.
template <class OfA, class OfB>
Tensors both(const At& at, OfA of_a, OfB of_b) {
  return {at.number == 0 ? Tensor{} : of_a(), at.number == 1 ? Tensor{} : of_b()};
}
using Vjp = std::vector<Tensor> (*)(const At& at);

/// A composite formula is computed in f32, whatever the storage; a simple one, of one operation, rounds once as it is.
enum class Formula : std::uint8_t { simple, composite };

/// What the catalogue says of a row beside its fields.
struct Known {
  std::string_view torch = {};
  OnnxName onnx = {};
  Gradient gradient = Gradient::any_order;
  double roundings = 0, last_places = 0;
  bool method = false;
  Between a = {}, b = {};
};

struct Row {
  std::string_view name;
  int inputs;
  Known known;  // empty: no public function is this row
  Takes takes;
  bool gives_bool;
  std::string_view expr;
  Vjp vjp;  // null: no gradient
  Formula formula = Formula::composite;
  Precision precision = Precision::widest;
  std::string_view whole = {};  // the expression for integers and bool; empty: the same
};

/// The entry of a row. The functions are those that have no parameters but operands.
inline Operation entry(const Row& row) {
  const auto& known = row.known;
  std::vector<Operand> operands{{row.inputs == 1 ? "x" : "a", Holds::value, known.a}};
  if (row.inputs == 2) operands.push_back({"b", Holds::value, known.b});
  return {.name = row.name,
          .torch = known.torch,
          .onnx = known.onnx,
          .operands = std::move(operands),
          .takes = row.takes,
          .gives = row.gives_bool ? Gives::boolean : Gives::same,
          .gradient = row.vjp ? known.gradient : Gradient::none,
          .roundings = known.roundings,
          .last_places = known.last_places,
          .method = known.method ? row.name : std::string_view{}};
}
inline Operation entry(const Row& row, Tensor (*function)(const Tensor&)) {
  auto result = entry(row);
  result.unary = function;
  return result;
}
inline Operation entry(const Row& row, Tensor (*function)(const Tensor&, const Tensor&)) {
  auto result = entry(row);
  result.binary = function;
  return result;
}
inline Operation entry(const Row& row, Tensor (*function)(const Tensor&, const Tensor&),
                       Tensor (*before_number)(const Tensor&, double), Tensor (*behind_number)(double, const Tensor&)) {
  auto result = entry(row, function);
  result.before_number = before_number;
  result.behind_number = behind_number;
  return result;
}

/// The entries of rows that define their functions, by their table and their places in it.
template <class Table, int place>
Operation entry_at();
template <class Table, int... place>
std::vector<Operation> entries(std::integer_sequence<int, place...>) {
  return {entry_at<Table, place + 1>()...};
}

/// The entries of the other tables: functions.cpp, whole.cpp.
std::vector<Operation> function_rows(), whole_rows();

/// The number that a leaf stands for; null: it is a tensor.
std::shared_ptr<const NumberValue> number_of(const Tensor& tensor);

Tensor unary(const Row& row, const Tensor& x, std::vector<double> parameters = {});
Tensor binary(const Row& row, const Tensor& a, const Tensor& b);
Tensor binary(const Row& row, const Tensor& a, const Tensor& b, std::vector<double> parameters);
Tensor binary(const Row& row, const Tensor& a, double b);
Tensor binary(const Row& row, double a, const Tensor& b);

}  // namespace clnet::ops

// A row is in namespace ops, and defines the public function that has no parameters but tensors. CLNET_TABLE is a type of the
// table whose constant `before` is __COUNTER__ in front of it.
#define CLNET_ROW(row, ...)       \
  namespace ops {                 \
  namespace {                     \
  constexpr Row row{__VA_ARGS__}; \
  }                               \
  }
#define CLNET_UNARY(function, ...)                                       \
  namespace ops {                                                        \
  namespace {                                                            \
  constexpr Row function##_row{#function, 1, __VA_ARGS__};               \
  }                                                                      \
  template <>                                                            \
  Operation entry_at<CLNET_TABLE, __COUNTER__ - CLNET_TABLE::before>() { \
    return entry(function##_row, clnet::function);                       \
  }                                                                      \
  }                                                                      \
  Tensor function(const Tensor& x) { return ops::unary(ops::function##_row, x); }
#define CLNET_BINARY(function, ...)                                                                    \
  namespace ops {                                                                                      \
  namespace {                                                                                          \
  constexpr Row function##_row{#function, 2, __VA_ARGS__};                                             \
  }                                                                                                    \
  template <>                                                                                          \
  Operation entry_at<CLNET_TABLE, __COUNTER__ - CLNET_TABLE::before>() {                               \
    return entry(function##_row, clnet::function, clnet::function, clnet::function);                   \
  }                                                                                                    \
  }                                                                                                    \
  Tensor function(const Tensor& a, const Tensor& b) { return ops::binary(ops::function##_row, a, b); } \
  Tensor function(const Tensor& a, double b) { return ops::binary(ops::function##_row, a, b); }        \
  Tensor function(double a, const Tensor& b) { return ops::binary(ops::function##_row, a, b); }
