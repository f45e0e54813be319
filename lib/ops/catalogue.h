// The catalogue of operations: facts about each function of clnet/ops.h beside its code. A family has its table in
// lib/ops/<family>/catalogue.cpp; a row of lib/ops/elementwise/elementwise.cpp is its own entry. Documents, tests, random
// programs and Tensor's member functions are made from it.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::ops {

/// The dtypes that an operation takes; it refuses others with a DtypeError. whole: integers and bool.
enum class Takes : std::uint8_t { all, numbers, floats, whole, integers, i64, bools };
/// The result's dtype. with_number: as beside a C++ number; sums: i64 of integers and bool; named: the call names it.
enum class Gives : std::uint8_t { same, with_number, boolean, sums, index, f32, named };
/// any_order: gradients are graph, and have gradients.
enum class Gradient : std::uint8_t { any_order, none };

/// The content of an operand. value: the dtype that the operation takes, one for all; indices: i32 or i64; truth: bool.
enum class Holds : std::uint8_t { value, indices, truth };

/// Between which numbers tests and random programs draw elements; infinite: anything.
struct Between {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

struct Operand {
  std::string_view name;  ///< as in the declaration and in errors; "tensors[]" is a list
  Holds holds = Holds::value;
  Between drawn = {};
  bool optional = false;  ///< may be undefined or left out
};
constexpr Operand optional(std::string_view name, Between drawn = {}) { return {name, Holds::value, drawn, true}; }

/// ONNX's operator that computes the same, or the nearest one; "ScatterElements(add)" names an attribute, too.
struct OnnxName {
  std::string_view name = {};
  int since = 0;  ///< the operator set of the definition that is meant, the newest one of ONNX 1.23
};

struct Operation {
  std::string_view name;        ///< in clnet/ops.h, or of an operator, as add
  std::string_view torch = {};  ///< in torch or torch.nn.functional, unless it says otherwise; empty: there is none
  OnnxName onnx = {};
  std::vector<Operand> operands = {};
  Takes takes = Takes::floats;
  Gives gives = Gives::same;
  Gradient gradient = Gradient::any_order;
  /// The error bound in roundings of f32, 2^-24 of the largest result; the rounding to the result's dtype is not among them.
  double roundings = 0;
  double last_places = 0;         ///< the bound of an elementwise function in units of each result's own last place, in f32
  double dtype_roundings = 1;     ///< roundings to the result's dtype
  bool cut_off = false;           ///< to the dtype's steps below 1, instead of rounded
  std::string_view solvers = {};  ///< whose solvers it goes by; empty: those of its own name
  std::string_view method = {};   ///< Tensor's member function; empty: there is none
  /// An elementwise function of one tensor, or of two with broadcasting, and of a tensor and a number.
  Tensor (*unary)(const Tensor&) = nullptr;
  Tensor (*binary)(const Tensor&, const Tensor&) = nullptr;
  Tensor (*before_number)(const Tensor&, double) = nullptr;
  Tensor (*behind_number)(double, const Tensor&) = nullptr;
};

/// All operations by name.
const std::vector<Operation>& catalogue();
/// Throws Error where there is none of the name.
const Operation& catalogued(std::string_view name);

std::vector<Operation> attention_operations(), conv_operations(), elementwise_operations(), elementwise_rows(),
    image_operations(), index_operations(), loss_operations(), matmul_operations(), norm_operations(), pool_operations(),
    random_operations(), recurrent_operations(), reduce_operations(), shape_operations();

}  // namespace clnet::ops
