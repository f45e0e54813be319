// Cases of unfold and fold.
#pragma once

#include <fmt/format.h>

#include "tests/reference/shape/unfold.h"

namespace clnet::testing {

inline std::vector<Case> unfold_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& image, Pair kernel, const UnfoldOptions& options, std::int64_t windows) {
    const Shape columns{image[0], image[1] * kernel.height * kernel.width, windows};
    const auto name = fmt::format("{}, windows of {} x {}", to_string(image), kernel.height, kernel.width);
    cases.push_back({.name = "unfold of " + name,
                     .inputs = {{image}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{unfold(in[0], kernel, options)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::unfold(in[0], kernel, options, columns)}; }});
    cases.push_back({.name = "fold to " + name,
                     .inputs = {{columns}},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{fold(in[0], {image[2], image[3]}, kernel, options)};
                         },
                     .reference = [=](const Arrays& in) { return Arrays{reference::fold(in[0], kernel, options, image)}; }});
  };
  add({1, 1, 4, 5}, 1, {}, 20);
  add({2, 3, 5, 6}, 3, {}, 12);
  add({2, 3, 5, 6}, {2, 3}, {.padding = 1}, 36);
  add({1, 2, 9, 8}, {3, 2}, {.dilation = {2, 3}, .padding = {2, 0}, .stride = {2, 1}}, 25);
  add({1, 2, 6, 6}, 2, {.stride = 2}, 9);
  add({1, 2, 7, 7}, 2, {.stride = 3}, 4);  // some pixels are seen by none
  return cases;
}

}  // namespace clnet::testing
