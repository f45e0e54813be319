#pragma once

#include "tests/cases/case.h"
#include "tests/reference/pool/pool2d.h"

namespace clnet::testing {

inline std::vector<Case> avg_pool2d_cases() {
  const auto make = [](std::string name, Shape x, Pair kernel, AvgPool2dOptions o) {
    const auto stride = o.stride.value_or(kernel);
    const PoolAxis v{kernel.height, stride.height, o.padding.top, o.padding.bottom, 1, o.ceil_mode};
    const PoolAxis h{kernel.width, stride.width, o.padding.left, o.padding.right, 1, o.ceil_mode};
    return Case{.name = "avg_pool2d " + name,
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{avg_pool2d(in[0], kernel, o)}; },
                .reference = [=](const Arrays& in) { return Arrays{pool2d_reference(in[0], v, h, false, o.count_include_pad)}; }};
  };
  const auto adaptive = [](std::string name, Shape x, Pair size) {
    const PoolAxis v{.adaptive = size.height}, h{.adaptive = size.width};
    return Case{.name = "adaptive_avg_pool2d " + name,
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{adaptive_avg_pool2d(in[0], size)}; },
                .reference = [=](const Arrays& in) { return Arrays{pool2d_reference(in[0], v, h, false)}; }};
  };
  return {
      make("3x3 stride 2 padding 1, long rows", {1, 2, 7, 320}, 3, {.stride = 2, .padding = 1}),
      make("2x2", {2, 8, 8, 8}, 2, {}),
      make("2x2, ceil", {1, 2, 7, 7}, 2, {.ceil_mode = true}),
      make("4x4 stride 3 padding 2, ceil", {1, 2, 6, 6}, 4, {.stride = 3, .padding = 2, .ceil_mode = true}),
      make("ceil, a window larger than the plane", {2, 3, 3, 4}, 5, {.stride = 3, .ceil_mode = true}),
      make("ceil, windows taller than the plane", {1, 2, 3, 40}, {6, 3}, {.stride = Pair{4, 1}, .ceil_mode = true}),
      make("ceil, windows by one row taller than the plane, stride 2", {1, 2, 2, 37}, 3, {.stride = 2, .ceil_mode = true}),
      make("ceil, windows by one column wider than the plane, stride 2", {1, 2, 33, 2}, 3, {.stride = 2, .ceil_mode = true}),
      make("ceil, windows larger than the padded plane, not counted", {1, 2, 2, 3}, {7, 8},
           {.padding = {2, 1, 1, 0}, .ceil_mode = true, .count_include_pad = false}),
      make("3x2 stride 1x3, padding not counted", {1, 4, 10, 6}, {3, 2},
           {.stride = Pair{1, 3}, .padding = {1, 0}, .count_include_pad = false}),
      make("3x3 stride 2 padding 1, not counted", {2, 3, 9, 7}, 3, {.stride = 2, .padding = 1, .count_include_pad = false}),
      make("3x3 stride 2 padding 1, not counted, ceil", {2, 3, 9, 7}, 3,
           {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false}),
      make("3x3 stride 2 padding 1, ceil", {2, 8, 9, 8}, 3, {.stride = 2, .padding = 1, .ceil_mode = true}),
      make("asymmetric padding", {1, 17, 6, 7}, {3, 4}, {.stride = 2, .padding = {0, 1, 1, 2}}),
      make("asymmetric padding, not counted", {1, 2, 6, 7}, {3, 4},
           {.stride = 2, .padding = {0, 1, 1, 2}, .ceil_mode = true, .count_include_pad = false}),
      make("large window", {1, 16, 9, 9}, 6, {.stride = 1, .padding = 3}),
      make("large window, not counted", {1, 2, 3, 4}, {7, 6},
           {.stride = Pair{2, 1}, .padding = {3, 2, 3, 3}, .ceil_mode = true, .count_include_pad = false}),
      make("rows of whole vectors, stride 1", {2, 1, 5, 32}, 3, {.stride = 1, .padding = 1, .count_include_pad = false}),
      make("rows of vectors and a rest, stride 1", {1, 3, 4, 37}, {2, 5}, {.stride = 1, .padding = {0, 1, 1, 2}}),
      make("rows of whole vectors, stride 2", {1, 2, 6, 64}, 2, {}),
      make("rows of whole vectors, stride 2, odd padding", {1, 2, 5, 96}, 3,
           {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false}),
      make("rows of vectors and a rest, stride 2", {2, 1, 4, 71}, {2, 5}, {.stride = 2, .padding = {1, 2, 0, 1}}),
      make("windows of many columns, stride 2, odd padding", {1, 1, 3, 75}, {1, 14}, {.stride = Pair{1, 2}, .padding = {0, 5}}),
      make("windows between which columns are left out", {1, 2, 7, 40}, {3, 1}, {.stride = 2}),
      make("one row of many", {5, 3, 1, 17}, {1, 3}, {.stride = 1, .padding = {0, 1}}),
      make("windows of many rows and columns", {2, 3, 34, 40}, {16, 8}, {}),
      make("windows of many rows and columns that overlap", {1, 2, 23, 41}, {7, 9}, {.stride = Pair{3, 4}, .padding = {3, 4}}),
      make("stride 3", {1, 3, 9, 35}, 3, {.stride = 3, .padding = 1, .count_include_pad = false}),
      adaptive("32x48 to 2x3", {2, 2, 32, 48}, {2, 3}),
      adaptive("33x50 to 4x3", {2, 2, 33, 50}, {4, 3}),
      adaptive("10x10 to 4x7", {1, 2, 10, 10}, {4, 7}),
      adaptive("3x3 to 5x5", {2, 9, 3, 3}, 5),
      adaptive("6x8 to 3x2", {2, 3, 6, 8}, {3, 2}),
      adaptive("7x9 to 1x1", {2, 3, 7, 9}, 1),
  };
}

}  // namespace clnet::testing
