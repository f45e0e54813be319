// The operations of clnet/ops/norm.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> norm_operations() {
  return {
      {.name = "batch_norm_inference", .torch = "batch_norm(training=False)", .onnx = {"BatchNormalization", 15}, .operands = {{"x"}, {"mean"}, {"var", Holds::value, {0.5, 2}}, optional("weight"), optional("bias")}, .roundings = 20},
      {.name = "batch_norm_training", .torch = "batch_norm(training=True)", .onnx = {"BatchNormalization", 15}, .operands = {{"x"}, optional("weight"), optional("bias")}, .roundings = 120, .solvers = "batch_norm"},
      {.name = "group_norm", .torch = "group_norm", .onnx = {"GroupNormalization", 21}, .operands = {{"x"}, optional("weight"), optional("bias")}, .roundings = 120},
      {.name = "instance_norm", .torch = "instance_norm", .onnx = {"InstanceNormalization", 22}, .operands = {{"x"}, optional("weight"), optional("bias")}, .roundings = 120},
      {.name = "layer_norm", .torch = "layer_norm", .onnx = {"LayerNormalization", 17}, .operands = {{"x"}, optional("weight"), optional("bias")}, .roundings = 120},
      {.name = "local_response_norm", .torch = "local_response_norm", .onnx = {"LRN", 13}, .operands = {{"x"}}, .roundings = 60},
      {.name = "log_softmax", .torch = "log_softmax", .onnx = {"LogSoftmax", 13}, .operands = {{"x"}}, .roundings = 60, .solvers = "softmax", .method = "log_softmax"},
      {.name = "rms_norm", .torch = "rms_norm", .onnx = {"RMSNormalization", 23}, .operands = {{"x"}, optional("weight")}, .roundings = 60},
      {.name = "softmax", .torch = "softmax", .onnx = {"Softmax", 13}, .operands = {{"x"}}, .roundings = 60, .method = "softmax"},
      {.name = "softmin", .torch = "softmin", .operands = {{"x"}}, .roundings = 60, .solvers = "softmax"},
  };
}
// clang-format on

}  // namespace clnet::ops
