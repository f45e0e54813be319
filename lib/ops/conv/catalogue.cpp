// The operations of clnet/ops/conv.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> conv_operations() {
  return {
      {.name = "conv1d", .torch = "conv1d", .onnx = {"Conv", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100, .solvers = "conv2d"},
      {.name = "conv2d", .torch = "conv2d", .onnx = {"Conv", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100},
      {.name = "conv3d", .torch = "conv3d", .onnx = {"Conv", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100, .solvers = "conv2d"},
      {.name = "conv_transpose1d", .torch = "conv_transpose1d", .onnx = {"ConvTranspose", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100, .dtype_roundings = 2, .solvers = "conv2d_backward_data"},
      {.name = "conv_transpose2d", .torch = "conv_transpose2d", .onnx = {"ConvTranspose", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100, .dtype_roundings = 2, .solvers = "conv2d_backward_data"},
      {.name = "conv_transpose3d", .torch = "conv_transpose3d", .onnx = {"ConvTranspose", 22}, .operands = {{"x"}, {"weight"}, optional("bias")}, .roundings = 100, .dtype_roundings = 3, .solvers = "conv2d_backward_data"},
  };
}
// clang-format on

}  // namespace clnet::ops
