// Cases of cummax, cummin and logcumsumexp.
#pragma once

#include <fmt/format.h>

#include "tests/cases/meaning.h"
#include "tests/reference/reduce/cummax.h"

namespace clnet::testing {

template <bool least>
std::vector<Case> cummax_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& input, int dim) {
    cases.push_back({.name = fmt::format("{} of {} {} along {}", least ? "cummin" : "cummax", to_string(input.dtype),
                                         to_string(input.shape), dim),
                     .inputs = {input},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           const auto result = least ? cummin(in[0], dim) : cummax(in[0], dim);
                           return std::vector{result.values, result.indices};
                         },
                     .reference = [=](const Arrays& in) { return reference::cummax(in[0], in[0].shape.normalize(dim), least); }});
  };
  for (int dim : {1, 0, 2}) add({{3, 5, 70}}, dim);
  add({{7}}, -1);
  add({{1}}, 0);
  add({{3, 0}}, 1);
  // Many equal ones.
  add({{4, 30}, 0, 3, Dtype::i32}, 1);
  return cases;
}

inline std::vector<Case> logcumsumexp_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, int dim, double size) {
    cases.push_back(
        {.name = fmt::format("logcumsumexp of {} to {} along {}", to_string(shape), size, dim),
         .inputs = {{shape, -size, size}},
         .run = [=](const std::vector<Tensor>& in) { return std::vector{logcumsumexp(in[0], dim)}; },
         .reference = [=](const Arrays& in) { return Arrays{reference::logcumsumexp(in[0], in[0].shape.normalize(dim))}; },
         .slack = 4});
  };
  for (int dim : {1, 0, 2}) add({3, 5, 70}, dim, 2);
  add({40}, -1, 100);
  add({1}, 0, 1);
  add({3, 0}, 1, 1);
  return cases;
}

inline const RegisterCases cummax_registered{"cummax", cummax_cases<false>};
inline const RegisterCases cummin_registered{"cummin", cummax_cases<true>};
inline const RegisterCases logcumsumexp_registered{"logcumsumexp", logcumsumexp_cases};

template <bool least>
Meaning cummax_meaning() {
  return {[](const Call& call) { return Arrays{reference::cummax(call.in[0], static_cast<int>(call.integer("dim")), least)[1]}; },
          true};
}
inline const RegisterMeaning cummax_registered_meaning{"cummax", cummax_meaning<false>()};
inline const RegisterMeaning cummin_registered_meaning{"cummin", cummax_meaning<true>()};
inline const RegisterMeaning logcumsumexp_meaning{
    "logcumsumexp",
    {[](const Call& call) { return Arrays{reference::logcumsumexp(call.in[0], static_cast<int>(call.integer("dim")))}; }, false,
     4}};

}  // namespace clnet::testing
