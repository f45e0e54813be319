#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/norm/softmax.h"

namespace clnet::testing {

inline std::vector<Case> softmax_cases() {
  struct Layout {
    Shape shape;
    int dim;
    double scale = 3;
  };
  std::vector<Case> cases;
  for (const auto& layout : {Layout{{3, 4, 6}, 1}, Layout{{3, 4, 6}, -1}, Layout{{3, 4, 6}, 0}, Layout{{5}, 0},
                             Layout{{7, 10}, 1}, Layout{{3, 1000}, 1}, Layout{{2, 2049}, 1}, Layout{{130, 37}, -1},
                             Layout{{2, 21, 5, 9}, 1}, Layout{{40, 33}, 0}, Layout{{2, 700, 3}, 1}, Layout{{4, 1}, 1},
                             Layout{{300, 2}, 1}, Layout{{37, 15}, 1}, Layout{{16, 4}, 1, 500}, Layout{{6, 40}, 1, 500}})
    for (bool logarithm : {false, true})
      cases.push_back(
          {.name = fmt::format("{} of {} along {}, {} wide", logarithm ? "log_softmax" : "softmax", to_string(layout.shape),
                               layout.dim, layout.scale),
           .inputs = {{layout.shape, -layout.scale, layout.scale}},
           .run = [=](const auto& in) -> std::vector<Tensor> {
             return {logarithm ? log_softmax(in[0], layout.dim) : softmax(in[0], layout.dim)};
           },
           .reference = [=](const auto& in) -> Arrays { return {reference::softmax(in[0], layout.dim, logarithm)}; }});
  return cases;
}

}  // namespace clnet::testing
