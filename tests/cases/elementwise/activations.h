// Cases of the functions that elementwise operations make up.
#pragma once

#include "tests/cases/elementwise/elementwise.h"

namespace clnet::testing {

inline std::vector<Case> activation_cases() {
  std::vector<Case> cases;
  for (const auto& weight : {Shape{1}, Shape{4}})
    cases.push_back({.name = "prelu, weight " + to_string(weight),
                     .inputs = {{{3, 4, 5}}, {weight, 0.1, 0.5}},
                     .run = [](const auto& in) -> std::vector<Tensor> { return {prelu(in[0], in[1])}; },
                     .reference = [](const auto& in) -> Arrays {
                       Array y = in[0];
                       for (std::int64_t i = 0; i < y.numel(); ++i)
                         if (y[i] < 0) y[i] *= in[1][in[1].numel() == 1 ? 0 : i / 5 % 4];
                       return {y};
                     }});
  for (int dim : {-1, 0})
    cases.push_back({.name = "glu, dimension " + std::to_string(dim),
                     .inputs = {{{4, 3, 6}}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {glu(in[0], dim)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       const Shape half = dim == 0 ? Shape{2, 3, 6} : Shape{4, 3, 3};
                       Array y(half);
                       for (std::int64_t i = 0; i < y.numel(); ++i) {
                         const auto a = dim == 0 ? i : i / 3 * 6 + i % 3, b = dim == 0 ? i + 36 : a + 3;
                         y[i] = in[0][a] / (1 + std::exp(-in[0][b]));
                       }
                       return {y};
                     }});
  cases.push_back(binary_case(
      "lerp, a number", {{{3, 4, 5}}, {{4, 1}}}, [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.3); },
      [](double a, double b) { return a + 0.3 * (b - a); }));
  cases.push_back({.name = "lerp, a tensor",
                   .inputs = {{{3, 4, 5}}, {{3, 4, 5}}, {{5}, 0, 1}},
                   .run = [](const auto& in) -> std::vector<Tensor> { return {lerp(in[0], in[1], in[2])}; },
                   .reference = [](const auto& in) -> Arrays {
                     return {broadcast_reference(in, [](const std::vector<double>& v) { return v[0] + v[2] * (v[1] - v[0]); })};
                   }});
  cases.push_back(binary_case(
      "masked_fill", {{{3, 4, 5}}, {{4, 1}, 0, 1, Dtype::boolean, false}},
      [](const Tensor& x, const Tensor& mask) { return masked_fill(x, mask, -2.5); },
      [](double x, double mask) { return mask != 0 ? -2.5 : x; }));
  return cases;
}

}  // namespace clnet::testing
