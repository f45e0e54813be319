// Cases of the normalisations that others make up.
#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/norm/group_norm.h"

namespace clnet::testing {

inline std::vector<Case> group_norm_cases() {
  std::vector<Case> cases;
  for (const auto& shape : {Shape{2, 6, 3, 4}, Shape{3, 6, 5}, Shape{4, 6}})
    for (std::int64_t groups : {1, 2, 3, 6})
      for (int given : {0, 1, 2}) {
        if (shape.rank() == 2 && groups == 6) continue;  // one element each: 0
        const bool instance = groups == 6;
        std::vector<Input> inputs{{shape, -2, 3}};
        for (int i = 0; i < given; ++i) inputs.push_back({{6}, 0.5, 2});
        cases.push_back(
            {.name = fmt::format("{} of {}, {} groups, {} of weight and bias", instance ? "instance_norm" : "group_norm",
                                 to_string(shape), groups, given),
             .inputs = inputs,
             .run = [=](const auto& in) -> std::vector<Tensor> {
               const Tensor weight = given >= 1 ? in[1] : Tensor{}, bias = given >= 2 ? in[2] : Tensor{};
               return {instance ? instance_norm(in[0], weight, bias, 1e-3) : group_norm(in[0], groups, weight, bias, 1e-3)};
             },
             .reference = [=](const auto& in) -> Arrays {
               return {reference::group_norm(in[0], groups, given >= 1 ? &in[1] : nullptr, given >= 2 ? &in[2] : nullptr, 1e-3)};
             }});
      }
  for (int dims : {1, 2})
    for (bool weighted : {false, true}) {
      const Shape last = dims == 1 ? Shape{9} : Shape{4, 9};
      std::vector<Input> inputs{{{3, 4, 9}, -2, 3}};
      if (weighted) inputs.push_back({last, 0.5, 2});
      cases.push_back({.name = fmt::format("rms_norm over the last {}{}", dims, weighted ? ", weight" : ""),
                       .inputs = inputs,
                       .run = [=](const auto& in) -> std::vector<Tensor> {
                         return {rms_norm(in[0], dims, weighted ? in[1] : Tensor{}, 1e-3)};
                       },
                       .reference = [=](const auto& in) -> Arrays {
                         return {reference::rms_norm(in[0], last.numel(), weighted ? &in[1] : nullptr, 1e-3)};
                       }});
    }
  for (const auto& shape : {Shape{2, 7, 3, 3}, Shape{2, 4, 5}, Shape{3, 5}})
    for (std::int64_t size : {1, 2, 5})
      cases.push_back(
          {.name = fmt::format("local_response_norm of {}, size {}", to_string(shape), size),
           .inputs = {{shape, -2, 3}},
           .run = [=](const auto& in) -> std::vector<Tensor> { return {local_response_norm(in[0], size, 0.5, 0.75, 2)}; },
           .reference = [=](const auto& in) -> Arrays { return {reference::local_response_norm(in[0], size, 0.5, 0.75, 2)}; }});
  return cases;
}

}  // namespace clnet::testing
