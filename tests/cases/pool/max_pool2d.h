#pragma once

#include "tests/cases/case.h"
#include "tests/reference/pool/pool2d.h"

namespace clnet::testing {

inline std::vector<Case> max_pool2d_cases() {
  const auto make = [](std::string name, Shape x, Pair kernel, MaxPool2dOptions o) {
    const auto stride = o.stride.value_or(kernel);
    const PoolAxis v{kernel.height, stride.height, o.padding.top, o.padding.bottom, o.dilation.height, o.ceil_mode};
    const PoolAxis h{kernel.width, stride.width, o.padding.left, o.padding.right, o.dilation.width, o.ceil_mode};
    return Case{.name = "max_pool2d " + name,
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{max_pool2d(in[0], kernel, o)}; },
                .reference = [=](const Arrays& in) { return Arrays{pool2d_reference(in[0], v, h, true)}; }};
  };
  const auto adaptive = [](std::string name, Shape x, Pair size) {
    const PoolAxis v{.adaptive = size.height}, h{.adaptive = size.width};
    return Case{.name = "adaptive_max_pool2d " + name,
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{adaptive_max_pool2d(in[0], size)}; },
                .reference = [=](const Arrays& in) { return Arrays{pool2d_reference(in[0], v, h, true)}; }};
  };
  return {
      make("2x2", {2, 3, 8, 8}, 2, {}),
      make("2x2, odd extents", {4, 5, 7, 9}, 2, {}),
      make("2x2, ceil", {4, 5, 7, 9}, 2, {.ceil_mode = true}),
      make("3x3 stride 2 padding 1", {2, 8, 14, 15}, 3, {.stride = 2, .padding = 1}),
      make("3x3 stride 1 padding 1", {2, 2, 6, 6}, 3, {.stride = 1, .padding = 1}),
      make("3x2 stride 1x3 padding 1x0", {1, 4, 10, 6}, {3, 2}, {.stride = Pair{1, 3}, .padding = {1, 0}}),
      make("dilation 2x1, ceil", {1, 2, 11, 10}, 3, {.stride = Pair{3, 2}, .padding = 1, .dilation = {2, 1}, .ceil_mode = true}),
      make("ceil whose last window would start in the padding", {1, 1, 5, 5}, 2, {.stride = 2, .padding = 1, .ceil_mode = true}),
      make("ceil, a window larger than the plane", {2, 3, 3, 4}, 5, {.stride = 3, .ceil_mode = true}),
      make("ceil, windows taller than the plane", {1, 2, 3, 40}, {6, 3}, {.stride = Pair{4, 1}, .ceil_mode = true}),
      make("ceil, windows taller than the padded plane", {1, 2, 2, 37}, {7, 2}, {.padding = {2, 1, 1, 0}, .ceil_mode = true}),
      make("ceil, a dilated window larger than the plane", {1, 2, 3, 9}, 3, {.stride = 5, .dilation = 3, .ceil_mode = true}),
      make("asymmetric padding", {1, 17, 6, 7}, {3, 4}, {.stride = 2, .padding = {0, 1, 1, 2}}),
      make("stride beyond the kernel", {4, 3, 4, 4}, 1, {.stride = 2}),
      make("the whole plane", {3, 1, 5, 5}, 5, {}),
      make("large window", {1, 16, 9, 9}, 6, {.stride = 1, .padding = 3}),
      adaptive("10x10 to 4x7", {1, 2, 10, 10}, {4, 7}),
      adaptive("3x3 to 5x5", {2, 9, 3, 3}, 5),
      adaptive("8x8 to 1x1", {2, 3, 8, 8}, 1),
      adaptive("6x8 to 3x2", {2, 3, 6, 8}, {3, 2}),
  };
}

}  // namespace clnet::testing
