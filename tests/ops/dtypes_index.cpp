// The dtypes of what chooses, orders, draws and resizes.
#include <cmath>

#include "tests/cases/shape/diagonal.h"
#include "tests/ops/dtypes.h"
#include "tests/reference/image/interpolate.h"
#include "tests/reference/index/index.h"
#include "tests/reference/index/scatter.h"
#include "tests/reference/index/sort.h"
#include "tests/reference/loss/ctc.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/matmul/einsum.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/random/philox.h"
#include "tests/reference/reduce/cumprod.h"
#include "tests/reference/reduce/cumsum.h"
#include "tests/reference/shape/unfold.h"

namespace clnet::testing::dtypes {

namespace {

using Tensors = std::vector<Tensor>;
using T = const Tensor&;

constexpr std::uint64_t seed = 7;
double draw(std::int64_t i, std::uint64_t offset = 0) {
  return reference::philox_uniform(seed, offset, static_cast<std::uint64_t>(i));
}
/// Calls after manual_seed(seed).
auto seeded(const std::function<Tensor(const Tensors&)>& function) {
  return [=](const Tensors& in) {
    manual_seed(seed);
    return function(in);
  };
}

std::vector<Entry> chosen() {
  const auto f = Takes::floats;
  const std::vector<Input> one{{{3, 8, 5}, 0.5, 2}};
  const std::vector<Input> moved{{{6, 4}, 0.5, 2}, {{4, 4}, 0, 5, Dtype::i32}, {{4, 4}, 0.5, 2}};
  const auto sorted = [](const Arrays& in) { return reference::argsort(in[0], 1, true); };
  return {
      {"einsum",
       f,
       Gives::same,
       {{{6, 40}, 0.5, 2}, {{40, 5}, 0.5, 2}},
       [](const Tensors& in) { return einsum("ij,jk->ki", in); },
       [](const Arrays& in) {
         return reference::einsum({"ij", "jk"}, "ki", in);
       },
       50},
      {"interpolate",
       f,
       Gives::same,
       {{{2, 3, 5, 4}, 0.5, 2}},
       [](const Tensors& in) {
         return interpolate(in[0], {.size = {9, 6}, .mode = Interpolation::bilinear});
       },
       [](const Arrays& in) {
         return reference::interpolate(in[0], {.mode = Interpolation::bilinear}, {9, 6}, {5.0 / 9, 4.0 / 6});
       },
       8},
      {"cumsum", Takes::all, Gives::sums, one, [](const Tensors& in) { return cumsum(in[0], 1); },
       [](const Arrays& in) { return reference::cumsum(in[0], 1); }, 10},
      {"cumprod", Takes::all, Gives::sums, one, [](const Tensors& in) { return cumprod(in[0], 1); },
       [](const Arrays& in) { return reference::cumprod(in[0], 1); }, 10},
      {"unfold",
       f,
       Gives::same,
       {{{2, 3, 5, 6}, 0.5, 2}},
       [](const Tensors& in) {
         return unfold(in[0], {2, 3}, {.padding = 1});
       },
       [](const Arrays& in) {
         return reference::unfold(in[0], {2, 3}, {.padding = 1}, {2, 18, 36});
       }},
      {"fold",
       f,
       Gives::same,
       {{{2, 18, 36}, 0.5, 2}},
       [](const Tensors& in) {
         return fold(in[0], {5, 6}, {2, 3}, {.padding = 1});
       },
       [](const Arrays& in) {
         return reference::fold(in[0], {2, 3}, {.padding = 1}, {2, 3, 5, 6});
       },
       6},
      {"sort", Takes::all, Gives::same, one, [](const Tensors& in) { return sort(in[0], 1, true).values; },
       [=](const Arrays& in) { return reference::ordered(in[0], 1, sorted(in), 8); }},
      {"argsort", Takes::all, Gives::index, one, [](const Tensors& in) { return argsort(in[0], 1, true); }, sorted},
      {"topk", Takes::all, Gives::same, one, [](const Tensors& in) { return topk(in[0], 3, 1).values; },
       [=](const Arrays& in) { return reference::ordered(in[0], 1, sorted(in), 3); }},
      {"scatter", Takes::all, Gives::same, moved, [](const Tensors& in) { return scatter(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) { return reference::scatter(in[0], 0, in[1], in[2], false); }},
      {"scatter_add", Takes::numbers, Gives::same, moved, [](const Tensors& in) { return scatter_add(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) { return reference::scatter(in[0], 0, in[1], in[2], true); }, 5},
      {"scatter_reduce", Takes::numbers, Gives::same, moved,
       [](const Tensors& in) { return scatter_reduce(in[0], 0, in[1], in[2], ScatterReduction::amin); },
       [](const Arrays& in) { return reference::scatter_reduce(in[0], 0, in[1], in[2], reference::Fold::amin, true); }},
      {"index_add",
       Takes::numbers,
       Gives::same,
       {{{6, 4}, 0.5, 2}, {{4}, 0, 5, Dtype::i32}, {{4, 4}, 0.5, 2}},
       [](const Tensors& in) { return index_add(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) {
         auto y = reference::index_add(in[2], 0, in[1], false, {6, 4});
         for (std::int64_t i = 0; i < y.numel(); ++i) y[i] += in[0][i];
         return y;
       },
       5},
      {"softmin", f, Gives::same, one, [](const Tensors& in) { return softmin(in[0], 1); },
       [](const Arrays& in) {
         Array x = in[0];
         for (auto& value : x.values) value = -value;
         return reference::softmax(x, 1, false);
       },
       60},
  };
}

std::vector<Entry> more_rearranged() {
  return {arrangement(
              "repeat", {3, 4}, {6, 4},
              [](T t) {
                return repeat(t, {2, 1});
              },
              [](const Coordinates& at) {
                return std::optional(Coordinates{at[0] % 3, at[1]});
              }),
          arrangement(
              "repeat_interleave", {3, 4}, {6, 4}, [](T t) { return repeat_interleave(t, 2, 0); },
              [](const Coordinates& at) {
                return std::optional(Coordinates{at[0] / 2, at[1]});
              }),
          arrangement(
              "diagonal", {3, 4}, {3}, [](T t) { return diagonal(t, 1); },
              [](const Coordinates& at) {
                return std::optional(Coordinates{at[0], at[0] + 1});
              }),
          arrangement(
              "diag", {3}, {4, 4}, [](T t) { return diag(t, 1); },
              [](const Coordinates& at) { return at[1] == at[0] + 1 ? std::optional(Coordinates{at[0]}) : std::nullopt; }),
          {"trace",
           Takes::all,
           Gives::sums,
           {{{3, 4}, 0.5, 2}},
           [](const Tensors& in) { return trace(in[0]); },
           [](const Arrays& in) { return Array({}, {in[0][0] + in[0][5] + in[0][10]}); },
           4},
          {"eye",
           Takes::all,
           Gives::same,
           {{{3}, 0.5, 2}},
           [](const Tensors& in) { return eye(2, 3, in[0].dtype()); },
           [](const Arrays&) {
             return Array({2, 3}, {1, 0, 0, 0, 1, 0});
           }},
          {"linspace",
           Takes::floats,
           Gives::same,
           {{{3}, 0.5, 2}},
           [](const Tensors& in) { return linspace(-1, 2, 5, in[0].dtype()); },
           [](const Arrays&) {
             return Array({5}, {-1, -0.25, 0.5, 1.25, 2});
           },
           2}};
}

std::vector<Entry> drawn() {
  const auto f = Takes::floats;
  const std::vector<Input> one{{{40}, 0.5, 2}}, channels{{{2, 3, 5}, 0.5, 2}};
  const auto by_element = [](const std::function<double(double, std::int64_t)>& formula) {
    return [=](const Arrays& in) {
      Array y = in[0];
      for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = formula(y[i], i);
      return y;
    };
  };
  // SELU's limit for minus infinity takes a dropped element's place.
  const auto alpha = [](double x, double drawn) {
    constexpr double limit = -1.7580993408473766, p = 0.25;
    const double scale = 1 / std::sqrt((limit * limit * p + 1) * (1 - p));
    return (drawn < p ? limit : x) * scale - scale * limit * p;
  };
  const auto by_channel = [](std::int64_t channel_size) {
    return [=](double x, std::int64_t i) { return draw(i / channel_size) < 0.25 ? 0 : x / 0.75; };
  };
  const auto noise = [](std::int64_t i) { return -std::log(-std::log(std::max(draw(i), 0x1p-25))); };
  return {
      {"bernoulli",
       f,
       Gives::same,
       {{{40}, 0.1, 0.9}},
       seeded([](const Tensors& in) { return bernoulli(in[0]); }),
       by_element([](double p, auto i) { return draw(i) < p ? 1.0 : 0.0; })},
      {"multinomial",
       f,
       Gives::index,
       {{{6}, 0.5, 2}},
       seeded([](const Tensors& in) { return multinomial(in[0], 9, true); }),
       [](const Arrays& in) {
         const auto bounds = reference::cumsum(in[0], 0);
         Array y({9});
         for (std::int64_t i = 0; i < 9; ++i)
           for (std::int64_t k = 0; k < 5; ++k) y[i] += bounds[k] <= draw(i) * bounds[5];
         return y;
       }},
      {"dropout1d", f, Gives::same, channels, seeded([](const Tensors& in) { return dropout1d(in[0], 0.25); }),
       by_element(by_channel(5)), 3},
      {"dropout2d",
       f,
       Gives::same,
       {{{2, 3, 4, 5}, 0.5, 2}},
       seeded([](const Tensors& in) { return dropout2d(in[0], 0.25); }),
       by_element(by_channel(20)),
       3},
      {"dropout3d",
       f,
       Gives::same,
       {{{3, 2, 4, 5}, 0.5, 2}},
       seeded([](const Tensors& in) { return dropout3d(in[0], 0.25); }),
       by_element(by_channel(40)),
       3},
      {"alpha_dropout", f, Gives::same, one, seeded([](const Tensors& in) { return alpha_dropout(in[0], 0.25); }),
       by_element([=](double x, auto i) { return alpha(x, draw(i)); }), 6},
      {"feature_alpha_dropout", f, Gives::same, channels,
       seeded([](const Tensors& in) { return feature_alpha_dropout(in[0], 0.25); }),
       by_element([=](double x, auto i) { return alpha(x, draw(i / 5)); }), 6},
      {"rrelu",
       f,
       Gives::same,
       {{{40}, -2, 2}},
       seeded([](const Tensors& in) { return rrelu(in[0], 0.125, 0.5, true); }),
       by_element([](double x, auto i) { return x < 0 ? x * (0.125 + 0.375 * draw(i)) : x; }),
       4},
      {"gumbel_softmax",
       f,
       Gives::same,
       {{{4, 6}, -2, 2}},
       seeded([](const Tensors& in) { return gumbel_softmax(in[0], 2); }),
       [=](const Arrays& in) {
         Array x = in[0];
         for (std::int64_t i = 0; i < x.numel(); ++i) x[i] = (x[i] + noise(i)) / 2;
         return reference::softmax(x, 1, false);
       },
       100},
  };
}

std::vector<Entry> more_losses() {
  const auto f = Takes::floats;
  const auto lengths = [](std::vector<std::int64_t> values) { return Tensor::from(values, {2}); };
  return {
      {"ctc_loss",
       f,
       Gives::same,
       {{{6, 2, 5}, -3, -0.5}, {{2, 3}, 1, 4, Dtype::i32}},
       [=](const Tensors& in) {
         return ctc_loss(in[0], in[1], lengths({6, 6}), lengths({3, 2}), {.reduction = Reduction::sum});
       },
       [](const Arrays& in) {
         const auto all = reference::ctc(in[0], in[1], Array({2}, {6, 6}), Array({2}, {3, 2}), 0);
         return Array({}, {all[0] + all[1]});
       },
       100},
      {"soft_margin_loss",
       f,
       Gives::same,
       {{{40}, -2, 2}, {{40}, 0.5, 2}},
       [](const Tensors& in) { return soft_margin_loss(in[0], sign(in[1])); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double x, double) { return std::log1p(std::exp(-x)); });
       },
       60},
      {"multi_margin_loss",
       f,
       Gives::same,
       {{{6, 5}, -2, 2}, {{6}, 0, 4, Dtype::i32}},
       [](const Tensors& in) { return multi_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         double total = 0;
         for (std::int64_t i = 0; i < 30; ++i) {
           const auto own = static_cast<std::int64_t>(in[1][i / 5]);
           if (i % 5 != own) total += std::fmax(0, 1 - in[0][i / 5 * 5 + own] + in[0][i]) / 30;
         }
         return Array({}, {total});
       },
       60},
      {"multilabel_margin_loss",
       f,
       Gives::same,
       {{{6, 5}, -2, 2}, {{6, 5}, 0, 4, Dtype::i32}},
       [](const Tensors& in) { return multilabel_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         double total = 0;
         for (std::int64_t i = 0; i < 30; ++i)
           for (std::int64_t j = 0; j < 5; ++j) {
             bool is = false;
             for (std::int64_t k = 0; k < 5; ++k) is = is || in[1][i / 5 * 5 + k] == static_cast<double>(i % 5);
             const auto own = static_cast<std::int64_t>(in[1][i / 5 * 5 + j]);
             if (!is) total += std::fmax(0, 1 - in[0][i / 5 * 5 + own] + in[0][i]) / 30;
           }
         return Array({}, {total});
       },
       60},
      {"multilabel_soft_margin_loss",
       f,
       Gives::same,
       {{{6, 10}, -2, 2}, {{6, 10}, 0, 1}},
       [](const Tensors& in) { return multilabel_soft_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double x, double t) {
           return t * std::log1p(std::exp(-x)) + (1 - t) * std::log1p(std::exp(x));
         });
       },
       70},
  };
}

}  // namespace

std::vector<Entry> index_entries() {
  auto entries = chosen();
  for (auto more : {more_rearranged(), drawn(), more_losses()}) entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

}  // namespace clnet::testing::dtypes
