#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/loss/cross_entropy.h"
#include "tests/reference/norm/softmax.h"

namespace clnet::testing {

inline std::vector<Case> cross_entropy_cases() {
  struct Layout {
    Shape logits;
    Dtype targets = Dtype::i64;
    bool weighted = false;
    reference::CrossEntropy options = {};
  };
  const auto none = Reduction::none, total = Reduction::sum, mean = Reduction::mean;
  std::vector<Case> cases;
  for (const auto& layout :
       {Layout{{8, 10}}, Layout{{8, 10}, Dtype::i32, false, {3}}, Layout{{8, 10}, Dtype::i64, true, {3}},
        Layout{{8, 10}, Dtype::i64, false, {-100, 0.1}}, Layout{{9, 37}, Dtype::i64, true, {2, 0.25, mean}},
        Layout{{9, 37}, Dtype::i64, true, {2, 0.25, total}}, Layout{{9, 37}, Dtype::i32, true, {2, 0.25, none}},
        Layout{{8, 10}, Dtype::i64, false, {3, 0, none}}, Layout{{8, 10}, Dtype::i64, false, {-100, 0, total}},
        Layout{{2, 4, 3, 5}}, Layout{{2, 4, 3, 5}, Dtype::i64, true, {1}}, Layout{{2, 4, 3, 5}, Dtype::i32, true, {1, 0.2, none}},
        Layout{{3, 4, 7}, Dtype::i64, false, {-100, 0.2}}, Layout{{1, 1000}}, Layout{{130, 17}}, Layout{{3, 1}}}) {
    const auto classes = layout.logits[1];
    auto extents = layout.logits.extents();
    extents.erase(extents.begin() + 1);
    std::vector<Input> inputs{{layout.logits, -3, 3}, {Shape(extents), 0, static_cast<double>(classes - 1), layout.targets}};
    if (layout.weighted) inputs.push_back({{classes}, 0.3, 2});
    cases.push_back(
        {.name = fmt::format("logits {}, {} targets{}, ignoring {}, smoothing {}, reduction {}", to_string(layout.logits),
                             to_string(layout.targets), layout.weighted ? ", weights" : "", layout.options.ignore_index,
                             layout.options.smoothing, static_cast<int>(layout.options.reduction)),
         .inputs = inputs,
         .run = [=](const auto& in) -> std::vector<Tensor> {
           return {cross_entropy(in[0], in[1],
                                 {.weight = layout.weighted ? in[2] : Tensor{},
                                  .ignore_index = layout.options.ignore_index,
                                  .label_smoothing = layout.options.smoothing,
                                  .reduction = layout.options.reduction})};
         },
         .reference = [=](const auto& in) -> Arrays {
           return {reference::cross_entropy(in[0], in[1], layout.weighted ? std::optional(in[2]) : std::nullopt, layout.options)};
         }});
  }
  for (const double smoothing : {0.0, 0.2})
    cases.push_back({.name = fmt::format("probabilities as targets, weights, smoothing {}", smoothing),
                     .inputs = {{{2, 4, 3}, -3, 3}, {{2, 4, 3}, 0, 1}, {{4}, 0.3, 2}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {cross_entropy(in[0], in[1], {.weight = in[2], .label_smoothing = smoothing})};
                     },
                     .reference =
                         [=](const Arrays& in) {
                           const auto logs = reference::softmax(in[0], 1, true);
                           Array loss;
                           for (std::int64_t i = 0; i < logs.numel(); ++i)
                             loss[0] -= in[2][i / 3 % 4] * (in[1][i] * (1 - smoothing) + smoothing / 4) * logs[i] / 6;
                           return Arrays{loss};
                         }});
  return cases;
}

}  // namespace clnet::testing
