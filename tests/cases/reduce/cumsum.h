// Cases of cumsum.
#pragma once

#include <fmt/format.h>

#include "tests/reference/reduce/cumsum.h"

namespace clnet::testing {

inline std::vector<Case> cumsum_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, int dim) {
    cases.push_back({.name = fmt::format("cumsum of {} along {}", to_string(shape), dim),
                     .inputs = {{shape}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{cumsum(in[0], dim)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::cumsum(in[0], dim)}; }});
  };
  add({7}, 0);
  add({1}, 0);
  for (int dim : {0, 1, 2}) add({3, 5, 70}, dim);
  // Tiles of a work-group that are full, and a rest.
  add({2, 2300}, 1);
  add({2, 1030, 3}, 1);
  cases.push_back({.name = "cumsum of whole numbers",
                   .inputs = {{{3, 70, 2}, -100, 100, Dtype::i32}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{cumsum(in[0], 1)}; },
                   .reference = [](const Arrays& in) { return Arrays{reference::cumsum(in[0], 1)}; }});
  return cases;
}

}  // namespace clnet::testing
