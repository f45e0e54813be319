// Cases of cumprod.
#pragma once

#include "tests/cases/meaning.h"
#include "tests/reference/reduce/cumprod.h"

namespace clnet::testing {

inline std::vector<Case> cumprod_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, int dim, double low, double high) {
    cases.push_back({.name = fmt::format("cumprod of {} along {}", to_string(shape), dim),
                     .inputs = {{shape, low, high}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{cumprod(in[0], dim)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::cumprod(in[0], shape.normalize(dim))}; },
                     // A rounding for each factor.
                     .slack = 4});
  };
  add({7}, 0, -1.5, 1.5);
  add({1}, 0, -1.5, 1.5);
  add({3, 0}, 1, 0.5, 1.5);
  for (int dim : {0, 1, 2}) add({3, 5, 6}, dim, -1.5, 1.5);
  add({2, 70}, -1, 0.9, 1.1);
  cases.push_back({.name = "cumprod of whole numbers",
                   .inputs = {{{3, 7, 2}, -9, 9, Dtype::i32}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{cumprod(in[0], 1)}; },
                   .reference = [](const Arrays& in) { return Arrays{reference::cumprod(in[0], 1)}; },
                   .gradient = false});
  return cases;
}

inline std::vector<Case> vander_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& x, std::optional<std::int64_t> n, bool increasing) {
    auto extents = x.shape.extents();
    const auto powers = n.value_or(extents.back());
    extents.push_back(powers);
    cases.push_back({.name = fmt::format("vander of {} {} to {}{}", to_string(x.dtype), to_string(x.shape), powers,
                                         increasing ? ", increasing" : ""),
                     .inputs = {x},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{vander(in[0], n, increasing)}; },
                     .reference =
                         [=](const Arrays& in) {
                           Array y{Shape(extents)};
                           for (std::int64_t i = 0; i < y.numel(); ++i) {
                             const auto k = i % powers;
                             y[i] = std::pow(in[0][i / powers], static_cast<double>(increasing ? k : powers - 1 - k));
                           }
                           return Arrays{y};
                         },
                     .slack = 4});
  };
  add({{5}, -1.5, 1.5}, std::nullopt, false);
  add({{2, 3}, -1.5, 1.5}, 4, true);
  add({{3}, -1.5, 1.5}, 1, false);
  add({{3}, -1.5, 1.5}, 0, false);
  add({{4}, -3, 3, Dtype::i32}, 3, false);
  return cases;
}

inline const RegisterCases vander_registered{"vander", vander_cases};
inline const RegisterCases cumprod_registered{"cumprod", cumprod_cases};
inline const RegisterMeaning linear_scan_meaning{
    "linear_scan",
    {[](const Call& call) {
       const auto dim = static_cast<int>(call.integer("dim"));
       return Arrays{reference::linear_scan(call.in[0], call.in[1], dim, call.flag("backwards"))};
     },
     false, 4}};

}  // namespace clnet::testing
