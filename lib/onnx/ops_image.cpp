// Images: resizing, sampling, regions and boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clnet/error.h"
#include "clnet/ops/image.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/resize.h"

namespace clnet::onnx {
namespace {

/// x with axis `d` resampled to `to` elements.
Tensor resampled(const Tensor& x, int d, std::int64_t to, double scale, const Resampling& how, double outside_value) {
  const auto from = x.size(d);
  std::vector<bool> outside(static_cast<std::size_t>(to));
  Tensor y;
  if (how.mode == "nearest") {
    auto sources = nearest_sources(how, from, to, scale);
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i] < 0) {
        outside[i] = true;
        sources[i] = 0;
      }
    y = index_select(x, d, Tensor::from(sources));
  } else {
    constexpr std::int64_t most_weights = 1 << 26;
    if (from > most_weights / to) throw Unsupported(fmt::format("Resize: {} from {} elements by weights", to, from));
    const auto weights = resampling_weights(how, from, to, scale, outside);
    const Tensor matrix = cast(Tensor::from(weights, {to, from}), x.dtype());
    if (d == x.rank() - 1)
      y = matmul(x, matrix, {.transpose_b = true});
    else if (d == x.rank() - 2)
      y = matmul(matrix, x);
    else
      y = movedim(matmul(movedim(x, d, -1), matrix, {.transpose_b = true}), -1, d);
  }
  if (std::find(outside.begin(), outside.end(), true) == outside.end()) return y;
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.rank()), 1);
  along[static_cast<std::size_t>(d)] = to;
  return where(Tensor::from(outside, Shape(along)), outside_value, y);
}

/// What clnet's own interpolate() computes, of images; an undefined tensor: something else is asked for.
Tensor interpolated(const Tensor& x, const std::vector<std::int64_t>& to, const std::vector<double>& scales,
                    const Resampling& how) {
  if (x.rank() != 4 || to[0] != x.size(0) || to[1] != x.size(1) || how.mode != "linear" || how.antialias || how.exclude_outside)
    return {};
  const bool corners = how.coordinates == "align_corners";
  if (!corners && how.coordinates != "half_pixel" && how.coordinates != "pytorch_half_pixel") return {};
  for (const std::size_t d : {std::size_t{2}, std::size_t{3}})
    if (std::abs(scales[d] * static_cast<double>(x.size(static_cast<int>(d))) - static_cast<double>(to[d])) > 1e-6 || to[d] < 2)
      return {};
  return interpolate(x, {.size = {to[2], to[3]}, .mode = Interpolation::bilinear, .align_corners = corners});
}

Outputs resized(const Call& call, const std::vector<double>& given_scales, const std::vector<std::int64_t>& given_sizes,
                Resampling how, const std::vector<double>& roi) {
  const bool whole = !is_floating(call.type(0));
  Tensor x = whole ? cast(call.x(0), Dtype::f32) : call.x(0);
  const auto rank = x.rank();
  std::vector<int> axes;
  for (const auto axis : call.integers("axes")) axes.push_back(Call::axis(axis, rank));
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if ((given_scales.empty() ? given_sizes.size() : given_scales.size()) != axes.size())
    call.fail(fmt::format("{} scales and {} sizes of {} axes", given_scales.size(), given_sizes.size(), axes.size()));
  if (how.coordinates == "tf_crop_and_resize" && roi.size() != 2 * axes.size()) call.fail("roi has another number of axes");

  std::vector<std::int64_t> to(x.shape().begin(), x.shape().end());
  std::vector<double> scales(static_cast<std::size_t>(rank), 1.0), begin(scales.size(), 0.0), end(scales);
  const auto policy = call.attribute("keep_aspect_ratio_policy", std::string_view("stretch"));
  double common = policy == "not_larger" ? INFINITY : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i]);
    const auto from = static_cast<double>(x.size(axes[i]));
    if (given_scales.empty()) {
      to[d] = given_sizes[i];
      scales[d] = static_cast<double>(to[d]) / from;
      common = policy == "not_larger" ? std::min(common, scales[d]) : std::max(common, scales[d]);
    } else {
      scales[d] = given_scales[i];
      if (!(scales[d] > 0) || from * scales[d] > INT32_MAX) call.fail(fmt::format("a scale of {}", scales[d]));
      to[d] = static_cast<std::int64_t>(std::floor(from * scales[d]));
    }
    if (!roi.empty() && roi.size() == 2 * axes.size()) {
      begin[d] = roi[i];
      end[d] = roi[i + axes.size()];
    }
  }
  if (given_scales.empty() && policy != "stretch")
    for (const auto axis : axes) {
      const auto d = static_cast<std::size_t>(axis);
      scales[d] = common;
      to[d] = static_cast<std::int64_t>(std::floor(common * static_cast<double>(x.size(axis)) + 0.5));
    }
  const Shape wanted(to);  // refuses what is too large
  if (x.numel() == 0 || wanted.numel() == 0) {
    if (wanted.numel() != 0) call.fail(fmt::format("{} from {}", to_string(wanted), to_string(x.shape())));
    return {RunValue(zeros(wanted, dtype_of(call.type(0))), call.type(0))};
  }
  if (const Tensor y = interpolated(x, to, scales, how); y.defined()) return {call.give(y)};
  const double outside = call.attribute("extrapolation_value", 0.0);
  for (int d = 0; d < rank; ++d) {
    const auto k = static_cast<std::size_t>(d);
    how.begin = begin[k];
    how.end = end[k];
    if (to[k] != x.size(d) || scales[k] != 1 || how.coordinates == "tf_crop_and_resize")
      x = resampled(x, d, to[k], scales[k], how, outside);
  }
  return {call.give(x)};
}

