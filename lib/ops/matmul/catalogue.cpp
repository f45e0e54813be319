// The operations of clnet/ops/matmul.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> matmul_operations() {
  return {
      {.name = "addmm", .torch = "addmm", .onnx = {"Gemm", 13}, .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 61, .dtype_roundings = 2, .solvers = "matmul", .method = "addmm"},
      {.name = "einsum", .torch = "einsum", .onnx = {"Einsum", 28}, .operands = {{"operands[]"}}, .roundings = 50, .solvers = "matmul"},
      {.name = "linear", .torch = "linear", .onnx = {"Gemm", 13}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 61, .solvers = "matmul"},
      {.name = "matmul", .torch = "matmul", .onnx = {"MatMul", 13}, .operands = {{"a"}, {"b"}}, .roundings = 300, .method = "matmul"},
      {.name = "outer", .torch = "outer", .operands = {{"a"}, {"b"}}, .takes = Takes::all, .roundings = 1, .method = "outer"},
  };
}
// clang-format on

}  // namespace clnet::ops
