// Images: resizing, sampling, regions and boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "clnet/error.h"
#include "clnet/ops/image.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/resize.h"

namespace clnet::onnx {
namespace {

/// A device may have no doubles, which f64 alone wants.
Tensor factors_of(const std::vector<double>& values, const Shape& shape, Dtype dtype) {
  if (dtype == Dtype::f64) return Tensor::from(std::span(values), shape, Dtype::f64);
  return cast(Tensor::from(std::vector<float>(values.begin(), values.end()), shape), dtype);
}

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
    const Tensor matrix = factors_of(weights, {to, from}, x.dtype());
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

/// The largest product of a pixel and its weight, over all samples of a bin. Boxes are read.
Outputs roi_max(const Call& call, bool aligned) {
  constexpr std::int64_t most_samples = 1 << 24;
  const Tensor& x = call.x(0);
  const auto boxes = call.numbers(1);
  const auto images = call.integers(2);
  const auto rows = call.attribute("output_height", std::int64_t{1}), columns = call.attribute("output_width", std::int64_t{1});
  const auto ratio = call.attribute("sampling_ratio", std::int64_t{0});
  const double scale = call.attribute("spatial_scale", 1.0), shift = aligned ? 0.5 : 0;
  const auto count = static_cast<std::int64_t>(images.size());
  if (x.rank() != 4 || boxes.size() != 4 * images.size() || rows < 1 || columns < 1 || rows > most_samples / columns)
    call.fail(fmt::format("{} of {}", to_string(call.shape(1)), to_string(x.shape())));
  const auto height = x.size(2), width = x.size(3);
  struct Box {
    double x, y, width, height;
    std::int64_t down, across;  ///< samples of a bin
  };
  std::vector<Box> all;
  std::int64_t samples = 1;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i] < 0 || images[i] >= x.size(0)) call.fail(fmt::format("image {} of {}", images[i], x.size(0)));
    const auto at = [&](std::size_t k) { return boxes[4 * i + k] * scale - shift; };
    Box box{at(0), at(1), at(2) - at(0), at(3) - at(1), ratio, ratio};
    if (!aligned) box.width = std::max(box.width, 1.0), box.height = std::max(box.height, 1.0);
    box.width /= static_cast<double>(columns);
    box.height /= static_cast<double>(rows);
    if (!(box.width >= 0 && box.width < most_samples && box.height >= 0 && box.height < most_samples))
      call.fail(fmt::format("box {} has bins of {} by {}", i, box.width, box.height));
    if (ratio < 1) {
      box.down = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(box.height)));
      box.across = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(box.width)));
    }
    if (box.down > most_samples / box.across) call.refuse(fmt::format("{} by {} samples", box.down, box.across));
    samples = std::max(samples, box.down * box.across);
    all.push_back(box);
  }
  if (count > 0 && samples > most_samples / count / rows / columns) call.refuse(fmt::format("{} samples of a bin", samples));
  std::vector<std::int64_t> places;
  std::vector<double> weights;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::int64_t bin = 0; bin < rows * columns; ++bin)
      for (std::int64_t sample = 0; sample < samples; ++sample) {
        // Bins of fewer samples repeat their last one.
        const auto& box = all[i];
        const auto own = std::min(sample, box.down * box.across - 1);
        const auto inside = [](std::int64_t index, std::int64_t of) {
          return (static_cast<double>(index) + 0.5) / static_cast<double>(of);
        };
        double down = box.y + box.height * (static_cast<double>(bin / columns) + inside(own / box.across, box.down));
        double across = box.x + box.width * (static_cast<double>(bin % columns) + inside(own % box.across, box.across));
        const bool outside =
            down < -1 || down > static_cast<double>(height) || across < -1 || across > static_cast<double>(width);
        down = outside ? 0 : std::clamp(down, 0.0, static_cast<double>(height - 1));
        across = outside ? 0 : std::clamp(across, 0.0, static_cast<double>(width - 1));
        const auto top = static_cast<std::int64_t>(down), left = static_cast<std::int64_t>(across);
        for (const std::int64_t k : {0, 1, 2, 3}) {
          const auto row = std::min(top + k / 2, height - 1), column = std::min(left + k % 2, width - 1);
          places.push_back((images[i] * height + row) * width + column);
          const double below = down - static_cast<double>(top), beside = across - static_cast<double>(left);
          weights.push_back(outside ? 0 : (k / 2 ? below : 1 - below) * (k % 2 ? beside : 1 - beside));
        }
      }
  const Tensor pixels = reshape(transpose(x, 0, 1), {x.size(1), x.size(0) * height * width});
  const Tensor taken = reshape(index_select(pixels, 1, Tensor::from(places)), {x.size(1), count, rows, columns, samples * 4});
  const Tensor factors = factors_of(weights, {count, rows, columns, samples * 4}, x.dtype());
  return {call.give(transpose(max(taken * factors, {4}), 0, 1))};
}

