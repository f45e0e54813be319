// The operations of clnet/ops/matmul.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> matmul_operations() {
  return {
      {.name = "addbmm", .torch = "addbmm", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 61, .dtype_roundings = 2, .solvers = "matmul", .method = "addbmm"},
      {.name = "addmm", .torch = "addmm", .onnx = {"Gemm", 13}, .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 61, .dtype_roundings = 2, .solvers = "matmul", .method = "addmm"},
      {.name = "addmv", .torch = "addmv", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 61, .dtype_roundings = 2, .solvers = "matmul", .method = "addmv"},
      {.name = "addr", .torch = "addr", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 2, .dtype_roundings = 2, .method = "addr"},
      {.name = "baddbmm", .torch = "baddbmm", .operands = {{"x"}, {"a"}, {"b"}}, .roundings = 61, .dtype_roundings = 2, .solvers = "matmul", .method = "baddbmm"},
      {.name = "bmm", .torch = "bmm", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul", .method = "bmm"},
      {.name = "cross", .torch = "cross", .operands = {{"a"}, {"b"}}, .takes = Takes::numbers, .roundings = 4, .method = "cross"},
      {.name = "dot", .torch = "dot", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul", .method = "dot"},
      {.name = "einsum", .torch = "einsum", .onnx = {"Einsum", 28}, .operands = {{"operands[]"}}, .roundings = 50, .solvers = "matmul"},
      {.name = "inner", .torch = "inner", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul", .method = "inner"},
      {.name = "kron", .torch = "kron", .operands = {{"a"}, {"b"}}, .takes = Takes::all, .roundings = 1, .method = "kron"},
      {.name = "linear", .torch = "linear", .onnx = {"Gemm", 13}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 61, .solvers = "matmul"},
      {.name = "matmul", .torch = "matmul", .onnx = {"MatMul", 13}, .operands = {{"a"}, {"b"}}, .roundings = 300, .method = "matmul"},
      {.name = "mm", .torch = "mm", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul", .method = "mm"},
      {.name = "multi_dot", .torch = "linalg.multi_dot", .operands = {{"tensors[]"}}, .roundings = 61, .solvers = "matmul"},
      {.name = "mv", .torch = "mv", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul", .method = "mv"},
      {.name = "outer", .torch = "outer", .operands = {{"a"}, {"b"}}, .takes = Takes::all, .roundings = 1, .method = "outer"},
      {.name = "tensordot", .torch = "tensordot", .operands = {{"a"}, {"b"}}, .roundings = 61, .solvers = "matmul"},
  };
}
// clang-format on

}  // namespace clnet::ops
