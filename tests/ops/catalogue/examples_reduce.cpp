// Examples of reductions, normalization, products, convolution, pooling and the commonest losses.
#include <cmath>

#include "tests/ops/catalogue/examples.h"
#include "tests/reference/conv/conv2d.h"
#include "tests/reference/loss/cross_entropy.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/matmul/matmul.h"
#include "tests/reference/norm/batch_norm.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/pool/pool2d.h"
#include "tests/reference/reduce/reduce.h"

namespace clnet::testing {

std::vector<Example> reduce_examples() {
  const std::vector<Input> one{{{3, 40, 5}}}, few{{{3, 6, 5}}};
  return {
      {"sum", one, [](const auto& in) { return sum(in[0], {1}); },
       [](const Arrays& in) { return reference::sum(in[0], {1}, false); }},
      {"mean", one, [](const auto& in) { return mean(in[0], {1}); },
       [](const Arrays& in) { return reference::mean(in[0], {1}, false); }},
      {"prod", few, [](const auto& in) { return prod(in[0], {1}); },
       [](const Arrays& in) { return reference::prod(in[0], {1}, false); }},
      {"max", one, [](const auto& in) { return max(in[0], {1}); },
       [](const Arrays& in) { return reference::max(in[0], {1}, false); }},
      {"min", one, [](const auto& in) { return min(in[0], {1}); },
       [](const Arrays& in) { return reference::min(in[0], {1}, false); }},
      {"any", one, [](const auto& in) { return any(in[0], {1}); },
       [](const Arrays& in) {
         Array y = reference::max(in[0], {1}, false);
         for (auto& value : y.values) value = value != 0 ? 1 : 0;
         return y;
       }},
      {"all", one, [](const auto& in) { return all(in[0], {1}); },
       [](const Arrays& in) {
         Array y = reference::min(in[0], {1}, false);
         for (auto& value : y.values) value = value != 0 ? 1 : 0;
         return y;
       }},
      {"var", one, [](const auto& in) { return var(in[0], {1}); },
       [](const Arrays& in) { return reference::var(in[0], {1}, 1, false); }},
      {"argmax", one, [](const auto& in) { return argmax(in[0], 1); },
       [](const Arrays& in) { return reference::arg(in[0], 1, false, 1); }},
      {"argmin", one, [](const auto& in) { return argmin(in[0], 1); },
       [](const Arrays& in) { return reference::arg(in[0], 1, false, -1); }},
      {"softmax", one, [](const auto& in) { return softmax(in[0], 1); },
       [](const Arrays& in) { return reference::softmax(in[0], 1, false); }},
      {"log_softmax", one, [](const auto& in) { return log_softmax(in[0], 1); },
       [](const Arrays& in) { return reference::softmax(in[0], 1, true); }},
      {"layer_norm",
       {{{6, 40}}, {{40}}, {{40}}},
       [](const auto& in) { return layer_norm(in[0], 1, in[1], in[2]); },
       [](const Arrays& in) { return reference::layer_norm(in[0], 40, &in[1], &in[2], 1e-5); }},
      {"batch_norm_training",
       {{{4, 3, 10}}, {{3}}, {{3}}},
       [](const auto& in) { return batch_norm_training(in[0], in[1], in[2]).y; },
       [](const Arrays& in) { return reference::batch_norm(in[0], &in[1], &in[2], 1e-5).y; }},
      {"batch_norm_inference",
       {{{4, 3, 10}}, {{3}}, {{3}}, {{3}}, {{3}}},
       [](const auto& in) { return batch_norm_inference(in[0], in[1], in[2], in[3], in[4]); },
       [](const Arrays& in) {
         return make_array({4, 3, 10}, [&](const Coordinates& at) {
           const auto c = at[1];
           return (in[0].at({at[0], c, at[2]}) - in[1][c]) / std::sqrt(in[2][c] + 1e-5) * in[3][c] + in[4][c];
         });
       }},
      {"global_norm",
       {{{3, 40, 5}}, {{7}}},
       [](const auto& in) { return global_norm(in); },
       [](const Arrays& in) {
         Array y{Shape{}};
         for (const auto& x : in)
           for (double v : x.values) y[0] += v * v;
         y[0] = std::sqrt(y[0]);
         return y;
       }},
  };
}

std::vector<Example> product_examples() {
  return {
      {"matmul",
       {{{20, 300}}, {{300, 20}}},
       [](const auto& in) { return matmul(in[0], in[1]); },
       [](const Arrays& in) { return matmul_reference(in[0], in[1]); }},
      {"addmm",
       {{{20}}, {{5, 60}}, {{60, 20}}},
       [](const auto& in) { return addmm(in[0], in[1], in[2]); },
       [](const Arrays& in) { return matmul_reference(in[1], in[2], {}, &in[0]); }},
      {"linear",
       {{{5, 60}}, {{7, 60}}, {{7}}},
       [](const auto& in) { return linear(in[0], in[1], in[2]); },
       [](const Arrays& in) { return matmul_reference(in[0], in[1], {.transpose_b = true}, &in[2]); }},
      {"conv2d",
       {{{2, 3, 7, 7}}, {{4, 3, 3, 3}}, {{4}}},
       [](const auto& in) { return conv2d(in[0], in[1], in[2]); },
       [](const Arrays& in) { return conv2d_reference(in, {})[0]; }},
      // The bias is added to a result of its own.
      {"conv_transpose2d",
       {{{2, 3, 5, 5}}, {{3, 4, 3, 3}}, {{4}}},
       [](const auto& in) { return conv_transpose2d(in[0], in[1], in[2]); },
       [](const Arrays& in) { return conv_transpose2d_reference(in, {})[0]; }},
      {"max_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return max_pool2d(in[0], 2); },
       [](const Arrays& in) {
         return pool2d_reference(in[0], {2, 2}, {2, 2}, true);
       }},
      {"avg_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return avg_pool2d(in[0], 2); },
       [](const Arrays& in) {
         return pool2d_reference(in[0], {2, 2}, {2, 2}, false);
       }},
      {"adaptive_max_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return adaptive_max_pool2d(in[0], 3); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 3}, {.adaptive = 3}, true); }},
      {"adaptive_avg_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return adaptive_avg_pool2d(in[0], 3); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 3}, {.adaptive = 3}, false); }},
      {"global_max_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return global_max_pool2d(in[0]); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 1}, {.adaptive = 1}, true); }},
      {"global_avg_pool2d",
       {{{2, 3, 8, 8}}},
       [](const auto& in) { return global_avg_pool2d(in[0]); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 1}, {.adaptive = 1}, false); }},
      {"mse_loss",
       {{{40}}, {{40}}},
       [](const auto& in) { return mse_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double a, double b) { return (a - b) * (a - b); });
       }},
      {"l1_loss",
       {{{40}}, {{40}}},
       [](const auto& in) { return l1_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double a, double b) { return std::abs(a - b); });
       }},
      {"binary_cross_entropy_with_logits",
       {{{40}}, {{40}}},
       [](const auto& in) { return binary_cross_entropy_with_logits(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double x, double t) {
           return reference::binary_cross_entropy_with_logits(x, t);
         });
       }},
      {"cross_entropy",
       {{{8, 10}}, {{8}, 0, 9, Dtype::i32}},
       [](const auto& in) { return cross_entropy(in[0], in[1]); },
       [](const Arrays& in) { return reference::cross_entropy(in[0], in[1], std::nullopt, {}); }},
  };
}

}  // namespace clnet::testing
