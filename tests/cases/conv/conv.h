// Cases of conv1d, conv3d and their transposed ones.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/reference/conv/conv.h"

namespace clnet::testing {

inline ConvLines conv_lines(const Conv1dFuncOptions& o) { return {{o.stride, o.padding.begin, o.padding.end, o.dilation}}; }
inline ConvLines conv_lines(const Conv3dFuncOptions& o) {
  return {{o.stride.depth, o.padding.front, o.padding.back, o.dilation.depth},
          {o.stride.height, o.padding.top, o.padding.bottom, o.dilation.height},
          {o.stride.width, o.padding.left, o.padding.right, o.dilation.width}};
}
inline ConvLines conv_lines(const ConvTranspose1dFuncOptions& o) {
  return {{o.stride, o.padding.begin, o.padding.end, o.dilation, o.output_padding}};
}
inline ConvLines conv_lines(const ConvTranspose3dFuncOptions& o) {
  auto lines = conv_lines(Conv3dFuncOptions{o.stride, o.padding, o.dilation});
  lines[0].extra = o.output_padding.depth;
  lines[1].extra = o.output_padding.height;
  lines[2].extra = o.output_padding.width;
  return lines;
}

inline std::string conv_text(const char* name, const Shape& x, const Shape& weight, const ConvLines& lines, std::int64_t groups,
                             bool bias) {
  auto text = fmt::format("{} {} {}", name, to_string(x), to_string(weight));
  for (const auto& l : lines) text += fmt::format(", s{} p{},{} d{} +{}", l.stride, l.before, l.after, l.dilation, l.extra);
  return text + fmt::format(" groups {}{}", groups, bias ? "" : " no bias");
}

/// Forward; `second`: and the gradients as a function of x, weight and the output's gradient, whose own are those of second
/// order.
template <class Options>
void add_conv_cases(std::vector<Case>& cases, const char* name,
                    Tensor (*conv)(const Tensor&, const Tensor&, const Tensor&, const Options&), const Shape& x,
                    const Shape& weight, const Options& options, bool bias = true, bool second = false) {
  const auto lines = conv_lines(options);
  const auto text = conv_text(name, x, weight, lines, options.groups, bias);
  std::vector<Input> inputs{{x}, {weight}};
  if (bias) inputs.push_back({{weight[0]}});
  cases.push_back(
      {.name = text,
       .inputs = std::move(inputs),
       .run = [=](const auto& in) { return std::vector{conv(in[0], in[1], in.size() == 3 ? in[2] : Tensor{}, options)}; },
       .reference = [=](const auto& in) { return conv_reference(in, lines, options.groups); }});
  if (!second) return;
  cases.push_back({.name = "gradients of " + text,
                   .inputs = {{x}, {weight}, {conv_output_shape(x, weight, lines)}},
                   .run =
                       [=](const auto& in) {
                         const std::vector<Tensor> y{conv(in[0], in[1], {}, options)}, g{in[2]}, wanted{in[0], in[1]};
                         return gradients(y, g, wanted);
                       },
                   .reference = [=](const auto& in) { return conv_gradients_reference(in, lines, options.groups); }});
}

template <class Options>
void add_transposed_case(std::vector<Case>& cases, const char* name,
                         Tensor (*conv)(const Tensor&, const Tensor&, const Tensor&, const Options&), const Shape& x,
                         const Shape& weight, const Options& options, bool bias = true) {
  const auto lines = conv_lines(options);
  std::vector<Input> inputs{{x}, {weight}};
  if (bias) inputs.push_back({{weight[1] * options.groups}});
  cases.push_back(
      {.name = conv_text(name, x, weight, lines, options.groups, bias),
       .inputs = std::move(inputs),
       .run = [=](const auto& in) { return std::vector{conv(in[0], in[1], in.size() == 3 ? in[2] : Tensor{}, options)}; },
       .reference = [=](const auto& in) { return conv_transpose_reference(in, lines, options.groups); }});
}

inline std::vector<Case> conv1d_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Shape& weight, const Conv1dFuncOptions& options, bool bias = true,
                       bool second = false) { add_conv_cases(cases, "conv1d", conv1d, x, weight, options, bias, second); };
  add({2, 4, 17}, {6, 4, 3}, {});
  add({1, 3, 20}, {5, 3, 4}, {.stride = 3, .padding = {2, 1}, .dilation = 2}, false, true);
  add({2, 6, 13}, {6, 1, 3}, {.padding = 4, .dilation = 4, .groups = 6});
  add({2, 4, 9}, {6, 2, 1}, {.groups = 2});
  add({1, 2, 3}, {3, 2, 3}, {.padding = 5});
  add({1, 1, 5}, {1, 1, 5}, {});
  add({3, 8, 16}, {16, 8, 4}, {.padding = Padding1d::same(4)});
  add({0, 2, 5}, {3, 2, 2}, {});
  return cases;
}

