#pragma once

#include <fmt/format.h>

#include "tests/reference/conv/conv2d.h"

namespace clnet::testing {

struct Conv2dConfig {
  Shape x;
  std::int64_t out = 1;
  Pair kernel = 1;
  Conv2dFuncOptions options = {};
  bool bias = true;

  Shape weight() const { return {out, x[1] / options.groups, kernel.height, kernel.width}; }
  /// The finite differences of a case as large as this take too long.
  bool large() const { return conv2d_output(x, weight(), options).numel() * weight().numel() > 20000 * out; }
  std::string text() const {
    const auto& [stride, p, dilation, groups] = options;
    return fmt::format("conv2d {} to {}, {}x{} stride {}x{} padding {},{},{},{} dilation {}x{} groups {}{}", to_string(x), out,
                       kernel.height, kernel.width, stride.height, stride.width, p.top, p.left, p.bottom, p.right,
                       dilation.height, dilation.width, groups, bias ? "" : " no bias");
  }
};

inline Case forward_case(const Conv2dConfig& config) {
  std::vector<Input> inputs{{config.x}, {config.weight()}};
  if (config.bias) inputs.push_back({{config.out}});
  return {.name = config.text(),
          .inputs = std::move(inputs),
          .run = [options = config.options](
                     const auto& in) { return std::vector{conv2d(in[0], in[1], in.size() == 3 ? in[2] : Tensor{}, options)}; },
          .reference = [options = config.options](const auto& in) { return conv2d_reference(in, options); },
          .gradient = !config.large()};
}

/// The gradients as a function of x, weight and the output's gradient; their own gradients are those of second order.
inline Case gradients_case(const Conv2dConfig& config) {
  return {.name = "gradients of " + config.text(),
          .inputs = {{config.x}, {config.weight()}, {conv2d_output(config.x, config.weight(), config.options)}},
          .run =
              [options = config.options](const auto& in) {
                const std::vector<Tensor> y{conv2d(in[0], in[1], {}, options)}, g{in[2]}, wanted{in[0], in[1]};
                return gradients(y, g, wanted);
              },
          .reference = [options = config.options](const auto& in) { return conv2d_gradients_reference(in, options); },
          .gradient = !config.large()};
}

inline std::vector<Conv2dConfig> conv2d_configs() {
  std::vector<Conv2dConfig> configs{
      // Every option by itself and with others.
      {{1, 1, 5, 5}, 1, 1},
      {{2, 4, 9, 7}, 6, {3, 5}, {.padding = {1, 2}}},
      {{2, 3, 8, 8}, 4, {2, 4}, {.padding = {1, 3}}},
      {{2, 3, 7, 6}, 5, 3, {.padding = {0, 1, 2, 3}}, false},
      {{1, 5, 4, 4}, 3, 4, {.stride = 4}},
      {{2, 4, 8, 8}, 4, 3, {.stride = 3, .groups = 4}},
      {{1, 2, 15, 15}, 3, 3, {.stride = 2, .padding = {3, 1}, .dilation = {3, 2}}},
      {{1, 3, 11, 13}, 4, 3, {.stride = {3, 2}, .padding = 2, .dilation = {2, 3}}},
      {{1, 2, 10, 12}, 3, {2, 3}, {.stride = {4, 6}, .padding = 3, .dilation = {2, 4}}},
      {{4, 5, 1, 17}, 3, {1, 4}, {.stride = {1, 3}, .padding = {0, 1}}},
      {{1, 3, 20, 4}, 2, 3, {.stride = {4, 1}, .padding = {0, 1}}},
      {{2, 8, 6, 6}, 12, 3, {.padding = 1, .groups = 4}},
      // Depthwise, and with several outputs per channel. The first two are small enough for Oclgrind.
      {{1, 2, 5, 4}, 2, 3, {.padding = 1, .groups = 2}},
      {{1, 2, 5, 4}, 4, 2, {.stride = 2, .padding = 1, .groups = 2}},
      {{2, 16, 7, 9}, 16, 3, {.stride = {1, 2}, .padding = 1, .groups = 16}},
      {{1, 12, 9, 9}, 24, 3, {.stride = 2, .padding = 1, .groups = 12}},
      {{3, 5, 7, 7}, 5, 3, {.padding = 1, .groups = 5}},
      {{2, 6, 14, 14}, 6, 3, {.stride = 2, .padding = 1, .groups = 6}},
      {{2, 5, 13, 14}, 5, 5, {.stride = 2, .padding = 2, .groups = 5}, false},
      {{2, 7, 14, 20}, 7, {3, 4}, {.padding = {0, 1, 2, 3}, .groups = 7}},
      {{1, 9, 37, 29}, 9, {4, 2}, {.stride = 2, .padding = {3, 0, 1, 2}, .groups = 9}},
      {{1, 4, 2, 33}, 4, 7, {.padding = 3, .groups = 4}},
      {{2, 3, 60, 100}, 3, 3, {.padding = 1, .groups = 3}},
      {{5, 2, 1, 1}, 2, 3, {.padding = 2, .groups = 2}},
      {{1, 3, 40, 19}, 3, 5, {.padding = 2, .groups = 3}, false},
      {{2, 6, 5, 3}, 6, 3, {.padding = 1, .groups = 6}},
      {{2, 7, 11, 5}, 7, {2, 4}, {.padding = {1, 0, 1, 2}, .groups = 7}},
      {{2, 4, 18, 16}, 4, {5, 3}, {.padding = 1, .groups = 4}, false},
      {{3, 3, 10, 37}, 3, 3, {.padding = 1, .groups = 3}},
      {{1, 6, 28, 9}, 6, {1, 5}, {.padding = {0, 0, 4, 0}, .groups = 6}},
      {{1, 2, 9, 8}, 2, 3, {.stride = {1, 2}, .padding = 2, .dilation = 2, .groups = 2}},
      {{1, 3, 23, 14}, 6, {3, 2}, {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 3}},
      {{1, 2, 30, 9}, 2, 3, {.padding = {12, 1}, .dilation = {12, 1}, .groups = 2}},
      {{2, 2, 13, 11}, 4, 7, {.stride = 2, .padding = {1, 3}, .groups = 2}},
      {{1, 2, 11, 10}, 2, {9, 8}, {.stride = {2, 1}, .padding = 4, .groups = 2}},
      // Kernels wider than the image, images of one column, strides beyond the kernel.
      {{2, 2, 2, 3}, 3, 5, {.padding = 2}},
      {{2, 3, 9, 1}, 2, {3, 1}, {.padding = {1, 0}}},
      {{1, 2, 9, 9}, 3, 2, {.stride = {5, 4}}},
      {{1, 3, 6, 6}, 2, 6},
      {{1, 2, 3, 3}, 2, 3, {.padding = 4}},
      // 1x1 with a stride: most of the input takes no part.
      {{2, 9, 5, 7}, 10, 1, {.stride = 2}, false},
      {{3, 11, 9, 7}, 13, 1},
      {{2, 2, 5, 4}, 9, 1, {}, false},
      {{5, 14, 25, 21}, 1, 1},
      {{1, 5, 60, 61}, 6, 1},
      // An empty batch.
      {{0, 3, 4, 4}, 2, 3},
      // Larger than one tile, block or chunk of a solver.
      {{2, 40, 14, 14}, 48, 3, {.padding = 1}},
      {{1, 3, 38, 34}, 20, 7, {.stride = 2, .padding = 3}},
      {{9, 130, 3, 5}, 9, {2, 1}},
      {{2, 34, 9, 11}, 24, 3, {.stride = 2, .padding = 1}},
      {{1, 24, 8, 10}, 35, {5, 2}, {.stride = {3, 1}, .padding = 1, .dilation = {1, 2}}},
      {{1, 32, 6, 7}, 32, 3, {.padding = 1, .groups = 2}},
      {{2, 5, 2, 1300}, 18, {2, 3}, {.padding = {1, 2}}},
      {{1, 12, 3, 2100}, 18, {3, 5}, {.stride = {2, 2}, .padding = {1, 40}, .dilation = {1, 3}, .groups = 2}},
      // More output pixels than the reference solver's gradient of the weight sums in one go.
      {{3, 1, 150, 160}, 1, 3, {.padding = 1}},
  };
  // Channel counts around vector widths.
  for (const std::int64_t channels : {5, 16, 17, 33})
    for (const std::int64_t out : {7, 8, 24, 33}) configs.push_back({{2, channels, 5, 6}, out, 3, {.padding = 1}, out % 2 == 0});
  return configs;
}

inline std::vector<Case> conv2d_cases() {
  std::vector<Case> cases;
  for (const auto& config : conv2d_configs()) {
    cases.push_back(forward_case(config));
    cases.push_back(gradients_case(config));
  }
  return cases;
}

}  // namespace clnet::testing
