#pragma once

#include <algorithm>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

/// Python's x[start:stop:step] along a dimension.
inline Array slice_reference(const Array& x, int dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto n = x.shape[dim];
  const auto low = step < 0 ? std::int64_t{-1} : 0, high = step < 0 ? n - 1 : n;
  start = std::clamp(start < 0 ? start + n : start, low, high);
  stop = std::clamp(stop < 0 ? stop + n : stop, low, high);
  Coordinates picks;
  for (auto i = start; step > 0 ? i < stop : i > stop; i += step) picks.push_back(i);
  return make_array(x.shape.with(dim, static_cast<std::int64_t>(picks.size())), [&](Coordinates at) {
    auto& place = at[static_cast<std::size_t>(x.shape.normalize(dim))];
    place = picks[static_cast<std::size_t>(place)];
    return x[linear_index(x.shape, at)];
  });
}

inline std::vector<Case> slice_cases() {
  constexpr auto all = std::numeric_limits<std::int64_t>::max(), begin = std::numeric_limits<std::int64_t>::min();
  const auto make = [](std::string name, Shape x, int dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
    return Case{.name = "slice " + name,
                .inputs = {{x}},
                // The sum makes the view an operand of a kernel.
                .run =
                    [=](const std::vector<Tensor>& in) {
                      const auto y = slice(in[0], dim, start, stop, step);
                      return std::vector{y, y + slice(in[0] * 2.0, dim, start, stop, step)};
                    },
                .reference =
                    [=](const Arrays& in) {
                      auto y = slice_reference(in[0], dim, start, stop, step), three = y;
                      for (auto& value : three.values) value *= 3;
                      return Arrays{y, three};
                    }};
  };
  return {make("rows", {6, 5}, 0, 1, 4, 1),
          make("rows of one plane", {1, 6, 5}, 1, 2, all, 1),
          make("columns", {6, 5}, 1, 1, 4, 1),
          make("the middle", {3, 6, 80}, 1, 2, 5, 1),
          make("negative bounds", {3, 6, 8}, 2, -5, -1, 1),
          make("bounds beyond the ends", {3, 6}, 1, -100, 100, 1),
          make("step 2", {3, 9, 4}, 1, 1, all, 2),
          make("step 3 up to the end", {10}, 0, 0, all, 3),
          make("step 3 of the last dimension", {2, 11}, 1, 2, 9, 3),
          make("step larger than the extent", {2, 5}, 1, 3, all, 100),
          make("backwards", {2, 5, 3}, 1, -1, begin, -1),
          make("backwards by 2", {2, 7}, 1, 5, 0, -2),
          make("backwards by 2, from beyond the end", {2, 8}, 1, all, begin, -2),
          make("no rows", {0, 68}, 1, 17, 34, 1),
          make("nothing", {4, 3}, 0, 3, 2, 1),
          make("nothing backwards", {4, 3}, 1, 0, 2, -1)};
}

}  // namespace clnet::testing