inline std::vector<Case> conv_transpose1d_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Shape& weight, const ConvTranspose1dFuncOptions& options, bool bias = true) {
    add_transposed_case(cases, "conv_transpose1d", conv_transpose1d, x, weight, options, bias);
  };
  add({2, 3, 7}, {3, 4, 3}, {});
  add({1, 4, 6}, {4, 3, 4}, {.stride = 3, .padding = {1, 2}, .output_padding = 2, .groups = 2});
  add({2, 2, 5}, {2, 3, 3}, {.padding = 1, .dilation = 2}, false);
  return cases;
}

inline std::vector<Case> conv3d_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Shape& weight, const Conv3dFuncOptions& options, bool bias = true,
                       bool second = false) { add_conv_cases(cases, "conv3d", conv3d, x, weight, options, bias, second); };
  add({2, 3, 5, 6, 7}, {4, 3, 3, 3, 3}, {.padding = 1});
  add({1, 2, 7, 5, 6}, {3, 2, 2, 3, 2}, {.stride = {3, 2, 1}, .padding = {2, 0, 1, 0, 1, 1}, .dilation = {2, 1, 2}}, false, true);
  add({1, 4, 4, 5, 4}, {6, 2, 3, 2, 2}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}, .groups = 2}, true, true);
  add({2, 3, 4, 3, 3}, {6, 1, 2, 3, 3}, {.padding = {0, 1, 1}, .groups = 3});
  // Padding beyond the kernel, kernels beyond the volume, one slice, a stride beyond the kernel.
  add({1, 2, 2, 3, 3}, {2, 2, 3, 3, 3}, {.padding = 4});
  add({1, 2, 1, 4, 4}, {3, 2, 1, 3, 3}, {});
  add({1, 2, 7, 4, 4}, {3, 2, 1, 2, 2}, {.stride = {3, 2, 2}});
  // What needs no unfolding: pointwise, by slices and along the depth alone.
  add({2, 5, 3, 4, 5}, {4, 5, 1, 1, 1}, {});
  add({2, 4, 3, 4, 9}, {4, 2, 1, 1, 3}, {.padding = {0, 0, 1}, .groups = 2});
  add({2, 3, 6, 3, 4}, {4, 3, 3, 1, 1}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}});
  add({1, 16, 6, 9, 10}, {16, 16, 3, 3, 3}, {.padding = Padding3d::same(3)});
  // Planes too small for vectors.
  add({2, 2, 5, 1, 2}, {3, 2, 3, 1, 2}, {.stride = {2, 1, 1}, .padding = {1, 0, 1}}, true, true);
  // Several blocks of channels and of taps along the depth, some of which only see padding.
  add({2, 20, 3, 7, 9}, {18, 20, 3, 3, 2}, {.stride = {1, 2, 2}, .padding = 1});
  add({1, 6, 4, 5, 6}, {10, 3, 3, 4, 2}, {.stride = {3, 2, 1}, .padding = {4, 1, 2}, .groups = 2}, true, true);
  add({0, 2, 3, 3, 3}, {3, 2, 2, 2, 2}, {});
  return cases;
}

inline std::vector<Case> conv_transpose3d_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Shape& weight, const ConvTranspose3dFuncOptions& options, bool bias = true) {
    add_transposed_case(cases, "conv_transpose3d", conv_transpose3d, x, weight, options, bias);
  };
  add({2, 3, 3, 4, 5}, {3, 4, 3, 3, 3}, {});
  add({1, 4, 3, 2, 3}, {4, 3, 2, 3, 2}, {.stride = {3, 2, 1}, .padding = {1, 1, 0}, .output_padding = {2, 1, 0}, .groups = 2});
  add({1, 2, 3, 3, 3}, {2, 3, 3, 2, 2}, {.padding = {2, 0, 1, 0, 1, 1}, .dilation = {2, 1, 2}}, false);
  add({2, 4, 3, 3, 2}, {4, 3, 1, 1, 1}, {});
  add({1, 3, 2, 3, 3}, {3, 1, 1, 3, 3}, {.stride = 2, .groups = 3});
  add({1, 2, 4, 3, 6}, {2, 3, 4, 1, 1}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}});
  // Planes too small for vectors.
  add({2, 2, 3, 1, 1}, {2, 3, 3, 1, 2}, {.stride = {2, 1, 1}});
  // Several blocks of channels; phases with more taps than others, with none, and of different extents.
  add({2, 20, 2, 3, 4}, {20, 18, 4, 4, 2}, {.stride = 2, .padding = {1, 1, 0}, .output_padding = {1, 0, 1}});
  add({1, 6, 3, 2, 3}, {6, 4, 3, 2, 4}, {.stride = {3, 2, 4}, .padding = {0, 1, 0}, .output_padding = {1, 1, 3}, .groups = 2});
  add({1, 3, 3, 2, 3}, {3, 5, 2, 2, 4}, {.stride = {1, 2, 2}, .padding = {1, 0, 2}, .dilation = {1, 2, 3}}, false);
  add({1, 4, 2, 3, 3}, {4, 6, 2, 3, 3}, {.stride = 2, .padding = 1});
  return cases;
}

}  // namespace clnet::testing
