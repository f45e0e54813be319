// The dtypes of the functions that other operations make up.
#include <cmath>

#include "tests/cases/attention/attention.h"
#include "tests/cases/recurrent/recurrent.h"
#include "tests/cases/reduce/norms.h"
#include "tests/cases/shape/rearrange.h"
#include "tests/cases/shape/slice_update.h"
#include "tests/ops/dtypes.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/norm/group_norm.h"

namespace clnet::testing::dtypes {

namespace {

using Tensors = std::vector<Tensor>;

/// The mean of a loss of two tensors by element.
Entry loss(const std::string& name, double low, double high, double target_low, double target_high,
           Tensor (*function)(const Tensor&, const Tensor&), double (*formula)(double, double), double steps) {
  return {name,
          Takes::floats,
          Gives::same,
          {{{40}, low, high}, {{40}, target_low, target_high}},
          [=](const Tensors& in) { return function(in[0], in[1]); },
          [=](const Arrays& in) {
            return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                               [=](auto, double x, double t) { return formula(x, t); });
          },
          steps};
}

std::vector<Entry> elementwise() {
  using T = const Tensor&;
  const auto f = Takes::floats;
  return {
      unary(
          "log2", f, log2, [](double x) { return std::log2(x); }, 10),
      unary(
          "expm1", f, expm1, [](double x) { return std::expm1(x); }, 10),
      unary("stop_gradient", Takes::all, stop_gradient, [](double x) { return x; }),
      unary(
          "hardshrink", f, [](T x) { return hardshrink(x, 1); }, [](double x) { return x > 1 ? x : 0; }),
      unary(
          "softshrink", f, [](T x) { return softshrink(x, 1); }, [](double x) { return x > 1 ? x - 1 : 0; }, 1),
      unary(
          "tanhshrink", f, tanhshrink, [](double x) { return x - std::tanh(x); }, 14),
      unary(
          "threshold", f, [](T x) { return threshold(x, 1, 0.25); }, [](double x) { return x > 1 ? x : 0.25; }),
      {"prelu",
       f,
       Gives::same,
       {{{4, 10}, -2, 2}, {{10}, 0.1, 1}},
       [](const Tensors& in) { return prelu(in[0], in[1]); },
       [](const Arrays& in) {
         Array y = in[0];
         for (std::int64_t i = 0; i < y.numel(); ++i)
           if (y[i] < 0) y[i] *= in[1][i % 10];
         return y;
       },
       1},
      {"glu",
       f,
       Gives::same,
       {{{4, 10}, -2, 2}},
       [](const Tensors& in) { return glu(in[0]); },
       [](const Arrays& in) {
         Array y({4, 5});
         for (std::int64_t i = 0; i < y.numel(); ++i) {
           const auto at = i / 5 * 10 + i % 5;
           y[i] = in[0][at] / (1 + std::exp(-in[0][at + 5]));
         }
         return y;
       },
       14},
      binary(
          "lerp", f, [](T a, T b) { return lerp(a, b, 0.25); }, [](double a, double b) { return a + 0.25 * (b - a); }, 4),
      {"masked_fill",
       Takes::all,
       Gives::same,
       {{{5, 7}, 0.5, 2}, {{7}, 0, 1, Dtype::boolean}},
       [](const Tensors& in) { return masked_fill(in[0], in[1], 1); },
       [](const Arrays& in) {
         Array y = in[0];
         for (std::int64_t i = 0; i < y.numel(); ++i)
           if (in[1][i % 7] != 0) y[i] = 1;
         return y;
       }},
      binary("fmod", f, fmod, [](double a, double b) { return std::fmod(a, b); }),
      binary(
          "atan2", f, atan2, [](double a, double b) { return std::atan2(a, b); }, 14),
      binary(
          "hypot", f, hypot, [](double a, double b) { return std::hypot(a, b); }, 4),
      binary(
          "logaddexp", f, logaddexp, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }, 6),
      // The logarithm has the digits of f32 near 1.
      {"xlogy",
       f,
       Gives::same,
       {{{5, 1}, 0.5, 2}, {{7}, 1.5, 4}},
       [](const Tensors& in) { return xlogy(in[0], in[1]); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] * std::log(v[1]); });
       },
       6},
      {"addcmul",
       f,
       Gives::same,
       {{{5, 1}, 0.5, 2}, {{7}, 0.5, 2}, {{5, 7}, 0.5, 2}},
       [](const Tensors& in) { return addcmul(in[0], in[1], in[2], 0.5); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] + 0.5 * v[1] * v[2]; });
       },
       3},
      {"addcdiv",
       f,
       Gives::same,
       {{{5, 1}, 0.5, 2}, {{7}, 0.5, 2}, {{5, 7}, 0.5, 2}},
       [](const Tensors& in) { return addcdiv(in[0], in[1], in[2], 0.5); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] + 0.5 * v[1] / v[2]; });
       },
       5},
      {"outer",
       Takes::all,
       Gives::same,
       {{{7}, 0.5, 2}, {{5}, 0.5, 2}},
       [](const Tensors& in) { return outer(in[0], in[1]); },
       [](const Arrays& in) {
         Array y({7, 5});
         for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = in[0][i / 5] * in[1][i % 5];
         return y;
       },
       1},
  };
}

