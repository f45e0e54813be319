// Cases of slice_update and narrow.
#pragma once

#include <fmt/format.h>

#include "tests/reference/shape/slice_update.h"

namespace clnet::testing {

inline std::vector<Case> slice_update_cases() {
  std::vector<Case> cases;
  const Shape shape{3, 5, 4};
  for (int dim : {0, 1, 2})
    for (bool tensor : {false, true}) {
      const auto length = shape[dim] - 2, start = std::int64_t{1};
      const auto from = [=](const Tensor& x, const Tensor& value) {
        return tensor ? slice_update(x, dim - 3, Tensor::from({static_cast<std::int32_t>(start)}), value)
                      : slice_update(x, dim, start, value);
      };
      const auto how = tensor ? "a tensor's place" : "a number's place";
      cases.push_back(
          {.name = fmt::format("slice_update along {} at {}", dim, how),
           .inputs = {{shape}, {shape.with(dim, length)}},
           .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {from(in[0], in[1])}; },
           .reference = [=](const Arrays& in) -> Arrays { return {reference::slice_update(in[0], dim, start, in[1])}; }});
      cases.push_back({.name = fmt::format("narrow along {} at {}", dim, how),
                       .inputs = {{shape}},
                       .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                         return {tensor ? narrow(in[0], dim, Tensor::scalar(static_cast<double>(start), Dtype::i64), length)
                                        : narrow(in[0], dim, start, length)};
                       },
                       .reference = [=](const Arrays& in) -> Arrays { return {reference::narrow(in[0], dim, start, length)}; }});
    }
  for (int start : {-2, 4, 100})
    cases.push_back({.name = fmt::format("slice_update that reaches outside, from {}", start),
                     .inputs = {{{2, 5, 3}}, {{2, 3, 3}}},
                     .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                       return {slice_update(in[0], 1, Tensor::scalar(start, Dtype::i32), in[1])};
                     },
                     .reference = [=](const Arrays& in) -> Arrays { return {reference::slice_update(in[0], 1, start, in[1])}; }});
  return cases;
}

}  // namespace clnet::testing
