// The operations of clnet/ops/elementwise.h that are no row of elementwise.cpp; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

#include "clnet/ops.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> elementwise_operations() {
  return {
      {.name = "addcdiv", .torch = "addcdiv", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 5, .method = "addcdiv"},
      {.name = "addcmul", .torch = "addcmul", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 3, .method = "addcmul"},
      {.name = "arange", .torch = "arange", .onnx = {"Range", 27}, .takes = Takes::numbers, .gradient = Gradient::none, .roundings = 2},
      {.name = "bitwise_not", .torch = "bitwise_not", .onnx = {"BitwiseNot", 18}, .operands = {{"x"}}, .takes = Takes::whole, .gradient = Gradient::none, .method = "bitwise_not"},
      {.name = "cast", .torch = "Tensor.to", .onnx = {"Cast", 28}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::named, .method = "to"},
      {.name = "eye", .torch = "eye", .onnx = {"EyeLike", 22}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "frac", .torch = "frac", .operands = {{"x"}}, .method = "frac", .unary = frac},
      {.name = "full", .torch = "full", .onnx = {"ConstantOfShape", 25}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "full_like", .torch = "full_like", .operands = {{"x"}}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "gelu", .torch = "gelu", .onnx = {"Gelu", 20}, .operands = {{"x"}}, .roundings = 34, .last_places = 20, .unary = gelu},
      {.name = "glu", .torch = "glu", .operands = {{"x", Holds::value, {-2, 2}}}, .roundings = 14},
      {.name = "hardshrink", .torch = "hardshrink", .onnx = {"Shrink", 9}, .operands = {{"x", Holds::value, {-2, 2}}}, .method = "hardshrink", .unary = hardshrink},
      {.name = "is_close", .torch = "isclose", .operands = {{"a"}, {"b"}}, .takes = Takes::all, .gives = Gives::boolean, .gradient = Gradient::none, .method = "is_close"},
      {.name = "lerp", .torch = "lerp", .operands = {{"a"}, {"b"}}, .roundings = 4, .method = "lerp"},
      {.name = "linspace", .torch = "linspace", .gradient = Gradient::none, .roundings = 2},
      {.name = "logspace", .torch = "logspace", .gradient = Gradient::none, .roundings = 40},
      {.name = "masked_fill", .torch = "masked_fill", .operands = {{"x"}, {"mask", Holds::truth}}, .takes = Takes::all, .method = "masked_fill"},
      {.name = "ones", .torch = "ones", .onnx = {"ConstantOfShape", 25}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "ones_like", .torch = "ones_like", .operands = {{"x"}}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "prelu", .torch = "prelu", .onnx = {"PRelu", 16}, .operands = {{"x", Holds::value, {-2, 2}}, {"weight", Holds::value, {0.1, 1}}}, .roundings = 1, .method = "prelu"},
      {.name = "relu6", .torch = "relu6", .onnx = {"Clip", 13}, .operands = {{"x"}}, .unary = relu6},
      {.name = "softshrink", .torch = "softshrink", .onnx = {"Shrink", 9}, .operands = {{"x", Holds::value, {-2, 2}}}, .roundings = 1, .last_places = 0.5, .unary = softshrink},
      {.name = "tanhshrink", .torch = "tanhshrink", .operands = {{"x"}}, .roundings = 14, .last_places = 7, .unary = tanhshrink},
      {.name = "threshold", .torch = "threshold", .onnx = {"ThresholdedRelu", 22}, .operands = {{"x"}}},
      {.name = "where", .torch = "where", .onnx = {"Where", 16}, .operands = {{"condition", Holds::truth}, {"a"}, {"b"}}, .takes = Takes::all},
      {.name = "zeros", .torch = "zeros", .onnx = {"ConstantOfShape", 25}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "zeros_like", .torch = "zeros_like", .operands = {{"x"}}, .takes = Takes::all, .gradient = Gradient::none},
  };
}
// clang-format on

}  // namespace clnet::ops