std::vector<Entry> rearranged() {
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

std::vector<Entry> normalised() {
  const auto f = Takes::floats;
  const std::vector<Input> one{{{6, 40}, 0.5, 2}}, channels{{{4, 6, 10}, 0.5, 2}, {{6}, 0.5, 2}, {{6}, 0.5, 2}};
  return {
      {"stddev", f, Gives::same, one, [](const Tensors& in) { return stddev(in[0], {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::stddev, 1); }, 60},
      {"logsumexp", f, Gives::same, one, [](const Tensors& in) { return logsumexp(in[0], {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::logsumexp, 0); }, 60},
      {"norm", f, Gives::same, one, [](const Tensors& in) { return norm(in[0], 2, {1}); },
       [](const Arrays& in) { return reduce_by(in[0], {1}, false, reference::norm, 2); }, 50},
      {"group_norm", f, Gives::same, channels, [](const Tensors& in) { return group_norm(in[0], 2, in[1], in[2]); },
       [](const Arrays& in) { return reference::group_norm(in[0], 2, &in[1], &in[2], 1e-5); }, 120},
      {"instance_norm", f, Gives::same, channels, [](const Tensors& in) { return instance_norm(in[0], in[1], in[2]); },
       [](const Arrays& in) { return reference::group_norm(in[0], 6, &in[1], &in[2], 1e-5); }, 120},
      {"rms_norm",
       f,
       Gives::same,
       {one[0], {{40}, 0.5, 2}},
       [](const Tensors& in) { return rms_norm(in[0], 1, in[1]); },
       [](const Arrays& in) { return reference::rms_norm(in[0], 40, &in[1], 1e-6); },
       60},
      {"local_response_norm",
       f,
       Gives::same,
       {channels[0]},
       [](const Tensors& in) { return local_response_norm(in[0], 3, 0.5); },
       [](const Arrays& in) { return reference::local_response_norm(in[0], 3, 0.5, 0.75, 1); },
       60},
  };
}

std::vector<Entry> losses() {
  using T = const Tensor&;
  const auto f = Takes::floats;
  return {
      loss(
          "smooth_l1_loss", 0.5, 2, 1.5, 3, [](T x, T t) { return smooth_l1_loss(x, t); },
          [](double x, double t) { return reference::smooth_l1(x - t, 1); }, 50),
      loss(
          "huber_loss", 0.5, 2, 1.5, 3, [](T x, T t) { return huber_loss(x, t); },
          [](double x, double t) { return reference::huber(x - t, 1); }, 50),
      loss(
          "binary_cross_entropy", 0.1, 0.9, 0, 1, [](T x, T t) { return binary_cross_entropy(x, t); },
          [](double x, double t) { return reference::binary_cross_entropy(x, t); }, 60),
      loss(
          "sigmoid_focal_loss", -2, 2, 0, 1, [](T x, T t) { return sigmoid_focal_loss(x, t); },
          [](double x, double t) { return reference::focal(x, t, 0.25, 2); }, 100),
      loss(
          "kl_div", -3, -1, 0.5, 1, [](T x, T t) { return kl_div(x, t); },
          [](double x, double t) { return reference::kl_div(x, t); }, 60),
      loss(
          "poisson_nll_loss", -1, 0.5, 0.1, 1, [](T x, T t) { return poisson_nll_loss(x, t); },
          [](double x, double t) { return reference::poisson_nll(x, t, true, false); }, 60),
      {"gaussian_nll_loss",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 3, 5}, {{40}, 0.5, 2}},
       [](const Tensors& in) { return gaussian_nll_loss(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [&](auto i, double x, double t) {
           return (std::log(in[2][i]) + (x - t) * (x - t) / in[2][i]) / 2;
         });
       },
       70},
      loss(
          "hinge_embedding_loss", 0.25, 0.75, 0.5, 2, [](T x, T t) { return hinge_embedding_loss(x, sign(t)); },
          [](double x, double) { return x; }, 46),
      {"margin_ranking_loss",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 0.5, 2}, {{40}, 0.5, 2}},
       [](const Tensors& in) { return margin_ranking_loss(in[0], in[1], sign(in[2]), 2); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double a, double b) { return 2 - (a - b); });
       },
       50},
      {"cosine_embedding_loss",
       f,
       Gives::same,
       {{{6, 10}, -2, 2}, {{6, 10}, -2, 2}, {{6}, 0.5, 2}},
       [](const Tensors& in) { return cosine_embedding_loss(in[0], in[1], sign(in[2])); },
       [](const Arrays& in) {
         auto losses = reference::cosines(in[0], in[1]);
         for (auto& value : losses.values) value = 1 - value;
         return reference::reduced(losses, Reduction::mean);
       },
       80},
      {"triplet_margin_loss",
       f,
       Gives::same,
       {{{6, 10}, 0.5, 2}, {{6, 10}, 3, 5}, {{6, 10}, 0.5, 2}},
       [](const Tensors& in) { return triplet_margin_loss(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         auto near = reference::distances(in[0], in[1], 2, 1e-6);
         const auto far = reference::distances(in[0], in[2], 2, 1e-6);
         for (std::int64_t i = 0; i < near.numel(); ++i) near[i] += 1 - far[i];
         return reference::reduced(near, Reduction::mean);
       },
       80},
      {"nll_loss",
       f,
       Gives::same,
       {{{8, 10}, 0.5, 2}, {{8}, 0, 9, Dtype::i32}},
       [](const Tensors& in) { return nll_loss(in[0], in[1]); },
       [](const Arrays& in) { return reference::nll(in[0], in[1], nullptr, -100, Reduction::mean); },
       20},
  };
}

