// Examples of the functions that other operations make up.
#include <algorithm>
#include <cmath>

#include "tests/cases/attention/attention.h"
#include "tests/cases/recurrent/recurrent.h"
#include "tests/cases/reduce/norms.h"
#include "tests/cases/shape/rearrange.h"
#include "tests/cases/shape/slice_update.h"
#include "tests/ops/catalogue/examples.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/norm/group_norm.h"

namespace clnet::testing {

namespace {

using Tensors = std::vector<Tensor>;

/// The mean of a loss of two tensors by element.
Example loss(const std::string& name, Tensor (*function)(const Tensor&, const Tensor&), double (*formula)(double, double)) {
  return {name,
          {{{40}}, {{40}}},
          [=](const Tensors& in) { return function(in[0], in[1]); },
          [=](const Arrays& in) {
            return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                               [=](auto, double x, double t) { return formula(x, t); });
          }};
}

std::vector<Example> elementwise() {
  using T = const Tensor&;
  return {
      unary(
          "threshold", [](T x) { return threshold(x, 1, 0.25); }, [](double x) { return x > 1 ? x : 0.25; }),
      {"prelu",
       {{{4, 10}}, {{10}}},
       [](const Tensors& in) { return prelu(in[0], in[1]); },
       [](const Arrays& in) {
         Array y = in[0];
         for (std::int64_t i = 0; i < y.numel(); ++i)
           if (y[i] < 0) y[i] *= in[1][i % 10];
         return y;
       }},
      {"glu",
       {{{4, 10}}},
       [](const Tensors& in) { return glu(in[0]); },
       [](const Arrays& in) {
         Array y({4, 5});
         for (std::int64_t i = 0; i < y.numel(); ++i) {
           const auto at = i / 5 * 10 + i % 5;
           y[i] = in[0][at] / (1 + std::exp(-in[0][at + 5]));
         }
         return y;
       }},
      binary(
          "lerp", [](T a, T b) { return lerp(a, b, 0.25); }, [](double a, double b) { return a + 0.25 * (b - a); }),
      {"masked_fill",
       {{{5, 7}}, {{7}, 0, 1, Dtype::boolean}},
       [](const Tensors& in) { return masked_fill(in[0], in[1], 1); },
       [](const Arrays& in) {
         Array y = in[0];
         for (std::int64_t i = 0; i < y.numel(); ++i)
           if (in[1][i % 7] != 0) y[i] = 1;
         return y;
       }},
      {"addcmul",
       {{{5, 1}}, {{7}}, {{5, 7}}},
       [](const Tensors& in) { return addcmul(in[0], in[1], in[2], 0.5); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] + 0.5 * v[1] * v[2]; });
       }},
      {"addcdiv",
       {{{5, 1}}, {{7}}, {{5, 7}}},
       [](const Tensors& in) { return addcdiv(in[0], in[1], in[2], 0.5); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] + 0.5 * v[1] / v[2]; });
       }},
      {"outer",
       {{{7}}, {{5}}},
       [](const Tensors& in) { return outer(in[0], in[1]); },
       [](const Arrays& in) {
         Array y({7, 5});
         for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = in[0][i / 5] * in[1][i % 5];
         return y;
       }},
  };
}

