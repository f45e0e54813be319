// Cases of the losses that compare several inputs.
#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/loss/losses.h"

namespace clnet::testing {

inline std::vector<Case> margin_losses_cases() {
  std::vector<Case> cases;
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto number = static_cast<int>(reduction);
    cases.push_back({.name = fmt::format("margin_ranking_loss, reduction {}", number),
                     .inputs = {{{7, 3}}, {{7, 3}, -0.8, 1.3}, {{7, 3}}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {margin_ranking_loss(in[0], in[1], sign(in[2]), 0.3, reduction)};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       Array losses(in[0].shape);
                       for (std::int64_t i = 0; i < losses.numel(); ++i)
                         losses[i] = std::fmax(0, 0.3 - (in[2][i] > 0 ? 1 : -1) * (in[0][i] - in[1][i]));
                       return {reference::reduced(losses, reduction)};
                     }});
    for (const auto& rows : {Shape{6}, Shape{}}) {
      auto extents = rows.extents();
      extents.push_back(5);
      cases.push_back({.name = fmt::format("cosine_embedding_loss of {}, reduction {}", to_string(Shape(extents)), number),
                       .inputs = {{Shape(extents)}, {Shape(extents), -0.8, 1.3}, {rows}},
                       .run = [=](const auto& in) -> std::vector<Tensor> {
                         return {cosine_embedding_loss(in[0], in[1], sign(in[2]), 0.1, reduction)};
                       },
                       .reference = [=](const auto& in) -> Arrays {
                         Array losses = reference::cosines(in[0], in[1]);
                         for (std::int64_t i = 0; i < losses.numel(); ++i)
                           losses[i] = in[2][i] > 0 ? 1 - losses[i] : std::fmax(0, losses[i] - 0.1);
                         return {reference::reduced(losses, reduction)};
                       }});
    }
    for (int p : {1, 2})
      for (bool weighted : {false, true})
        for (const auto& rows : {Shape{6}, Shape{}}) {
          auto extents = rows.extents();
          extents.push_back(5);
          cases.push_back(
              {.name = fmt::format("multi_margin_loss of {}, p {}{}, reduction {}", to_string(Shape(extents)), p,
                                   weighted ? ", weighted" : "", number),
               .inputs = {{Shape(extents)}, {rows, 0, 4, p == 1 ? Dtype::i32 : Dtype::i64}, {{5}, 0.5, 2}},
               .run = [=](const auto& in) -> std::vector<Tensor> {
                 return {multi_margin_loss(
                     in[0], in[1], {.p = p, .margin = 0.7, .weight = weighted ? in[2] : Tensor{}, .reduction = reduction})};
               },
               .reference = [=](const auto& in) -> Arrays {
                 Array losses(rows);
                 for (std::int64_t i = 0; i < in[0].numel(); ++i) {
                   const auto row = i / 5, own = static_cast<std::int64_t>(in[1][row]);
                   if (i % 5 == own) continue;
                   const double beyond = std::fmax(0, 0.7 - in[0][row * 5 + own] + in[0][i]);
                   losses[row] += (weighted ? in[2][own] : 1) * std::pow(beyond, p) / 5;
                 }
                 return {reference::reduced(losses, reduction)};
               }});
        }
    for (const auto& rows : {Shape{6}, Shape{}}) {
      auto extents = rows.extents();
      extents.push_back(5);
      cases.push_back(
          {.name = fmt::format("multilabel_margin_loss of {}, reduction {}", to_string(Shape(extents)), number),
           .inputs = {{Shape(extents)}, {Shape(extents), -1, 4, Dtype::i64}},
           .run = [=](const auto& in) -> std::vector<Tensor> { return {multilabel_margin_loss(in[0], in[1], reduction)}; },
           .reference = [=](const auto& in) -> Arrays {
             Array losses(rows);
             for (std::int64_t row = 0; row < losses.numel(); ++row) {
               const auto own = [&](std::int64_t j) { return static_cast<std::int64_t>(in[1][row * 5 + j]); };
               std::int64_t count = 0;
               while (count < 5 && own(count) >= 0) ++count;
               for (std::int64_t i = 0; i < 5; ++i) {
                 bool is = false;
                 for (std::int64_t j = 0; j < count; ++j) is = is || own(j) == i;
                 for (std::int64_t j = 0; j < count && !is; ++j)
                   losses[row] += std::fmax(0, 1 - in[0][row * 5 + own(j)] + in[0][row * 5 + i]) / 5;
               }
             }
             return {reference::reduced(losses, reduction)};
           }});
    }
    for (double p : {1.0, 2.0, 3.0})
      for (bool swap : {false, true})
        cases.push_back(
            {.name = fmt::format("triplet_margin_loss, p {}{}, reduction {}", p, swap ? ", swap" : "", number),
             .inputs = {{{4, 2, 3}}, {{4, 2, 3}, -0.8, 1.3}, {{4, 2, 3}, -1.2, 0.9}},
             .run = [=](const auto& in) -> std::vector<Tensor> {
               return {triplet_margin_loss(in[0], in[1], in[2], {.margin = 0.4, .p = p, .swap = swap, .reduction = reduction})};
             },
             .reference = [=](const auto& in) -> Arrays {
               const auto near = reference::distances(in[0], in[1], p, 1e-6);
               const auto far = reference::distances(in[0], in[2], p, 1e-6);
               const auto other = reference::distances(in[1], in[2], p, 1e-6);
               Array losses(near.shape);
               for (std::int64_t i = 0; i < losses.numel(); ++i)
                 losses[i] = std::fmax(0, near[i] - (swap ? std::fmin(far[i], other[i]) : far[i]) + 0.4);
               return {reference::reduced(losses, reduction)};
             }});
  }
  return cases;
}

}  // namespace clnet::testing