std::vector<Entry> placed() {
  return {
      {"slice_update",
       Takes::all,
       Gives::same,
       {{{4, 5}, 0.5, 2}, {{2, 5}, 0.5, 2}},
       [](const Tensors& in) { return slice_update(in[0], 0, 1, in[1]); },
       [](const Arrays& in) { return reference::slice_update(in[0], 0, 1, in[1]); }},
      {"narrow",
       Takes::all,
       Gives::same,
       {{{4, 5}, 0.5, 2}},
       [](const Tensors& in) { return narrow(in[0], 1, 2, 3); },
       [](const Arrays& in) { return reference::narrow(in[0], 1, 2, 3); }},
  };
}

std::vector<Entry> attention() {
  const auto f = Takes::floats;
  return {
      {"scaled_dot_product_attention",
       f,
       Gives::same,
       {{{2, 4, 5, 16}, -2, 2}, {{2, 2, 9, 16}, -2, 2}, {{2, 2, 9, 8}, 0.5, 2}},
       [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
       [](const Arrays& in) { return reference::attention(in[0], in[1], in[2], {.scale = 0.25}); },
       60},
      {"rotary_embedding",
       f,
       Gives::same,
       {{{2, 4, 8}, 0.5, 2}},
       [](const Tensors& in) { return rotary_embedding(in[0], 1); },
       [](const Arrays& in) {
         return reference::rotary_embedding(in[0], {1, 2, 3, 4}, 10000, false);
       },
       20},
      {"sinusoidal_positions",
       f,
       Gives::same,
       {{{4}, 0.5, 2}},
       [](const Tensors& in) { return sinusoidal_positions(3, 4, in[0].dtype()); },
       [](const Arrays&) {
         Array y({3, 4});
         for (std::int64_t i = 0; i < y.numel(); ++i) {
           const double angle = static_cast<double>(i / 4) / (i % 4 < 2 ? 1 : 100);
           y[i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
         }
         return y;
       },
       1},
  };
}

/// h of a layer's last step, or of a single step.
std::vector<Entry> recurrent() {
  std::vector<Entry> entries;
  for (bool single : {false, true})
    for (const std::string cell : {"rnn", "lstm", "gru"}) {
      const auto example = recurrent_case(cell == "rnn" ? "tanh" : cell, {single ? 1 : 4, 5, 6, 9}, {.single = single});
      const std::size_t h = single ? 0 : 1;
      entries.push_back({cell + (single ? "_cell" : "_layer"), Takes::floats, Gives::same, example.inputs,
                         [=](const Tensors& in) { return example.run(in)[h]; },
                         [=](const Arrays& in) { return example.reference(in)[h]; }, single ? 40.0 : 100.0});
    }
  return entries;
}

}  // namespace

Entry arrangement(const std::string& name, const Shape& from, const Shape& to, std::function<Tensor(const Tensor&)> function,
                  std::function<std::optional<Coordinates>(const Coordinates&)> source) {
  const auto example = arranged(name, from, to, std::move(function), std::move(source));
  return {name,
          Takes::all,
          Gives::same,
          {{from, 0.5, 2}},
          [=](const Tensors& in) { return example.run(in)[0]; },
          [=](const Arrays& in) { return example.reference(in)[0]; }};
}

std::vector<Entry> composed_entries() {
  auto entries = elementwise();
  for (auto more : {rearranged(), normalised(), losses(), attention(), placed(), recurrent()})
    entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

}  // namespace clnet::testing::dtypes
