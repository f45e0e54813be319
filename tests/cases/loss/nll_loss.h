// Cases of the loss of classes' logarithms of probabilities.
#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/loss/losses.h"

namespace clnet::testing {

inline std::vector<Case> nll_loss_cases() {
  std::vector<Case> cases;
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    for (const auto& shape : {Shape{8, 10}, Shape{2, 4, 3, 5}})
      for (bool weighted : {false, true})
        for (std::int64_t ignore : {-100, 2}) {
          auto extents = shape.extents();
          const auto classes = extents[1];
          extents.erase(extents.begin() + 1);
          const auto targets = ignore == 2 ? Dtype::i32 : Dtype::i64;
          std::vector<Input> inputs{{shape, -4, -0.1}, {Shape(extents), 0, static_cast<double>(classes - 1), targets}};
          if (weighted) inputs.push_back({{classes}, 0.3, 2});
          cases.push_back(
              {.name = fmt::format("{}, {} targets{}, ignoring {}, reduction {}", to_string(shape), to_string(targets),
                                   weighted ? ", weights" : "", ignore, static_cast<int>(reduction)),
               .inputs = inputs,
               .run = [=](const auto& in) -> std::vector<Tensor> {
                 return {nll_loss(in[0], in[1],
                                  {.weight = weighted ? in[2] : Tensor{}, .ignore_index = ignore, .reduction = reduction})};
               },
               .reference = [=](const auto& in) -> Arrays {
                 return {reference::nll(in[0], in[1], weighted ? &in[2] : nullptr, ignore, reduction)};
               }});
        }
  return cases;
}

}  // namespace clnet::testing
