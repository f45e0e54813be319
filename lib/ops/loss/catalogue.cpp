// The operations of clnet/ops/loss.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> loss_operations() {
  return {
      {.name = "binary_cross_entropy", .torch = "binary_cross_entropy", .operands = {{"input", Holds::value, {0.1, 0.9}}, {"target", Holds::value, {0, 1}}, optional("weight")}, .roundings = 60},
      {.name = "binary_cross_entropy_with_logits", .torch = "binary_cross_entropy_with_logits", .operands = {{"logits"}, {"target", Holds::value, {0, 0.5}}, optional("weight"), optional("pos_weight")}, .roundings = 60},
      {.name = "cosine_embedding_loss", .torch = "cosine_embedding_loss", .operands = {{"a", Holds::value, {-2, 2}}, {"b", Holds::value, {-2, 2}}, {"target", Holds::value, {1, 1}}}, .roundings = 80},
      {.name = "cross_entropy", .torch = "cross_entropy", .onnx = {"SoftmaxCrossEntropyLoss", 13}, .operands = {{"logits"}, {"targets", Holds::indices}}, .roundings = 40},
      {.name = "ctc_loss", .torch = "ctc_loss", .operands = {{"log_probs", Holds::value, {-3, -0.5}}, {"targets", Holds::indices}, {"input_lengths", Holds::indices}, {"target_lengths", Holds::indices}}, .roundings = 100},
      {.name = "gaussian_nll_loss", .torch = "gaussian_nll_loss", .operands = {{"input"}, {"target", Holds::value, {3, 5}}, {"var", Holds::value, {0.5, 2}}}, .roundings = 70},
      {.name = "hinge_embedding_loss", .torch = "hinge_embedding_loss", .operands = {{"input", Holds::value, {0.25, 0.75}}, {"target", Holds::value, {1, 1}}}, .roundings = 46},
      {.name = "huber_loss", .torch = "huber_loss", .operands = {{"input"}, {"target", Holds::value, {1.5, 3}}}, .roundings = 50},
      {.name = "kl_div", .torch = "kl_div", .operands = {{"input", Holds::value, {-3, -1}}, {"target", Holds::value, {0.5, 1}}}, .roundings = 60},
      {.name = "l1_loss", .torch = "l1_loss", .operands = {{"input"}, {"target", Holds::value, {3, 5}}}, .roundings = 46},
      {.name = "margin_ranking_loss", .torch = "margin_ranking_loss", .operands = {{"a"}, {"b"}, {"target", Holds::value, {1, 1}}}, .roundings = 50},
      {.name = "mse_loss", .torch = "mse_loss", .operands = {{"input"}, {"target", Holds::value, {3, 5}}}, .roundings = 46},
      {.name = "multi_margin_loss", .torch = "multi_margin_loss", .operands = {{"input", Holds::value, {-2, 2}}, {"target", Holds::indices}}, .roundings = 60},
      {.name = "multilabel_margin_loss", .torch = "multilabel_margin_loss", .operands = {{"input", Holds::value, {-2, 2}}, {"target", Holds::indices}}, .roundings = 60},
      {.name = "multilabel_soft_margin_loss", .torch = "multilabel_soft_margin_loss", .operands = {{"input", Holds::value, {-2, 2}}, {"target", Holds::value, {0, 1}}, optional("weight")}, .roundings = 70},
      {.name = "nll_loss", .torch = "nll_loss", .onnx = {"NegativeLogLikelihoodLoss", 22}, .operands = {{"log_probabilities"}, {"targets", Holds::indices}}, .roundings = 20},
      {.name = "poisson_nll_loss", .torch = "poisson_nll_loss", .operands = {{"input", Holds::value, {-1, 0.5}}, {"target", Holds::value, {0.1, 1}}}, .roundings = 60},
      {.name = "sigmoid_focal_loss", .torch = "torchvision.ops.sigmoid_focal_loss", .operands = {{"logits", Holds::value, {-2, 2}}, {"target", Holds::value, {0, 1}}}, .roundings = 100},
      {.name = "smooth_l1_loss", .torch = "smooth_l1_loss", .operands = {{"input"}, {"target", Holds::value, {1.5, 3}}}, .roundings = 50},
      {.name = "soft_margin_loss", .torch = "soft_margin_loss", .operands = {{"input", Holds::value, {-2, 2}}, {"target", Holds::value, {1, 1}}}, .roundings = 60},
      {.name = "triplet_margin_loss", .torch = "triplet_margin_loss", .operands = {{"anchor"}, {"positive", Holds::value, {3, 5}}, {"negative"}}, .roundings = 80},
  };
}
// clang-format on

}  // namespace clnet::ops
