// The operations of clnet/ops/pool.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> pool_operations() {
  return {
      {.name = "adaptive_avg_pool1d", .torch = "adaptive_avg_pool1d", .operands = {{"x"}}, .roundings = 20, .solvers = "avg_pool2d"},
      {.name = "adaptive_avg_pool2d", .torch = "adaptive_avg_pool2d", .operands = {{"x"}}, .roundings = 20, .solvers = "avg_pool2d"},
      {.name = "adaptive_avg_pool3d", .torch = "adaptive_avg_pool3d", .operands = {{"x"}}, .roundings = 20, .solvers = "avg_pool2d"},
      {.name = "adaptive_max_pool1d", .torch = "adaptive_max_pool1d", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "adaptive_max_pool1d_with_indices", .torch = "adaptive_max_pool1d(return_indices)", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "adaptive_max_pool2d", .torch = "adaptive_max_pool2d", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "adaptive_max_pool2d_with_indices", .torch = "adaptive_max_pool2d(return_indices)", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "adaptive_max_pool3d", .torch = "adaptive_max_pool3d", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "adaptive_max_pool3d_with_indices", .torch = "adaptive_max_pool3d(return_indices)", .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "avg_pool1d", .torch = "avg_pool1d", .onnx = {"AveragePool", 22}, .operands = {{"x"}}, .roundings = 12, .solvers = "avg_pool2d"},
      {.name = "avg_pool2d", .torch = "avg_pool2d", .onnx = {"AveragePool", 22}, .operands = {{"x"}}, .roundings = 6},
      {.name = "avg_pool3d", .torch = "avg_pool3d", .onnx = {"AveragePool", 22}, .operands = {{"x"}}, .roundings = 12, .solvers = "avg_pool2d"},
      {.name = "global_avg_pool1d", .torch = "adaptive_avg_pool1d(1)", .onnx = {"GlobalAveragePool", 22}, .operands = {{"x"}}, .roundings = 70, .solvers = "reduce"},
      {.name = "global_avg_pool2d", .torch = "adaptive_avg_pool2d(1)", .onnx = {"GlobalAveragePool", 22}, .operands = {{"x"}}, .roundings = 70, .solvers = "reduce"},
      {.name = "global_avg_pool3d", .torch = "adaptive_avg_pool3d(1)", .onnx = {"GlobalAveragePool", 22}, .operands = {{"x"}}, .roundings = 70, .solvers = "reduce"},
      {.name = "global_max_pool1d", .torch = "adaptive_max_pool1d(1)", .onnx = {"GlobalMaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "global_max_pool2d", .torch = "adaptive_max_pool2d(1)", .onnx = {"GlobalMaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "global_max_pool3d", .torch = "adaptive_max_pool3d(1)", .onnx = {"GlobalMaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "lp_pool1d", .torch = "lp_pool1d", .onnx = {"LpPool", 22}, .operands = {{"x"}}, .roundings = 24, .solvers = "avg_pool2d"},
      {.name = "lp_pool2d", .torch = "lp_pool2d", .onnx = {"LpPool", 22}, .operands = {{"x"}}, .roundings = 24, .solvers = "avg_pool2d"},
      {.name = "lp_pool3d", .torch = "lp_pool3d", .onnx = {"LpPool", 22}, .operands = {{"x"}}, .roundings = 24, .solvers = "avg_pool2d"},
      {.name = "max_pool1d", .torch = "max_pool1d", .onnx = {"MaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "max_pool1d_with_indices", .torch = "max_pool1d(return_indices)", .onnx = {"MaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "max_pool2d", .torch = "max_pool2d", .onnx = {"MaxPool", 22}, .operands = {{"x"}}},
      {.name = "max_pool2d_with_indices", .torch = "max_pool2d(return_indices)", .onnx = {"MaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "max_pool3d", .torch = "max_pool3d", .onnx = {"MaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "max_pool3d_with_indices", .torch = "max_pool3d(return_indices)", .onnx = {"MaxPool", 22}, .operands = {{"x"}}, .solvers = "max_pool2d"},
      {.name = "max_unpool1d", .torch = "max_unpool1d", .onnx = {"MaxUnpool", 22}, .operands = {{"x"}, {"indices", Holds::indices}}},
      {.name = "max_unpool2d", .torch = "max_unpool2d", .onnx = {"MaxUnpool", 22}, .operands = {{"x"}, {"indices", Holds::indices}}},
      {.name = "max_unpool3d", .torch = "max_unpool3d", .onnx = {"MaxUnpool", 22}, .operands = {{"x"}, {"indices", Holds::indices}}},
  };
}
// clang-format on

}  // namespace clnet::ops
