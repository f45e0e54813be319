// Cases of ctc_loss().
#pragma once

#include <fmt/format.h>

#include "tests/reference/loss/ctc.h"

namespace clnet::testing {

inline std::vector<Case> ctc_loss_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, std::int64_t targets, const std::vector<double>& input_lengths,
                       const std::vector<double>& target_lengths, const CtcOptions& options, Dtype dtype = Dtype::i32) {
    const auto classes = static_cast<double>(x[2]);
    // No targets are blanks: they are above or below.
    const bool low = options.blank == 0;
    const auto given = [=](const std::vector<double>& lengths) {
      return Tensor::from(std::vector<std::int64_t>(lengths.begin(), lengths.end()), {x[1]});
    };
    cases.push_back({.name = fmt::format("ctc_loss of {}, {} targets, blank {}, reduction {}", to_string(x), targets,
                                         options.blank, static_cast<int>(options.reduction)),
                     .inputs = {{x, -4, -0.5}, {{x[1], targets}, low ? 1.0 : 0.0, low ? classes - 1 : classes - 2, dtype}},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{ctc_loss(in[0], in[1], given(input_lengths), given(target_lengths), options)};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           const Shape batch{x[1]};
                           auto losses = reference::ctc(in[0], in[1], {batch, input_lengths}, {batch, target_lengths},
                                                        static_cast<int>(options.blank));
                           double sum = 0;
                           for (std::int64_t n = 0; n < x[1]; ++n) {
                             if (options.zero_infinity && std::isinf(losses[n])) losses[n] = 0;
                             const auto length = target_lengths[static_cast<std::size_t>(n)];
                             if (options.reduction == Reduction::mean)
                               losses[n] /= std::max(length, 1.0) * static_cast<double>(x[1]);
                             sum += losses[n];
                           }
                           return Arrays{options.reduction == Reduction::none ? losses : Array({}, {sum})};
                         },
                     // Sums of logarithms over all steps.
                     .slack = 4});
  };
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    add({6, 2, 5}, 3, {6, 5}, {3, 2}, {.reduction = reduction});
    add({6, 2, 5}, 3, {6, 5}, {3, 2}, {.blank = 4, .reduction = reduction}, Dtype::i64);
  }
  // Few classes: many targets repeat.
  add({20, 3, 3}, 8, {20, 19, 17}, {8, 5, 0}, {.reduction = Reduction::none});
  add({70, 2, 12}, 33, {70, 69}, {33, 31}, {.reduction = Reduction::none});
  add({1, 2, 4}, 1, {1, 1}, {1, 0}, {.reduction = Reduction::none});
  add({5, 2, 4}, 3, {5, 0}, {2, 0}, {.reduction = Reduction::none});
  add({4, 3, 5}, 4, {4, 2, 4}, {2, 4, 1}, {.reduction = Reduction::none, .zero_infinity = true});
  add({4, 2, 5}, 0, {4, 3}, {0, 0}, {.reduction = Reduction::mean});
  return cases;
}

}  // namespace clnet::testing