std::vector<Example> rearranged() {
  const Shape x{3, 4, 5};
  const auto turned = [](const Coordinates& at) { return std::optional(Coordinates{at[0], 3 - at[1], at[2]}); };
  const auto rolled = [](const Coordinates& at) { return std::optional(Coordinates{at[0], at[1], (at[2] + 4) % 5}); };
  const auto repeated = [](const Coordinates& at) { return std::optional(Coordinates{at[0], at[1] % 4, at[2]}); };
  const auto below = [](const Coordinates& at) { return at[2] <= at[1] ? std::optional(at) : std::nullopt; };
  const auto above = [](const Coordinates& at) { return at[2] >= at[1] ? std::optional(at) : std::nullopt; };
  const auto shuffled = [](const Coordinates& at) {
    return std::optional(Coordinates{at[0] * 4 + at[1] % 2 * 2 + at[2] % 2, at[1] / 2, at[2] / 2});
  };
  const auto unshuffled = [](const Coordinates& at) {
    return std::optional(Coordinates{at[0] / 4, at[1] * 2 + at[0] % 4 / 2, at[2] * 2 + at[0] % 2});
  };
  return {arrangement(
              "flip", x, x, [](const Tensor& t) { return flip(t, {1}); }, turned),
          arrangement(
              "roll", x, x, [](const Tensor& t) { return roll(t, {1}, {2}); }, rolled),
          arrangement(
              "tile", x, {3, 8, 5},
              [](const Tensor& t) {
                return tile(t, {2, 1});
              },
              repeated),
          arrangement(
              "tril", x, x, [](const Tensor& t) { return tril(t); }, below),
          arrangement(
              "triu", x, x, [](const Tensor& t) { return triu(t); }, above),
          arrangement(
              "pixel_shuffle", {8, 2, 3}, {2, 4, 6}, [](const Tensor& t) { return pixel_shuffle(t, 2); }, shuffled),
          arrangement(
              "pixel_unshuffle", {2, 4, 6}, {8, 2, 3}, [](const Tensor& t) { return pixel_unshuffle(t, 2); }, unshuffled)};
}

