#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/loss/losses.h"

namespace clnet::testing {

inline std::vector<Case> losses_cases() {
  std::vector<Case> cases;
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto number = static_cast<int>(reduction);
    cases.push_back({.name = fmt::format("mse_loss, reduction {}", number),
                     .inputs = {{{5, 4}}, {{5, 4}, -0.8, 1.3}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {mse_loss(in[0], in[1], reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction,
                                                           [](auto, double a, double b) { return (a - b) * (a - b); })};
                     }});
    cases.push_back({.name = fmt::format("l1_loss, reduction {}", number),
                     .inputs = {{{5, 4}}, {{5, 4}, -0.8, 1.3}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {l1_loss(in[0], in[1], reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction,
                                                           [](auto, double a, double b) { return std::abs(a - b); })};
                     }});
    cases.push_back({.name = fmt::format("bce_with_logits, reduction {}", number),
                     .inputs = {{{5, 4}, -6, 6}, {{5, 4}, 0, 1}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {bce_with_logits(in[0], in[1], reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(
                           in[0], in[1], reduction, [](auto, double x, double t) { return reference::bce_with_logits(x, t); })};
                     }});
    cases.push_back(
        {.name = fmt::format("bce_with_logits with weights, reduction {}", number),
         .inputs = {{{5, 4}, -6, 6}, {{5, 4}, 0, 1}, {{4}, 0.5, 2}},
         .run = [=](const auto& in) -> std::vector<Tensor> { return {bce_with_logits(in[0], in[1], reduction, in[2])}; },
         .reference = [=](const auto& in) -> Arrays {
           return {reference::elementwise_loss(in[0], in[1], reduction, [&](auto i, double x, double t) {
             return in[2][i % 4] * reference::bce_with_logits(x, t);
           })};
         }});
  }
  cases.push_back({.name = "global_norm",
                   .inputs = {{{5, 4}}, {{}}, {{3}}},
                   .run = [](const auto& in) -> std::vector<Tensor> {
                     return {global_norm({in[0], in[1], in[2]})};
                   },
                   .reference = [](const auto& in) -> Arrays {
                     double total = 0;
                     for (const auto& array : in)
                       for (double value : array.values) total += value * value;
                     return {Array({}, {std::sqrt(total)})};
                   }});
  return cases;
}

}  // namespace clnet::testing
