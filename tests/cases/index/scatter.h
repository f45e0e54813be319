// Cases of scatter, scatter_add and index_add.
#pragma once

#include <fmt/format.h>

#include "tests/reference/index/index.h"
#include "tests/reference/index/scatter.h"

namespace clnet::testing {

inline std::vector<Case> scatter_cases() {
  std::vector<Case> cases;
  for (bool add : {false, true}) {
    const auto one = [&](const Shape& x, int dim, const Shape& picks, double low, double high, Dtype dtype) {
      cases.push_back(
          {.name = fmt::format("scatter{} of {} to {} along {}", add ? "_add" : "", to_string(picks), to_string(x), dim),
           .inputs = {{x}, {picks, low, high, dtype}, {picks}},
           .run =
               [=](const std::vector<Tensor>& in) {
                 return std::vector{add ? scatter_add(in[0], dim, in[1], in[2]) : scatter(in[0], dim, in[1], in[2])};
               },
           .reference = [=](const Arrays& in) { return Arrays{reference::scatter(in[0], dim, in[1], in[2], add)}; }});
    };
    one({7}, 0, {4}, 0, 6, Dtype::i64);
    one({3}, 0, {40}, 0, 2, Dtype::i32);
    one({5, 4}, 0, {3, 4}, 0, 4, Dtype::i64);
    one({5, 4}, 1, {5, 9}, -4, 3, Dtype::i32);
    one({4, 5, 3}, 1, {2, 6, 2}, 0, 4, Dtype::i32);
    one({4, 5, 3}, 1, {4, 6, 3}, -7, 7, Dtype::i64);  // some out of range
    one({3, 4}, 1, {3, 0}, 0, 1, Dtype::i32);
  }
  for (auto fold :
       {reference::Fold::sum, reference::Fold::prod, reference::Fold::mean, reference::Fold::amax, reference::Fold::amin})
    for (bool own : {true, false}) {
      const auto one = [&](const Shape& x, int dim, const Shape& picks, double low, double high, Dtype dtype) {
        const auto number = static_cast<int>(fold);
        cases.push_back(
            {.name = fmt::format("scatter_reduce {} of {} to {} along {}{}", number, to_string(picks), to_string(x), dim,
                                 own ? "" : ", without its own"),
             .inputs = {{x, 0.5, 2}, {picks, low, high, dtype}, {picks, 0.5, 2}},
             .run =
                 [=](const std::vector<Tensor>& in) {
                   const auto reduction = static_cast<ScatterReduction>(number);
                   return std::vector{scatter_reduce(in[0], dim, in[1], in[2], reduction, own)};
                 },
             .reference =
                 [=](const Arrays& in) { return Arrays{reference::scatter_reduce(in[0], dim, in[1], in[2], fold, own)}; },
             .slack = 4});
      };
      one({3}, 0, {9}, 0, 2, Dtype::i32);
      one({5, 4}, 0, {3, 4}, 0, 4, Dtype::i64);
      one({4, 5, 3}, 1, {2, 6, 2}, 0, 4, Dtype::i32);
      one({4, 5, 3}, 1, {4, 6, 3}, -7, 7, Dtype::i64);  // some out of range
      one({3, 4}, 1, {3, 0}, 0, 1, Dtype::i32);
    }
  const auto added = [&](const Shape& x, int dim, std::int64_t picks) {
    cases.push_back({.name = fmt::format("index_add of {} to {} along {}", picks, to_string(x), dim),
                     .inputs = {{x},
                                {{picks}, -static_cast<double>(x[dim]) - 1, static_cast<double>(x[dim]), Dtype::i64},
                                {x.with(dim, picks)}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{index_add(in[0], dim, in[1], in[2])}; },
                     .reference =
                         [=](const Arrays& in) {
                           auto y = reference::index_add(in[2], dim, in[1], false, x);
                           for (std::int64_t i = 0; i < y.numel(); ++i) y[i] += in[0][i];
                           return Arrays{y};
                         }});
  };
  added({7}, 0, 5);
  added({3, 5}, 0, 20);
  added({2, 6, 3}, 1, 4);
  added({2, 6}, 1, 0);
  cases.push_back({.name = "index_add of twice the negative",
                   .inputs = {{{5, 3}}, {{9}, 0, 4, Dtype::i32}, {{9, 3}}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{index_add(in[0], 0, in[1], in[2], -2.5)}; },
                   .reference =
                       [](const Arrays& in) {
                         auto y = reference::index_add(in[2], 0, in[1], false, {5, 3});
                         for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = in[0][i] - 2.5 * y[i];
                         return Arrays{y};
                       }});
  return cases;
}

}  // namespace clnet::testing
