// Cases of sort, argsort and topk.
#pragma once

#include <fmt/format.h>

#include "tests/reference/index/sort.h"

namespace clnet::testing {

inline std::vector<Case> sort_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& input, int dim, bool descending, std::int64_t count) {
    const bool all = count == input.shape[dim];
    cases.push_back({.name = fmt::format("{} of {} {} along {}{}", all ? "sort" : "topk", to_string(input.dtype),
                                         to_string(input.shape), dim, descending ? ", descending" : ""),
                     .inputs = {input},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           const auto result = all ? sort(in[0], dim, descending) : topk(in[0], count, dim, descending);
                           return std::vector{result.values, result.indices};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           const auto order = reference::argsort(in[0], dim, descending);
                           return Arrays{reference::ordered(in[0], dim, order, count), reference::first_of(order, dim, count)};
                         }});
  };
  for (bool descending : {false, true}) {
    for (std::int64_t extent : {1, 2, 15, 16, 17, 33, 64, 200}) add({{3, extent}}, 1, descending, extent);
    for (int dim : {0, 1, 2}) {
      const Shape shape{5, 18, 7};
      add({shape}, dim, descending, shape[dim]);
      add({shape}, dim, descending, 3);
    }
    // Many equal ones, which keep their order.
    add({{4, 70}, 0, 3, Dtype::i32}, 1, descending, 70);
    add({{100}, 0, 1, Dtype::boolean}, 0, descending, 100);
    add({{2, 40}, -5, 5, Dtype::i8}, 1, descending, 7);
    add({{40}, 0, 1e6, Dtype::i64}, 0, descending, 40);
  }
  add({{1000}}, 0, true, 5);
  add({{2, 9000}}, 1, false, 9000);
  add({{300}, -2e9, 2e9, Dtype::i32}, 0, true, 300);
  add({{5, 300}}, 1, false, 70);
  add({{3, 10}}, 1, true, 0);
  return cases;
}

}  // namespace clnet::testing
