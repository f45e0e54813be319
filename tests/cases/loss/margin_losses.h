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
