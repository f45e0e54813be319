// Examples of what chooses, orders, draws and resizes.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/cases/image/grid_sample.h"
#include "tests/cases/shape/diagonal.h"
#include "tests/ops/catalogue/examples.h"
#include "tests/reference/elementwise/special.h"
#include "tests/reference/image/interpolate.h"
#include "tests/reference/index/index.h"
#include "tests/reference/index/scatter.h"
#include "tests/reference/index/sort.h"
#include "tests/reference/loss/ctc.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/matmul/einsum.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/random/philox.h"
#include "tests/reference/reduce/cumsum.h"
#include "tests/reference/shape/unfold.h"

namespace clnet::testing {

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

std::vector<Example> chosen() {
  const std::vector<Input> one{{{3, 8, 5}}};
  const std::vector<Input> moved{{{6, 4}}, {{4, 4}, 0, 5, Dtype::i32}, {{4, 4}}};
  const auto sorted = [](const Arrays& in) { return reference::argsort(in[0], 1, true); };
  return {
      {"einsum",
       {{{6, 40}}, {{40, 5}}},
       [](const Tensors& in) { return einsum("ij,jk->ki", in); },
       [](const Arrays& in) {
         return reference::einsum({"ij", "jk"}, "ki", in);
       }},
      {"interpolate",
       {{{2, 3, 5, 4}}},
       [](const Tensors& in) {
         return interpolate(in[0], {.size = {9, 6}, .mode = Interpolation::bilinear});
       },
       [](const Arrays& in) {
         return reference::interpolate(in[0], {.mode = Interpolation::bilinear}, {9, 6}, {5.0 / 9, 4.0 / 6});
       }},
      {"cumsum", one, [](const Tensors& in) { return cumsum(in[0], 1); },
       [](const Arrays& in) { return reference::cumsum(in[0], 1); }},
      {"unfold",
       {{{2, 3, 5, 6}}},
       [](const Tensors& in) {
         return unfold(in[0], {2, 3}, {.padding = 1});
       },
       [](const Arrays& in) {
         return reference::unfold(in[0], {2, 3}, {.padding = 1}, {2, 18, 36});
       }},
      {"fold",
       {{{2, 18, 36}}},
       [](const Tensors& in) {
         return fold(in[0], {5, 6}, {2, 3}, {.padding = 1});
       },
       [](const Arrays& in) {
         return reference::fold(in[0], {2, 3}, {.padding = 1}, {2, 3, 5, 6});
       }},
      {"sort", one, [](const Tensors& in) { return sort(in[0], 1, true).values; },
       [=](const Arrays& in) { return reference::ordered(in[0], 1, sorted(in), 8); }},
      {"argsort", one, [](const Tensors& in) { return argsort(in[0], 1, true); }, sorted},
      {"topk", one, [](const Tensors& in) { return topk(in[0], 3, 1).values; },
       [=](const Arrays& in) { return reference::ordered(in[0], 1, sorted(in), 3); }},
      {"scatter", moved, [](const Tensors& in) { return scatter(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) { return reference::scatter(in[0], 0, in[1], in[2], false); }},
      {"scatter_add", moved, [](const Tensors& in) { return scatter_add(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) { return reference::scatter(in[0], 0, in[1], in[2], true); }},
      {"scatter_reduce", moved, [](const Tensors& in) { return scatter_reduce(in[0], 0, in[1], in[2], ScatterReduction::amin); },
       [](const Arrays& in) { return reference::scatter_reduce(in[0], 0, in[1], in[2], reference::Fold::amin, true); }},
      {"index_add",
       {{{6, 4}}, {{4}, 0, 5, Dtype::i32}, {{4, 4}}},
       [](const Tensors& in) { return index_add(in[0], 0, in[1], in[2]); },
       [](const Arrays& in) {
         auto y = reference::index_add(in[2], 0, in[1], false, {6, 4});
         for (std::int64_t i = 0; i < y.numel(); ++i) y[i] += in[0][i];
         return y;
       }},
      {"softmin", one, [](const Tensors& in) { return softmin(in[0], 1); },
       [](const Arrays& in) {
         Array x = in[0];
         for (auto& value : x.values) value = -value;
         return reference::softmax(x, 1, false);
       }},
  };
}

/// Of functions that read what they are given.
std::vector<Example> known() {
  const auto scored = [](const Arrays& in) {
    const Array boxes = boxes_of(in[0], 1);
    Array corners({in[0].shape[0], 4});
    for (std::int64_t i = 0; i < corners.numel(); ++i) corners[i] = boxes[i / 4 * 5 + 1 + i % 4];
    return reference::nms(corners, in[1], 0.3);
  };
  const auto places = [](const Arrays&) {
    return make_array({12, 2}, [](const Coordinates& at) { return static_cast<double>(at[1] == 0 ? at[0] / 4 : at[0] % 4); });
  };
  return {{"nonzero", {{{3, 4}}}, [](const Tensors& in) { return nonzero(in[0]); }, places},
          {"argwhere", {{{3, 4}}}, [](const Tensors& in) { return argwhere(in[0]); }, places},
          {"masked_select",
           {{{5, 7}}, {{7}, 0, 1, Dtype::boolean}},
           [](const Tensors& in) { return masked_select(in[0], in[1]); },
           [](const Arrays& in) {
             std::vector<double> some;
             for (std::int64_t i = 0; i < in[0].numel(); ++i)
               if (in[1][i % 7] != 0) some.push_back(in[0][i]);
             return Array({static_cast<std::int64_t>(some.size())}, some);
           }},
          {"unique",
           {{{5, 7}}},
           [](const Tensors& in) { return unique(in[0]).values; },
           [](const Arrays& in) {
             const std::set<double> values(in[0].values.begin(), in[0].values.end());
             return Array({static_cast<std::int64_t>(values.size())}, {values.begin(), values.end()});
           }},
          {"unique_consecutive",
           {{{5, 7}}},
           [](const Tensors& in) { return unique_consecutive(in[0]).values; },
           [](const Arrays& in) {
             auto values = in[0].values;
             values.erase(std::unique(values.begin(), values.end()), values.end());
             return Array({static_cast<std::int64_t>(values.size())}, values);
           }},
          {"nms",
           {{{9, 4}}, {{9}}},
           [](const Tensors& in) { return nms(in[0].defined() ? slice(boxes_of(in[0], 1), 1, 1, 5) : in[0], in[1], 0.3); },
           scored}};
}

std::vector<Example> more_rearranged() {
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
           {{{3, 4}}},
           [](const Tensors& in) { return trace(in[0]); },
           [](const Arrays& in) { return Array({}, {in[0][0] + in[0][5] + in[0][10]}); }},
          {"eye",
           {{{3}}},
           [](const Tensors& in) { return eye(2, 3, in[0].dtype()); },
           [](const Arrays&) {
             return Array({2, 3}, {1, 0, 0, 0, 1, 0});
           }},
          {"linspace",
           {{{3}}},
           [](const Tensors& in) { return linspace(-1, 2, 5, in[0].dtype()); },
           [](const Arrays&) {
             return Array({5}, {-1, -0.25, 0.5, 1.25, 2});
           }}};
}

std::vector<Example> drawn() {
  const std::vector<Input> one{{{40}}}, channels{{{2, 3, 5}}};
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
      {"bernoulli", {{{40}}}, seeded([](const Tensors& in) { return bernoulli(in[0]); }), by_element([](double p, auto i) {
         return draw(i) < p ? 1.0 : 0.0;
       })},
      {"poisson", {{{40}}}, seeded([](const Tensors& in) { return poisson(in[0]); }), by_element([](double rate, auto i) {
         return reference::poisson(rate, std::max(draw(i), 0x1p-25));
       })},
      {"multinomial",
       {{{6}}},
       seeded([](const Tensors& in) { return multinomial(in[0], 9, true); }),
       [](const Arrays& in) {
         const auto bounds = reference::cumsum(in[0], 0);
         Array y({9});
         for (std::int64_t i = 0; i < 9; ++i)
           for (std::int64_t k = 0; k < 5; ++k) y[i] += bounds[k] <= draw(i) * bounds[5];
         return y;
       }},
      {"dropout1d", channels, seeded([](const Tensors& in) { return dropout1d(in[0], 0.25); }), by_element(by_channel(5))},
      {"dropout2d",
       {{{2, 3, 4, 5}}},
       seeded([](const Tensors& in) { return dropout2d(in[0], 0.25); }),
       by_element(by_channel(20))},
      {"dropout3d",
       {{{3, 2, 4, 5}}},
       seeded([](const Tensors& in) { return dropout3d(in[0], 0.25); }),
       by_element(by_channel(40))},
      {"alpha_dropout", one, seeded([](const Tensors& in) { return alpha_dropout(in[0], 0.25); }),
       by_element([=](double x, auto i) { return alpha(x, draw(i)); })},
      {"feature_alpha_dropout", channels, seeded([](const Tensors& in) { return feature_alpha_dropout(in[0], 0.25); }),
       by_element([=](double x, auto i) { return alpha(x, draw(i / 5)); })},
      {"rrelu",
       {{{40}}},
       seeded([](const Tensors& in) { return rrelu(in[0], 0.125, 0.5, true); }),
       by_element([](double x, auto i) { return x < 0 ? x * (0.125 + 0.375 * draw(i)) : x; })},
      {"gumbel_softmax",
       {{{4, 6}}},
       seeded([](const Tensors& in) { return gumbel_softmax(in[0], 2); }),
       [=](const Arrays& in) {
         Array x = in[0];
         for (std::int64_t i = 0; i < x.numel(); ++i) x[i] = (x[i] + noise(i)) / 2;
         return reference::softmax(x, 1, false);
       }},
  };
}

