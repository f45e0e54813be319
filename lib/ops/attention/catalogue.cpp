// The operations of clnet/ops/attention.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> attention_operations() {
  return {
      {.name = "rotary_embedding", .onnx = {"RotaryEmbedding", 23}, .operands = {{"x"}}, .roundings = 20},
      {.name = "scaled_dot_product_attention", .torch = "scaled_dot_product_attention", .onnx = {"Attention", 25}, .operands = {{"q", Holds::value, {-2, 2}}, {"k", Holds::value, {-2, 2}}, {"v"}}, .roundings = 60, .solvers = "attention"},
      {.name = "sinusoidal_positions", .gradient = Gradient::none, .roundings = 1},
  };
}
// clang-format on

}  // namespace clnet::ops
