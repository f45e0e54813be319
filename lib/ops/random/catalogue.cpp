// The operations of clnet/ops/random.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> random_operations() {
  return {
      {.name = "alpha_dropout", .torch = "alpha_dropout", .operands = {{"x"}}, .roundings = 6},
      {.name = "bernoulli", .torch = "bernoulli", .onnx = {"Bernoulli", 22}, .operands = {{"probabilities", Holds::value, {0.1, 0.9}}}, .gradient = Gradient::none},
      {.name = "dropout", .torch = "dropout", .onnx = {"Dropout", 22}, .operands = {{"x"}}},
      {.name = "dropout1d", .torch = "dropout1d", .operands = {{"x"}}, .roundings = 3},
      {.name = "dropout2d", .torch = "dropout2d", .operands = {{"x"}}, .roundings = 3},
      {.name = "dropout3d", .torch = "dropout3d", .operands = {{"x"}}, .roundings = 3},
      {.name = "exponential", .torch = "Tensor.exponential_", .gradient = Gradient::none, .roundings = 20},
      {.name = "feature_alpha_dropout", .torch = "feature_alpha_dropout", .operands = {{"x"}}, .roundings = 6},
      {.name = "gumbel_softmax", .torch = "gumbel_softmax", .operands = {{"logits", Holds::value, {-2, 2}}}, .roundings = 100},
      {.name = "multinomial", .torch = "multinomial", .onnx = {"Multinomial", 22}, .operands = {{"weights", Holds::value, {0.5, 2}}}, .gives = Gives::index, .gradient = Gradient::none},
      {.name = "normal", .torch = "normal", .gradient = Gradient::none, .roundings = 20},
      {.name = "poisson", .torch = "poisson", .operands = {{"rates", Holds::value, {0, 30}}}, .gradient = Gradient::none},
      {.name = "rand", .torch = "rand", .onnx = {"RandomUniform", 22}, .gradient = Gradient::none, .cut_off = true},
      {.name = "rand_like", .torch = "rand_like", .onnx = {"RandomUniformLike", 22}, .operands = {{"x"}}, .gradient = Gradient::none, .cut_off = true},
      {.name = "randint", .torch = "randint", .takes = Takes::integers, .gradient = Gradient::none},
      {.name = "randn", .torch = "randn", .onnx = {"RandomNormal", 22}, .gradient = Gradient::none, .roundings = 20},
      {.name = "randn_like", .torch = "randn_like", .onnx = {"RandomNormalLike", 22}, .operands = {{"x"}}, .gradient = Gradient::none, .roundings = 20},
      {.name = "randperm", .torch = "randperm", .takes = Takes::i64, .gradient = Gradient::none},
      {.name = "rrelu", .torch = "rrelu", .operands = {{"x", Holds::value, {-2, 2}}}, .roundings = 4},
      {.name = "truncated_normal", .torch = "nn.init.trunc_normal_", .gradient = Gradient::none, .roundings = 20},
  };
}
// clang-format on

}  // namespace clnet::ops
