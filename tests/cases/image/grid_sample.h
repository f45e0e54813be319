// Cases of grid_sample, affine_grid, roi_align and nms.
#pragma once

#include <fmt/format.h>

#include "tests/cases/meaning.h"
#include "tests/reference/image/grid_sample.h"

namespace clnet::testing {

inline std::vector<Case> grid_sample_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Shape& grid, const GridSampleOptions& options) {
    cases.push_back({.name = fmt::format("grid_sample of {} at {}, mode {}, padding {}{}", to_string(x), to_string(grid),
                                         static_cast<int>(options.mode), static_cast<int>(options.padding),
                                         options.align_corners ? ", corners" : ""),
                     .inputs = {{x}, {grid, -1.4, 1.4}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{grid_sample(in[0], in[1], options)}; },
                     .reference =
                         [=](const Arrays& in) {
                           return Arrays{x.rank() == 5 ? reference::grid_sample_volume(in[0], in[1], options)
                                                       : reference::grid_sample(in[0], in[1], options)};
                         },
                     // Coordinates have roundings, and slopes multiply them.
                     .slack = 20,
                     // A rounded grid samples elsewhere.
                     .all_dtypes = options.mode != Interpolation::nearest});
  };
  for (auto mode : {Interpolation::bilinear, Interpolation::nearest, Interpolation::bicubic})
    for (auto padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (bool align_corners : {false, true}) add({2, 3, 5, 4}, {2, 3, 6, 2}, {mode, padding, align_corners});
  add({1, 2, 1, 1}, {1, 2, 2, 2}, {.padding = GridPadding::reflection, .align_corners = true});
  add({1, 1, 1, 7}, {1, 9, 1, 2}, {});
  add({2, 1, 3, 3}, {2, 0, 4, 2}, {});
  for (auto mode : {Interpolation::bilinear, Interpolation::nearest, Interpolation::bicubic})
    for (auto padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      add({2, 3, 3, 5, 4}, {2, 2, 2, 3, 3}, {mode, padding, padding == GridPadding::border});
  add({1, 10, 2, 3, 2}, {1, 1, 2, 2, 3}, {});
  return cases;
}

inline std::vector<Case> affine_grid_cases() {
  std::vector<Case> cases;
  for (const auto& size : {Shape{2, 3, 4, 5}, Shape{1, 1, 1, 6}, Shape{2, 1, 3, 2, 4}})
    for (bool align_corners : {false, true}) {
      const auto dims = size.rank() - 2;
      cases.push_back(
          {.name = fmt::format("affine_grid of {}{}", to_string(size), align_corners ? ", corners" : ""),
           .inputs = {{{size[0], dims, dims + 1}}},
           .run = [=](const std::vector<Tensor>& in) { return std::vector{affine_grid(in[0], size, align_corners)}; },
           .reference = [=](const Arrays& in) { return Arrays{reference::affine_grid(in[0], size, align_corners)}; }});
    }
  return cases;
}

/// Boxes {K, 5} of images in turn: corners, and sides behind them, both in eighths, so that their sums are exact in every dtype.
inline Tensor boxes_of(const Tensor& corners_and_sides, std::int64_t images) {
  const bool floating = is_floating(corners_and_sides.dtype());
  const Tensor eighths = floating ? floor(corners_and_sides * 8.0) / 8.0 : corners_and_sides;
  const auto count = eighths.size(0);
  std::vector<float> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<float>(k % images));
  const Tensor first = slice(eighths, 1, 0, 2), image = cast(Tensor::from(numbers, {count, 1}), first.dtype());
  return concat({image, first, first + slice(eighths, 1, 2, 4)}, 1);
}

inline Array boxes_of(const Array& corners_and_sides, std::int64_t images) {
  const auto count = corners_and_sides.shape[0];
  const auto eighths = [&](std::int64_t i) { return std::floor(corners_and_sides[i] * 8) / 8; };
  Array boxes({count, 5});
  for (std::int64_t k = 0; k < count; ++k) {
    boxes[5 * k] = static_cast<double>(k % images);
    for (int d = 0; d < 2; ++d) {
      boxes[5 * k + 1 + d] = eighths(4 * k + d);
      boxes[5 * k + 3 + d] = eighths(4 * k + d) + eighths(4 * k + 2 + d);
    }
  }
  return boxes;
}

inline Case roi_align_case(const Shape& x, std::int64_t boxes, Pair size, const RoiAlignOptions& options) {
  return {.name = fmt::format("roi_align of {} boxes of {} to {} x {}, {} samples{}", boxes, to_string(x), size.height,
                              size.width, options.sampling_ratio, options.aligned ? ", aligned" : ""),
          .inputs = {{x}, {{boxes, 4}, 0.1, 6, Dtype::f32, false}},
          .run =
              [=](const std::vector<Tensor>& in) {
                return std::vector{roi_align(in[0], in[1].defined() ? boxes_of(in[1], x[0]) : in[1], size, options)};
              },
          .reference =
              [=](const Arrays& in) {
                return Arrays{reference::roi_align(in[0], boxes_of(in[1], x[0]), size.height, size.width, options)};
              },
          .slack = 20};
}

inline std::vector<Case> roi_align_cases() {
  std::vector<Case> cases;
  for (bool aligned : {false, true}) {
    cases.push_back(roi_align_case({2, 3, 6, 7}, 5, {2, 3}, {.spatial_scale = 0.75, .sampling_ratio = 2, .aligned = aligned}));
    cases.push_back(roi_align_case({1, 2, 9, 5}, 3, {3, 1}, {.sampling_ratio = 1, .aligned = aligned}));
    cases.push_back(roi_align_case({1, 1, 4, 4}, 2, 2, {.sampling_ratio = 3, .aligned = aligned}));
  }
  return cases;
}

inline const RegisterCases grid_sample_registered{"grid_sample", grid_sample_cases};
inline const RegisterCases affine_grid_registered{"affine_grid", affine_grid_cases};
inline const RegisterCases roi_align_registered{"roi_align", roi_align_cases};

/// Calls visit(entry of places, sample, pixel of x) for each tap of each channel that is inside.
template <class Visit>
void each_tap(const Shape& x, const Array& places, Visit visit) {
  const auto channels = x[1], pixels = x[2], taps = places.shape[1], outputs = places.shape[2];
  for (std::int64_t entry = 0; entry < places.numel(); ++entry) {
    const auto place = static_cast<std::int64_t>(places[entry]);
    if (place < 0 || place >= x[0] * pixels) continue;
    const auto row = entry / (taps * outputs), output = entry % outputs;
    for (std::int64_t c = 0; c < channels; ++c)
      visit(entry, (row * channels + c) * outputs + output, (place / pixels * channels + c) * pixels + place % pixels);
  }
}

inline const RegisterMeaning sample_taps_meaning{
    "sample_taps",
    {[](const Call& call) {
       Array y(call.shape());
       each_tap(call.in[0].shape, call.in[1],
                [&](auto entry, auto sample, auto pixel) { y[sample] += call.in[2][entry] * call.in[0][pixel]; });
       return Arrays{y};
     },
     false, 4}};
inline const RegisterMeaning sample_taps_dot_meaning{
    "sample_taps_dot",
    {[](const Call& call) {
       Array y(call.shape());
       each_tap(call.in[0].shape, call.in[1],
                [&](auto entry, auto sample, auto pixel) { y[entry] += call.in[2][sample] * call.in[0][pixel]; });
       return Arrays{y};
     },
     false, 4}};

}  // namespace clnet::testing
