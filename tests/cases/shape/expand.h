#pragma once

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

inline std::vector<Case> expand_cases() {
  const auto make = [](Shape from, Shape to) {
    return Case{.name = "expand " + to_string(from) + " to " + to_string(to),
                .inputs = {{from}},
                .run = [to](const std::vector<Tensor>& in) { return std::vector{expand(in[0], to)}; },
                .reference = [to](const Arrays& in) { return Arrays{expand_reference(in[0], to)}; }};
  };
  return {make({}, {2, 3}),
          make({1}, {7}),
          make({3, 1}, {3, 4}),
          make({3, 1}, {2, 3, 4}),
          make({4}, {2, 3, 4}),
          make({2, 1, 3, 1}, {2, 5, 3, 70}),
          make({1, 3, 1, 1}, {2, 3, 4, 5}),
          make({3, 4}, {3, 4}),
          make({2, 1}, {2, 0})};
}

}  // namespace clnet::testing