std::vector<Example> normalised() {
  const std::vector<Input> one{{{6, 40}}}, channels{{{4, 6, 10}}, {{6}}, {{6}}};
  return {
      {"stddev", one, [](const Tensors& in) { return stddev(in[0], {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::stddev, 1); }},
      {"logsumexp", one, [](const Tensors& in) { return logsumexp(in[0], {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::logsumexp, 0); }},
      {"norm", one, [](const Tensors& in) { return norm(in[0], 2, {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::norm, 2); }},
      {"group_norm", channels, [](const Tensors& in) { return group_norm(in[0], 2, in[1], in[2]); },
       [](const Arrays& in) { return reference::group_norm(in[0], 2, &in[1], &in[2], 1e-5); }},
      {"instance_norm", channels, [](const Tensors& in) { return instance_norm(in[0], in[1], in[2]); },
       [](const Arrays& in) { return reference::group_norm(in[0], 6, &in[1], &in[2], 1e-5); }},
      {"rms_norm",
       {one[0], {{40}}},
       [](const Tensors& in) { return rms_norm(in[0], 1, in[1]); },
       [](const Arrays& in) { return reference::rms_norm(in[0], 40, &in[1], 1e-6); }},
      {"local_response_norm",
       {channels[0]},
       [](const Tensors& in) { return local_response_norm(in[0], 3, 0.5); },
       [](const Arrays& in) { return reference::local_response_norm(in[0], 3, 0.5, 0.75, 1); }},
  };
}

std::vector<Example> losses() {
  using T = const Tensor&;
  return {
      loss(
          "smooth_l1_loss", [](T x, T t) { return smooth_l1_loss(x, t); },
          [](double x, double t) { return reference::smooth_l1(x - t, 1); }),
      loss(
          "huber_loss", [](T x, T t) { return huber_loss(x, t); }, [](double x, double t) { return reference::huber(x - t, 1); }),
      loss(
          "binary_cross_entropy", [](T x, T t) { return binary_cross_entropy(x, t); },
          [](double x, double t) { return reference::binary_cross_entropy(x, t); }),
      loss(
          "sigmoid_focal_loss", [](T x, T t) { return sigmoid_focal_loss(x, t); },
          [](double x, double t) { return reference::focal(x, t, 0.25, 2); }),
      loss(
          "kl_div", [](T x, T t) { return kl_div(x, t); }, [](double x, double t) { return reference::kl_div(x, t); }),
      loss(
          "poisson_nll_loss", [](T x, T t) { return poisson_nll_loss(x, t); },
          [](double x, double t) { return reference::poisson_nll(x, t, true, false); }),
      {"gaussian_nll_loss",
       {{{40}}, {{40}}, {{40}}},
       [](const Tensors& in) { return gaussian_nll_loss(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [&](auto i, double x, double t) {
           return (std::log(in[2][i]) + (x - t) * (x - t) / in[2][i]) / 2;
         });
       }},
      loss(
          "hinge_embedding_loss", [](T x, T t) { return hinge_embedding_loss(x, t); }, [](double x, double) { return x; }),
      {"margin_ranking_loss",
       {{{40}}, {{40}}, {{40}}},
       [](const Tensors& in) { return margin_ranking_loss(in[0], in[1], in[2], 2); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double a, double b) { return 2 - (a - b); });
       }},
      {"cosine_embedding_loss",
       {{{6, 10}}, {{6, 10}}, {{6}}},
       [](const Tensors& in) { return cosine_embedding_loss(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         auto losses = reference::cosines(in[0], in[1]);
         for (auto& value : losses.values) value = 1 - value;
         return reference::reduced(losses, Reduction::mean);
       }},
      {"triplet_margin_loss",
       {{{6, 10}}, {{6, 10}}, {{6, 10}}},
       [](const Tensors& in) { return triplet_margin_loss(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         auto near = reference::distances(in[0], in[1], 2, 1e-6);
         const auto far = reference::distances(in[0], in[2], 2, 1e-6);
         for (std::int64_t i = 0; i < near.numel(); ++i) near[i] += 1 - far[i];
         return reference::reduced(near, Reduction::mean);
       }},
      {"nll_loss",
       {{{8, 10}}, {{8}, 0, 9, Dtype::i32}},
       [](const Tensors& in) { return nll_loss(in[0], in[1]); },
       [](const Arrays& in) { return reference::nll(in[0], in[1], nullptr, -100, Reduction::mean); }},
  };
}

std::vector<Example> placed() {
  return {
      {"slice_update",
       {{{4, 5}}, {{2, 5}}},
       [](const Tensors& in) { return slice_update(in[0], 0, 1, in[1]); },
       [](const Arrays& in) { return reference::slice_update(in[0], 0, 1, in[1]); }},
      {"narrow",
       {{{4, 5}}},
       [](const Tensors& in) { return narrow(in[0], 1, 2, 3); },
       [](const Arrays& in) { return reference::narrow(in[0], 1, 2, 3); }},
  };
}

std::vector<Example> attention() {
  return {
      {"scaled_dot_product_attention",
       {{{2, 4, 5, 16}}, {{2, 2, 9, 16}}, {{2, 2, 9, 8}}},
       [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
       [](const Arrays& in) { return reference::attention(in[0], in[1], in[2], {.scale = 0.25}); }},
      {"rotary_embedding",
       {{{2, 4, 8}}},
       [](const Tensors& in) { return rotary_embedding(in[0], 1); },
       [](const Arrays& in) {
         return reference::rotary_embedding(in[0], {1, 2, 3, 4}, 10000, false);
       }},
      {"sinusoidal_positions",
       {{{4}}},
       [](const Tensors& in) { return sinusoidal_positions(3, 4, in[0].dtype()); },
       [](const Arrays&) {
         Array y({3, 4});
         for (std::int64_t i = 0; i < y.numel(); ++i) {
           const double angle = static_cast<double>(i / 4) / (i % 4 < 2 ? 1 : 100);
           y[i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
         }
         return y;
       }},
  };
}

/// h of a layer's last step, or of a single step. The states come behind the weights, as operands that may be left out.
std::vector<Example> recurrent() {
  std::vector<Example> entries;
  for (bool single : {false, true})
    for (const std::string cell : {"rnn", "lstm", "gru"}) {
      const auto example = recurrent_case(cell == "rnn" ? "tanh" : cell, {single ? 1 : 4, 5, 6, 9}, {.single = single});
      const std::size_t h = single ? 0 : 1, states = cell == "lstm" ? 2 : 1;
      // From the order of the case, x, states, two weights and biases.
      const auto moved = [=](auto values, bool back) {
        const auto first = values.begin() + 1, middle = first + static_cast<std::ptrdiff_t>(back ? 2 : states);
        std::rotate(first, middle, first + static_cast<std::ptrdiff_t>(states + 2));
        return values;
      };
      entries.push_back({cell + (single ? "_cell" : "_layer"), moved(example.inputs, false),
                         [=](const Tensors& in) { return example.run(moved(in, true))[h]; },
                         [=](const Arrays& in) { return example.reference(moved(in, true))[h]; }});
    }
  return entries;
}

}  // namespace

std::vector<Example> composed_examples() {
  auto entries = elementwise();
  for (auto more : {rearranged(), normalised(), losses(), attention(), placed(), recurrent()})
    entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

}  // namespace clnet::testing
