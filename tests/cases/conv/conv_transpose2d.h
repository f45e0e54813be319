#pragma once

#include <fmt/format.h>

#include "tests/reference/conv/conv2d.h"

namespace clnet::testing {

/// `weight` is {in, out / groups, kh, kw}.
inline Case conv_transpose2d_case(const Shape& x, const Shape& weight, const ConvTranspose2dFuncOptions& options,
                                  bool bias = true) {
  std::vector<Input> inputs{{x}, {weight}};
  if (bias) inputs.push_back({{weight[1] * options.groups}});
  const auto& [stride, p, extra, dilation, groups] = options;
  return {
      .name = fmt::format("conv_transpose2d {} {} stride {}x{} padding {},{},{},{}+{},{} dilation {}x{} groups {}{}",
                          to_string(x), to_string(weight), stride.height, stride.width, p.top, p.left, p.bottom, p.right,
                          extra.height, extra.width, dilation.height, dilation.width, groups, bias ? "" : " no bias"),
      .inputs = std::move(inputs),
      .run =
          [=](const auto& in) { return std::vector{conv_transpose2d(in[0], in[1], in.size() == 3 ? in[2] : Tensor{}, options)}; },
      .reference = [=](const auto& in) { return conv_transpose2d_reference(in, options); }};
}

inline std::vector<Case> conv_transpose2d_cases() {
  return {
      conv_transpose2d_case({2, 3, 5, 5}, {3, 4, 3, 3}, {}),
      conv_transpose2d_case({2, 3, 5, 5}, {3, 4, 3, 3}, {.stride = 2, .padding = 1, .output_padding = 1}),
      conv_transpose2d_case({2, 2, 3, 3}, {2, 3, 2, 2}, {.stride = 2}, false),
      conv_transpose2d_case({2, 4, 5, 3}, {4, 3, 3, 5}, {.stride = {2, 1}, .padding = {1, 2}, .groups = 2}),
      conv_transpose2d_case({1, 3, 4, 4}, {3, 2, 3, 3}, {.dilation = 2}),
      conv_transpose2d_case({1, 3, 4, 5}, {3, 2, 3, 3}, {.stride = {1, 2}, .output_padding = {2, 1}, .dilation = {3, 2}}),
      conv_transpose2d_case({2, 16, 4, 4}, {16, 8, 4, 4}, {.stride = 2, .padding = 1}),
      conv_transpose2d_case({1, 6, 4, 3}, {6, 1, 3, 3}, {.stride = 3, .padding = {0, 1, 1, 0}, .groups = 6}),
      conv_transpose2d_case({1, 2, 3, 3}, {2, 3, 1, 1}, {.stride = 3}),
      // No element of the result sees one of the input.
      conv_transpose2d_case({2, 3, 2, 2}, {3, 4, 1, 1}, {.stride = 3, .padding = 1}),
      conv_transpose2d_case({0, 2, 3, 3}, {2, 3, 2, 2}, {}),
  };
}

}  // namespace clnet::testing
