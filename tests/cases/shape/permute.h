#pragma once

#include <fmt/ranges.h>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

inline std::vector<Case> permute_cases() {
  const auto make = [](Shape from, std::vector<int> dims) {
    return Case{.name = fmt::format("permute {} by [{}]", to_string(from), fmt::join(dims, ", ")),
                .inputs = {{from}},
                .run = [dims](const std::vector<Tensor>& in) { return std::vector{permute(in[0], dims)}; },
                .reference =
                    [dims](const Arrays& in) {
                      std::vector<std::int64_t> extents;
                      for (int dim : dims) extents.push_back(in[0].shape[dim]);
                      return Arrays{make_array(Shape(extents), [&](const Coordinates& at) {
                        Coordinates from_at(at.size());
                        for (std::size_t d = 0; d < at.size(); ++d)
                          from_at[static_cast<std::size_t>(in[0].shape.normalize(dims[d]))] = at[d];
                        return in[0][linear_index(in[0].shape, from_at)];
                      })};
                    }};
  };
  return {make({}, {}),
          make({5}, {0}),
          make({3, 5}, {1, 0}),
          make({40, 70}, {1, 0}),
          make({33, 17}, {-1, -2}),
          make({2, 3, 4, 5}, {0, 2, 3, 1}),
          make({2, 20, 9, 8}, {0, 2, 3, 1}),
          make({2, 9, 8, 20}, {0, 3, 1, 2}),
          make({2, 3, 4, 5}, {3, 2, 1, 0}),
          make({4, 3, 80}, {1, 0, 2}),
          make({1, 3, 1, 5}, {1, 2, 3, 0}),
          make({2, 1, 2, 2, 4, 6}, {0, 1, 4, 2, 5, 3}),
          make({2, 3, 2, 3, 2, 3, 2}, {6, 5, 4, 3, 2, 1, 0}),
          make({2, 3, 2, 3, 2, 2, 2, 2}, {6, 7, 4, 5, 2, 3, 0, 1}),
          make({0, 3}, {1, 0})};
}

}  // namespace clnet::testing
