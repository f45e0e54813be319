// Cases of pooling of lines and volumes, and of what pooling of planes has beside its values.
#pragma once

#include <fmt/format.h>

#include "tests/reference/pool/pool.h"

namespace clnet::testing {

inline std::vector<PoolAxis> pool_lines(std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                                        std::vector<std::int64_t> before, std::vector<std::int64_t> after,
                                        std::vector<std::int64_t> dilation, bool ceil_mode) {
  std::vector<PoolAxis> axes;
  for (std::size_t a = 0; a < kernel.size(); ++a)
    axes.push_back({kernel[a], stride[a], before[a], after[a], dilation[a], ceil_mode});
  return axes;
}

// One number for each axis, as the options have them.
inline std::vector<std::int64_t> numbers(std::int64_t v) { return {v}; }
inline std::vector<std::int64_t> numbers(Pair v) { return {v.height, v.width}; }
inline std::vector<std::int64_t> numbers(Triple v) { return {v.depth, v.height, v.width}; }
inline std::vector<std::int64_t> first(Padding1d p) { return {p.begin}; }
inline std::vector<std::int64_t> first(Padding p) { return {p.top, p.left}; }
inline std::vector<std::int64_t> first(Padding3d p) { return {p.front, p.top, p.left}; }
inline std::vector<std::int64_t> last(Padding1d p) { return {p.end}; }
inline std::vector<std::int64_t> last(Padding p) { return {p.bottom, p.right}; }
inline std::vector<std::int64_t> last(Padding3d p) { return {p.back, p.bottom, p.right}; }

template <class Size, class Options>
std::vector<PoolAxis> pool_lines(Size kernel, const Options& o) {
  auto dilation = numbers(kernel);
  std::fill(dilation.begin(), dilation.end(), 1);
  if constexpr (requires { o.dilation; }) dilation = numbers(o.dilation);
  return pool_lines(numbers(kernel), numbers(o.stride.value_or(kernel)), first(o.padding), last(o.padding), dilation,
                    o.ceil_mode);
}

template <class Size>
std::vector<PoolAxis> adaptive_lines(Size output) {
  std::vector<PoolAxis> axes;
  for (auto extent : numbers(output)) axes.push_back({.adaptive = extent});
  return axes;
}

/// `alone`: some windows are padding alone.
template <class Size, class Options>
Case max_pool_case(const std::string& name, MaxPoolResult (*pool)(const Tensor&, Size, const Options&), const Shape& x,
                   Size kernel, const Options& options, bool alone) {
  return {.name = name,
          .inputs = {{x}},
          .run =
              [=](const std::vector<Tensor>& in) {
                const auto [y, indices] = pool(in[0], kernel, options);
                return std::vector{y, indices};
              },
          .reference = [=](const Arrays& in) { return max_pool_reference(in[0], pool_lines(kernel, options)); },
          // Infinity has no differences.
          .gradient = !alone};
}

inline std::vector<Case> max_pool_cases() {
  const auto line = [](const Shape& x, std::int64_t kernel, const MaxPool1dOptions& o, bool alone = false) {
    return max_pool_case(fmt::format("max_pool1d {} by {}", to_string(x), kernel), max_pool1d_with_indices, x, kernel, o, alone);
  };
  const auto plane = [](const Shape& x, Pair kernel, const MaxPool2dOptions& o, bool alone = false) {
    return max_pool_case(fmt::format("max_pool2d {} by {}x{}", to_string(x), kernel.height, kernel.width),
                         max_pool2d_with_indices, x, kernel, o, alone);
  };
  const auto volume = [](const Shape& x, Triple k, const MaxPool3dOptions& o, bool alone = false) {
    return max_pool_case(fmt::format("max_pool3d {} by {}x{}x{}", to_string(x), k.depth, k.height, k.width),
                         max_pool3d_with_indices, x, k, o, alone);
  };
  return {line({2, 3, 17}, 3, {}),
          line({1, 2, 20}, 4, {.stride = 3, .padding = {2, 1}, .dilation = 2, .ceil_mode = true}),
          line({2, 3, 3}, 5, {.ceil_mode = true}),
          line({1, 1, 1}, 2, {.stride = 1, .padding = 2, .dilation = 4}, true),
          plane({2, 3, 7, 8}, {3, 2}, {.stride = Pair{2, 1}, .padding = 1, .ceil_mode = true}),
          plane({1, 2, 9, 6}, 2, {.stride = 1, .padding = {1, 0, 0, 1}, .dilation = {3, 1}}),
          plane({1, 2, 9, 11}, {5, 4}, {.stride = Pair{1, 2}, .padding = {4, 5, 4, 3}, .dilation = {2, 3}}),
          volume({2, 3, 4, 6, 5}, 2, {}),
          volume({1, 2, 7, 8, 9}, {3, 2, 3}, {.stride = Triple{2, 1, 2}, .padding = 1, .ceil_mode = true}),
          volume({1, 2, 7, 6, 7}, {2, 3, 2}, {.padding = {1, 0, 1, 0, 1, 0}, .dilation = {3, 1, 2}, .ceil_mode = true}),
          volume({2, 2, 4, 5, 5}, {1, 3, 3}, {.stride = Triple{1, 2, 2}}),
          volume({2, 2, 5, 3, 4}, {3, 1, 1}, {.stride = Triple{2, 1, 1}}),
          plane({2, 3, 3, 4}, {7, 5}, {.padding = {1, 0}, .ceil_mode = true}),
          volume({1, 2, 2, 2, 7}, {3, 4, 2}, {.stride = Triple{2, 4, 1}, .ceil_mode = true}),
          volume({1, 1, 1, 3, 1}, 2, {.stride = 1, .padding = {2, 1, 2}, .dilation = {4, 1, 4}}, true)};
}

inline std::vector<Case> adaptive_max_pool_cases() {
  const auto make = [](const std::string& name, const Shape& x, auto size, auto pool) {
    return Case{.name = name,
                .inputs = {{x}},
                .run =
                    [=](const std::vector<Tensor>& in) {
                      const auto [y, indices] = pool(in[0], size);
                      return std::vector{y, indices};
                    },
                .reference = [=](const Arrays& in) { return max_pool_reference(in[0], adaptive_lines(size)); }};
  };
  return {
      make("adaptive_max_pool1d 17 to 5", {2, 3, 17}, std::int64_t{5}, adaptive_max_pool1d_with_indices),
      make("adaptive_max_pool2d 7x6 to 3x2", {2, 3, 7, 6}, Pair{3, 2}, adaptive_max_pool2d_with_indices),
      make("adaptive_max_pool3d 5x6x7 to 2x3x4", {1, 2, 5, 6, 7}, Triple{2, 3, 4}, adaptive_max_pool3d_with_indices),
      make("adaptive_max_pool3d 2x4x3 to 3x2x5", {2, 1, 2, 4, 3}, Triple{3, 2, 5}, adaptive_max_pool3d_with_indices),
      make("adaptive_max_pool3d to 1", {1, 2, 3, 4, 5}, Triple{1}, adaptive_max_pool3d_with_indices),
      make("adaptive_max_pool2d, rows kept", {2, 3, 7, 6}, Pair{-1, 4}, adaptive_max_pool2d_with_indices),
      make("adaptive_max_pool3d, depth and width kept", {1, 2, 3, 7, 5}, Triple{-1, 2, -1}, adaptive_max_pool3d_with_indices)};
}

template <class Size, class Options>
Case avg_pool_case(const std::string& name, Tensor (*pool)(const Tensor&, Size, const Options&), const Shape& x, Size kernel,
                   const Options& o) {
  return {
      .name = name,
      .inputs = {{x}},
      .run = [=](const std::vector<Tensor>& in) { return std::vector{pool(in[0], kernel, o)}; },
      .reference =
          [=](const Arrays& in) {
            return Arrays{avg_pool_reference(in[0], pool_lines(kernel, o), o.count_include_pad, o.divisor_override.value_or(0))};
          }};
}

inline std::vector<Case> avg_pool_cases() {
  const auto line = [](const Shape& x, std::int64_t kernel, const AvgPool1dOptions& o) {
    return avg_pool_case(fmt::format("avg_pool1d {} by {}", to_string(x), kernel), avg_pool1d, x, kernel, o);
  };
  const auto plane = [](const Shape& x, Pair kernel, const AvgPool2dOptions& o) {
    return avg_pool_case(fmt::format("avg_pool2d {} by {}x{}", to_string(x), kernel.height, kernel.width), avg_pool2d, x, kernel,
                         o);
  };
  const auto volume = [](const Shape& x, Triple k, const AvgPool3dOptions& o) {
    return avg_pool_case(fmt::format("avg_pool3d {} by {}x{}x{}", to_string(x), k.depth, k.height, k.width), avg_pool3d, x, k, o);
  };
  const auto adaptive = [](const std::string& name, const Shape& x, auto size, auto pool) {
    return Case{.name = name,
                .inputs = {{x}},
                .run = [=](const std::vector<Tensor>& in) { return std::vector{pool(in[0], size)}; },
                .reference = [=](const Arrays& in) { return Arrays{avg_pool_reference(in[0], adaptive_lines(size), false)}; }};
  };
  return {line({2, 3, 17}, 3, {}),
          line({1, 2, 20}, 4, {.stride = 3, .padding = {2, 1}, .ceil_mode = true}),
          line({1, 2, 20}, 4, {.stride = 3, .padding = {2, 1}, .ceil_mode = true, .count_include_pad = false}),
          line({2, 3, 3}, 5, {.stride = 3, .ceil_mode = true}),
          line({1, 2, 9}, 3, {.stride = 2, .divisor_override = 5}),
          plane({2, 3, 7, 8}, {3, 2}, {.stride = Pair{2, 1}, .padding = 1, .ceil_mode = true, .divisor_override = 4}),
          plane({1, 2, 5, 5}, 2, {.divisor_override = -3}),
          volume({2, 3, 4, 6, 5}, 2, {}),
          volume({1, 2, 7, 8, 9}, {3, 2, 3}, {.stride = Triple{2, 1, 2}, .padding = 1, .ceil_mode = true}),
          volume({1, 2, 7, 8, 9}, {3, 2, 3},
                 {.stride = Triple{2, 1, 2}, .padding = 1, .ceil_mode = true, .count_include_pad = false}),
          volume({1, 2, 7, 8, 9}, {3, 2, 3}, {.padding = {1, 0, 1, 0, 1, 0}, .ceil_mode = true, .divisor_override = 7}),
          volume({2, 2, 4, 5, 5}, {1, 3, 3}, {.stride = Triple{1, 2, 2}}),
          volume({1, 2, 2, 2, 7}, {3, 4, 2}, {.stride = Triple{2, 4, 1}, .ceil_mode = true}),
          volume({2, 2, 5, 3, 4}, {3, 1, 1}, {.stride = Triple{2, 1, 1}, .divisor_override = 2}),
          adaptive("adaptive_avg_pool1d 17 to 5", {2, 3, 17}, std::int64_t{5}, adaptive_avg_pool1d),
          adaptive("adaptive_avg_pool1d 12 to 1", {2, 3, 12}, std::int64_t{1}, adaptive_avg_pool1d),
          adaptive("adaptive_avg_pool3d 5x6x7 to 2x3x4", {1, 2, 5, 6, 7}, Triple{2, 3, 4}, adaptive_avg_pool3d),
          adaptive("adaptive_avg_pool3d 2x4x3 to 3x2x5", {2, 1, 2, 4, 3}, Triple{3, 2, 5}, adaptive_avg_pool3d),
          adaptive("adaptive_avg_pool3d to 1", {1, 2, 3, 4, 5}, Triple{1}, adaptive_avg_pool3d),
          adaptive("adaptive_avg_pool1d, kept", {2, 3, 7}, std::int64_t{-1}, adaptive_avg_pool1d),
          adaptive("adaptive_avg_pool2d, columns kept", {2, 3, 7, 6}, Pair{2, -1}, adaptive_avg_pool2d),
          adaptive("adaptive_avg_pool3d, height kept", {1, 2, 5, 6, 7}, Triple{2, -1, 3}, adaptive_avg_pool3d)};
}

inline std::vector<Case> lp_pool_cases() {
  const auto make = [](const std::string& name, const Shape& x, double power, auto kernel, auto stride, bool ceil_mode,
                       auto pool) {
    const auto ones = std::vector<std::int64_t>(numbers(kernel).size(), 1), zeros = std::vector<std::int64_t>(ones.size(), 0);
    const auto axes = pool_lines(numbers(kernel), numbers(stride), zeros, zeros, ones, ceil_mode);
    // Of positive elements: other powers have no other.
    return Case{.name = name,
                .inputs = {{x, 0.2, 1.5}},
                .run =
                    [=](const std::vector<Tensor>& in) {
                      return std::vector{pool(in[0], power, kernel, std::optional(stride), ceil_mode)};
                    },
                .reference = [=](const Arrays& in) { return Arrays{lp_pool_reference(in[0], power, axes)}; }};
  };
  return {make("lp_pool1d of power 3", {2, 3, 11}, 3, std::int64_t{3}, std::int64_t{2}, false, lp_pool1d),
          make("lp_pool1d of power 1.5, ceil", {2, 3, 12}, 1.5, std::int64_t{3}, std::int64_t{2}, true, lp_pool1d),
          make("lp_pool2d of power 2", {2, 3, 6, 7}, 2, Pair{2, 3}, Pair{2, 1}, false, lp_pool2d),
          make("lp_pool2d of power 1", {2, 3, 7, 7}, 1, Pair{2, 3}, Pair{2}, true, lp_pool2d),
          make("lp_pool2d of power 2, ceil, a window larger than the plane", {2, 3, 3, 4}, 2, Pair{5}, Pair{5}, true, lp_pool2d),
          make("lp_pool3d of power 2", {1, 2, 5, 4, 6}, 2, Triple{2, 2, 3}, Triple{1, 2, 3}, false, lp_pool3d)};
}

}  // namespace clnet::testing
