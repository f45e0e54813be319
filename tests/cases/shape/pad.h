#pragma once

#include <fmt/ranges.h>

#include <algorithm>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

inline Array pad_reference(const Array& x, const Coordinates& before, const Coordinates& after, double value, PadMode mode) {
  auto extents = x.shape.extents();
  for (std::size_t d = 0; d < extents.size(); ++d) extents[d] += before[d] + after[d];
  return make_array(Shape(extents), [&](Coordinates at) {
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto n = x.shape.extents()[d];
      auto i = at[d] - before[d];
      if (mode == PadMode::edge) i = std::clamp<std::int64_t>(i, 0, n - 1);
      if (mode == PadMode::reflect) i = i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
      if (mode == PadMode::circular) {
        const auto first = std::max<std::int64_t>(0, -before[d]), left = n + std::min<std::int64_t>(0, after[d]) - first;
        i = first + ((i - first) % left + left) % left;
      }
      if (i < 0 || i >= n) return value;
      at[d] = i;
    }
    return x[linear_index(x.shape, at)];
  });
}

inline std::vector<Case> pad_cases() {
  const auto make = [](Shape x, Coordinates before, Coordinates after, double value = 0, PadMode mode = PadMode::constant) {
    constexpr const char* names[] = {"constant", "reflect", "edge", "circular"};
    return Case{.name = fmt::format("pad {} by [{}] and [{}], {}", to_string(x), fmt::join(before, ", "), fmt::join(after, ", "),
                                    names[static_cast<int>(mode)]),
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{pad(in[0], before, after, value, mode)}; },
                .reference = [=](const Arrays& in) { return Arrays{pad_reference(in[0], before, after, value, mode)}; }};
  };
  return {make({5}, {2}, {3}),
          make({2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 2, 1}, 0.5),
          make({2, 3, 4}, {1, 0, 0}, {0, 2, 0}, -1),
          make({4, 6}, {-1, 2}, {1, -3}, 2),
          make({4, 6}, {0, 0}, {0, 0}),
          make({1, 2, 1, 2, 1, 2, 1, 2}, {1, 0, 1, 1, 1, 0, 1, 1}, {0, 1, 1, 0, 0, 1, 0, 1}, 3),
          make({2, 0}, {0, 1}, {1, 2}, 4),
          make({2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 4}, 0, PadMode::reflect),
          make({4, 5}, {2, -1}, {-1, 3}, 0, PadMode::reflect),
          make({2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 7}, 0, PadMode::edge),
          make({1}, {2}, {2}, 0, PadMode::edge),
          make({2, 3, 4, 5}, {0, 0, 4, 2}, {0, 0, 1, 5}, 0, PadMode::circular),
          make({2, 3, 3, 2, 4}, {0, 0, 1, 2, 0}, {0, 0, 3, 1, 4}, 0, PadMode::circular),
          make({4, 5}, {2, -1}, {-1, 3}, 0, PadMode::circular),
          make({3, 5}, {-1, 3}, {2, -2}, 0, PadMode::circular)};
}

}  // namespace clnet::testing