std::vector<Example> more_losses() {
  return {
      {"ctc_loss",
       {{{6, 2, 5}}, {{2, 3}, 1, 4, Dtype::i32}, {{2}, 6, 6, Dtype::i32}, {{2}, 2, 3, Dtype::i32}},
       [=](const Tensors& in) { return ctc_loss(in[0], in[1], in[2], in[3], {.reduction = Reduction::sum}); },
       [](const Arrays& in) {
         const auto all = reference::ctc(in[0], in[1], in[2], in[3], 0);
         return Array({}, {all[0] + all[1]});
       }},
      {"soft_margin_loss",
       {{{40}}, {{40}}},
       [](const Tensors& in) { return soft_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double x, double) { return std::log1p(std::exp(-x)); });
       }},
      {"multi_margin_loss",
       {{{6, 5}}, {{6}, 0, 4, Dtype::i32}},
       [](const Tensors& in) { return multi_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         double total = 0;
         for (std::int64_t i = 0; i < 30; ++i) {
           const auto own = static_cast<std::int64_t>(in[1][i / 5]);
           if (i % 5 != own) total += std::fmax(0, 1 - in[0][i / 5 * 5 + own] + in[0][i]) / 30;
         }
         return Array({}, {total});
       }},
      {"multilabel_margin_loss",
       {{{6, 5}}, {{6, 5}, 0, 4, Dtype::i32}},
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
       }},
      {"multilabel_soft_margin_loss",
       {{{6, 10}}, {{6, 10}}},
       [](const Tensors& in) { return multilabel_soft_margin_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double x, double t) {
           return t * std::log1p(std::exp(-x)) + (1 - t) * std::log1p(std::exp(x));
         });
       }},
  };
}

}  // namespace

std::vector<Example> index_examples() {
  auto entries = chosen();
  for (auto more : {known(), more_rearranged(), drawn(), more_losses()}) entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

}  // namespace clnet::testing
