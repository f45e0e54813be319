// Cases of interpolate().
#pragma once

#include <fmt/format.h>

#include "tests/reference/image/interpolate.h"

namespace clnet::testing {

inline std::vector<Case> interpolate_cases() {
  using enum Interpolation;
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const Shape& shape, const InterpolateOptions& options,
                       const std::vector<std::int64_t>& to) {
    std::vector<double> scales;
    for (std::size_t d = 0; d < to.size(); ++d) {
      const auto own = [&](const std::vector<double>& all) { return all[all.size() == 1 ? 0 : d]; };
      const bool given = !options.scale_factor.empty() && !options.recompute_scale_factor && options.mode != area;
      scales.push_back(given ? 1 / own(options.scale_factor)
                             : static_cast<double>(shape[static_cast<int>(d) + 2]) / static_cast<double>(to[d]));
    }
    cases.push_back({.name = fmt::format("interpolate {}, mode {}{}{}", name, static_cast<int>(options.mode),
                                         options.align_corners ? ", corners" : "", options.antialias ? ", antialias" : ""),
                     .inputs = {{shape}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{interpolate(in[0], options)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::interpolate(in[0], options, to, scales)}; }});
  };
  for (auto mode : {nearest, nearest_exact, bilinear, bicubic, area}) {
    add("twice as large", {2, 3, 5, 7}, {.scale_factor = {2}, .mode = mode}, {10, 14});
    add("smaller", {1, 2, 9, 13}, {.size = {4, 5}, .mode = mode}, {4, 5});
    add("one way larger, one smaller", {1, 2, 4, 11}, {.size = {9, 3}, .mode = mode}, {9, 3});
    add("by an odd factor", {1, 1, 7, 5}, {.scale_factor = {1.6, 0.7}, .mode = mode}, {11, 3});
    add("by an odd factor, recomputed", {1, 1, 7, 5}, {.scale_factor = {1.6}, .mode = mode, .recompute_scale_factor = true},
        {11, 8});
    add("of one pixel", {2, 2, 1, 1}, {.size = {3, 2}, .mode = mode}, {3, 2});
    add("of one row", {2, 2, 1, 5}, {.size = {1, 8}, .mode = mode}, {1, 8});
    add("to one pixel", {2, 2, 6, 5}, {.size = {1}, .mode = mode}, {1, 1});
    add("to the same size", {1, 2, 3, 4}, {.size = {3, 4}, .mode = mode}, {3, 4});
  }
  for (auto mode : {bilinear, bicubic}) {
    add("larger", {2, 2, 4, 5}, {.size = {7, 12}, .mode = mode, .align_corners = true}, {7, 12});
    add("smaller", {2, 2, 9, 8}, {.size = {5, 3}, .mode = mode, .align_corners = true}, {5, 3});
    add("to one pixel", {1, 2, 6, 5}, {.size = {1}, .mode = mode, .align_corners = true}, {1, 1});
    add("by a factor", {1, 1, 5, 5}, {.scale_factor = {2.5}, .mode = mode, .align_corners = true}, {12, 12});
  }
  for (auto mode : {bilinear, bicubic}) {
    add("smaller", {1, 2, 9, 13}, {.size = {4, 5}, .mode = mode, .antialias = true}, {4, 5});
    add("larger", {2, 2, 4, 5}, {.size = {7, 12}, .mode = mode, .antialias = true}, {7, 12});
    add("one way larger, one smaller", {1, 2, 4, 31}, {.size = {9, 3}, .mode = mode, .antialias = true}, {9, 3});
    add("by an odd factor", {1, 1, 7, 5}, {.scale_factor = {1.6, 0.7}, .mode = mode, .antialias = true}, {11, 3});
    add("to one pixel", {2, 2, 6, 5}, {.size = {1}, .mode = mode, .antialias = true}, {1, 1});
    add("smaller", {2, 1, 9, 8}, {.size = {5, 3}, .mode = mode, .align_corners = true, .antialias = true}, {5, 3});
  }
  for (auto mode : {nearest, nearest_exact, linear, area}) {
    add("a line", {2, 3, 10}, {.size = {23}, .mode = mode}, {23});
    add("a line, shorter", {2, 3, 90}, {.scale_factor = {0.3}, .mode = mode}, {27});
  }
  add("a line", {2, 3, 10}, {.size = {23}, .mode = linear, .align_corners = true}, {23});
  for (auto mode : {nearest, nearest_exact, trilinear, area}) {
    add("a volume", {2, 2, 3, 4, 5}, {.scale_factor = {2}, .mode = mode}, {6, 8, 10});
    add("a volume, otherwise", {1, 2, 6, 3, 5}, {.size = {4, 7, 3}, .mode = mode}, {4, 7, 3});
  }
  add("a volume", {1, 2, 3, 4, 5}, {.size = {5, 3, 9}, .mode = trilinear, .align_corners = true}, {5, 3, 9});
  return cases;
}

}  // namespace clnet::testing