Outputs roi_align_of(const Call& call) {
  const auto otherwise = call.opset() >= 16 ? std::string_view("half_pixel") : std::string_view("output_half_pixel");
  const bool aligned = call.attribute("coordinate_transformation_mode", otherwise) == "half_pixel";
  const auto mode = call.attribute("mode", std::string_view("avg"));
  if (mode != "avg" && mode != "max") call.fail(fmt::format("the mode is \"{}\"", mode));
  if (mode == "max") return roi_max(call, aligned);
  const Tensor boxes = concat({unsqueeze(cast(call.x(2), call.x(1).dtype()), 1), call.x(1)}, 1);
  const Pair size(call.attribute("output_height", std::int64_t{1}), call.attribute("output_width", std::int64_t{1}));
  return {call.give(roi_align(call.x(0), boxes, size,
                              {.spatial_scale = call.attribute("spatial_scale", 1.0),
                               .sampling_ratio = call.attribute("sampling_ratio", std::int64_t{0}),
                               .aligned = aligned}))};
}

/// The largest pixel of each bin of whole pixels; 0 of none. Rows {image, x, y, x, y} are read.
Outputs roi_pool(const Call& call) {
  constexpr std::int64_t most_pixels = 1 << 24;
  const Tensor& x = call.x(0);
  const auto pooled = call.integers("pooled_shape");
  if (x.rank() != 4 || pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || call.shape(1).rank() != 2 || call.shape(1)[1] != 5)
    call.fail(fmt::format("{} of {}", to_string(call.shape(1)), to_string(x.shape())));
  const auto boxes = call.numbers(1);
  const double scale = call.attribute("spatial_scale", 1.0);
  const auto count = call.shape(1)[0], height = x.size(2), width = x.size(3);
  if (pooled[0] > most_pixels / pooled[1]) call.refuse(fmt::format("{} by {} bins", pooled[0], pooled[1]));
  std::vector<std::vector<std::int64_t>> bins;
  std::size_t longest = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto* box = boxes.data() + 5 * i;
    if (!(box[0] >= 0 && box[0] < static_cast<double>(x.size(0)))) call.fail(fmt::format("image {} of {}", box[0], x.size(0)));
    for (int k = 1; k < 5; ++k)
      if (!(std::abs(box[k] * scale) <= INT32_MAX)) call.fail(fmt::format("box {} has {}", i, box[k]));
    const auto image = static_cast<std::int64_t>(box[0]);
    // The first pixel of a bin along one dimension, and the one behind its last.
    const auto range = [&](int d, std::int64_t bin, std::int64_t of, std::int64_t extent) {
      const double begin = std::round(box[1 + d] * scale), end = std::round(box[3 + d] * scale);
      const double step = std::max(end - begin + 1, 1.0) / static_cast<double>(of);
      const auto bound = [&](double at) {
        return static_cast<std::int64_t>(std::clamp(at + begin, 0.0, static_cast<double>(extent)));
      };
      return std::pair(bound(std::floor(static_cast<double>(bin) * step)), bound(std::ceil(static_cast<double>(bin + 1) * step)));
    };
    for (std::int64_t bin = 0; bin < pooled[0] * pooled[1]; ++bin) {
      const auto [top, bottom] = range(1, bin / pooled[1], pooled[0], height);
      const auto [left, right] = range(0, bin % pooled[1], pooled[1], width);
      auto& pixels = bins.emplace_back();
      for (auto row = top; row < bottom; ++row)
        for (auto column = left; column < right; ++column) pixels.push_back((image * height + row) * width + column);
      longest = std::max(longest, pixels.size());
      if (std::cmp_greater(longest * bins.size(), most_pixels)) call.refuse("bins of so many pixels");
    }
  }
  std::vector<std::int64_t> places;
  std::vector<bool> filled;
  for (const auto& pixels : bins) {
    filled.push_back(!pixels.empty());
    for (std::size_t k = 0; k < longest; ++k) places.push_back(pixels.empty() ? 0 : pixels[std::min(k, pixels.size() - 1)]);
  }
  const Tensor all = reshape(transpose(x, 0, 1), {x.size(1), x.size(0) * height * width});
  const Shape shape{x.size(1), count, pooled[0], pooled[1], static_cast<std::int64_t>(longest)};
  const Tensor largest = max(reshape(index_select(all, 1, Tensor::from(places)), shape), {4});
  const Tensor y = where(Tensor::from(filled, {count, pooled[0], pooled[1]}), largest, 0.0);
  return {call.give(transpose(y, 0, 1))};
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
      {"MaxRoiPool", 1, roi_pool},
      {"NonMaxSuppression", 10, non_max_suppression, {data, data, structure}},
      {"Resize", 10, upsample, {data, structure}},
      {"Resize", 11, resize, {data, structure}},
      {"RoiAlign", 10, roi_align_of},
      {"Upsample", 7, upsample, {data, structure}},
  };
}

}  // namespace clnet::onnx