Outputs resize(const Call& call) {
  Resampling how;
  how.mode = call.attribute("mode", std::string_view("nearest"));
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    call.fail(fmt::format("the mode is \"{}\"", how.mode));
  how.coordinates = call.attribute("coordinate_transformation_mode", std::string_view("half_pixel"));
  how.nearest = call.attribute("nearest_mode", std::string_view("round_prefer_floor"));
  how.cubic_a = call.attribute("cubic_coeff_a", -0.75);
  how.exclude_outside = call.attribute("exclude_outside", std::int64_t{0}) != 0;
  how.antialias = call.attribute("antialias", std::int64_t{0}) != 0;
  const bool by_size = call.has(3) && call.shape(3).numel() > 0;
  const auto roi = call.has(1) ? call.numbers(1) : std::vector<double>{};
  if (by_size) return resized(call, {}, call.integers(3), how, roi);
  return resized(call, call.numbers(2), {}, how, roi);
}

/// Operator set 10 of Resize, and Upsample: scales alone, from the first corner of each element.
Outputs upsample(const Call& call) {
  Resampling how;
  how.mode = call.attribute("mode", std::string_view("nearest"));
  if (how.mode == "bilinear") how.mode = "linear";
  how.coordinates = "asymmetric";
  how.nearest = "floor";
  return resized(call, call.has(1) ? call.numbers(1) : call.numbers("scales"), {}, how, {});
}

Outputs grid_sample_of(const Call& call) {
  auto mode = call.attribute("mode", std::string_view("linear"));
  const auto padding = call.attribute("padding_mode", std::string_view("zeros"));
  GridSampleOptions options;
  if (mode == "nearest")
    options.mode = Interpolation::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    options.mode = Interpolation::bicubic;
  else if (mode != "linear" && mode != "bilinear")
    call.fail(fmt::format("the mode is \"{}\"", mode));
  options.padding = padding == "border"       ? GridPadding::border
                    : padding == "reflection" ? GridPadding::reflection
                                              : GridPadding::zeros;
  options.align_corners = call.attribute("align_corners", std::int64_t{0}) != 0;
  return {call.give(grid_sample(call.x(0), call.x(1), options))};
}

Outputs affine_grid_of(const Call& call) {
  return {call.give(affine_grid(call.x(0), Shape(call.integers(1)), call.attribute("align_corners", std::int64_t{0}) != 0))};
}

Outputs roi_align_of(const Call& call) {
  if (call.attribute("mode", std::string_view("avg")) != "avg") call.refuse("mode max");
  const auto otherwise = call.opset() >= 16 ? std::string_view("half_pixel") : std::string_view("output_half_pixel");
  const bool aligned = call.attribute("coordinate_transformation_mode", otherwise) == "half_pixel";
  const Tensor boxes = concat({unsqueeze(cast(call.x(2), call.x(1).dtype()), 1), call.x(1)}, 1);
  const Pair size(call.attribute("output_height", std::int64_t{1}), call.attribute("output_width", std::int64_t{1}));
  return {call.give(roi_align(call.x(0), boxes, size,
                              {.spatial_scale = call.attribute("spatial_scale", 1.0),
                               .sampling_ratio = call.attribute("sampling_ratio", std::int64_t{0}),
                               .aligned = aligned}))};
}

/// Rows of image, class and box.
Outputs non_max_suppression(const Call& call) {
  Tensor boxes = call.x(0);
  const Tensor& scores = call.x(1);
  if (boxes.rank() != 3 || boxes.size(2) != 4 || scores.rank() != 3)
    call.fail(fmt::format("boxes {} and scores {}", to_string(boxes.shape()), to_string(scores.shape())));
  const auto most = call.has(2) ? call.integer(2) : 0;
  const double overlap = call.has(3) ? call.number(3) : 0;
  const Tensor first = slice(boxes, 2, 0, 2), second = slice(boxes, 2, 2, 4);
  // Corners in any order, or center and size.
  boxes = call.attribute("center_point_box", std::int64_t{0}) != 0 ? concat({first - second / 2, first + second / 2}, 2)
                                                                   : concat({minimum(first, second), maximum(first, second)}, 2);
  std::vector<std::int64_t> rows;
  for (std::int64_t image = 0; image < scores.size(0); ++image)
    for (std::int64_t kind = 0; kind < scores.size(1); ++kind) {
      const Tensor own = select(select(scores, 0, image), 0, kind);
      const auto values = own.to_vector<double>();
      const auto kept = nms(select(boxes, 0, image), own, overlap).to_vector<std::int64_t>();
      std::int64_t taken = 0;
      for (const auto box : kept) {
        if (taken >= most) break;
        if (call.has(4) && !(values[static_cast<std::size_t>(box)] > call.number(4))) continue;
        rows.insert(rows.end(), {image, kind, box});
        ++taken;
      }
    }
  const auto count = static_cast<std::int64_t>(rows.size() / 3);
  return {RunValue(Tensor::from(rows, {count, 3}), ElementType::i64)};
}

}  // namespace

std::vector<Operator> image_operators() {
  using enum Role;
  return {
      {"AffineGrid", 20, affine_grid_of, {data, structure}},
      {"GridSample", 16, grid_sample_of},
      {"NonMaxSuppression", 10, non_max_suppression, {data, data, structure}},
      {"Resize", 10, upsample, {data, structure}},
      {"Resize", 11, resize, {data, structure}},
      {"RoiAlign", 10, roi_align_of},
      {"Upsample", 7, upsample, {data, structure}},
  };
}

}  // namespace clnet::onnx
