// Random changes of where pixels are: cuts, mirroring, affine and elastic maps, RandAugment.
#include "lib/data/image_changes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace clnet::data {
namespace {

constexpr double radians(double degrees) { return degrees * std::numbers::pi / 180; }

/// The part with the proportions of the result in the middle.
Box middle_of(const Pixels& image, const ImageOptions& o) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  if (!o.keep_aspect) return {.height = height, .width = width};
  const double aspect = static_cast<double>(o.width) / static_cast<double>(o.height);
  const double wanted_width = std::min(width, height * aspect), wanted_height = std::min(height, width / aspect);
  return {
      .top = (height - wanted_height) / 2, .left = (width - wanted_width) / 2, .height = wanted_height, .width = wanted_width};
}

/// A random part, as torchvision's RandomResizedCrop chooses it.
Box random_part(const Pixels& image, const ImageOptions& o, SampleRandom& random) {
  constexpr int attempts = 10;
  constexpr double widest = 4.0 / 3;
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double area = height * width * uniform(random, o.crop, 1);
    const double aspect = std::exp(uniform(random, -std::log(widest), std::log(widest)));
    const double part_width = std::round(std::sqrt(area * aspect)), part_height = std::round(std::sqrt(area / aspect));
    if (part_width < 1 || part_height < 1 || part_width > width || part_height > height) continue;
    const double top = std::floor(uniform(random, 0, height - part_height + 1));
    const double left = std::floor(uniform(random, 0, width - part_width + 1));
    return {.top = top, .left = left, .height = part_height, .width = part_width};
  }
  return middle_of(image, o);
}

/// `source(x, y)`: where the middle of pixel (y, x) comes from.
template <class Source>
Pixels sampled(const Pixels& image, std::uint8_t fill, bool smooth, const Source& source) {
  const auto height = image.height, width = image.width, channels = image.channels;
  Pixels result{.height = height, .width = width, .channels = channels, .bytes = {}};
  result.bytes.resize(image.bytes.size());
  auto out = result.bytes.begin();
  const auto at = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    if (y < 0 || y >= height || x < 0 || x >= width) return fill;
    return image.bytes[static_cast<std::size_t>((y * width + x) * channels + c)];
  };
  // Far outside is outside, and every place fits an integer.
  const auto place = [](double value, std::int64_t extent) {
    return static_cast<std::int64_t>(std::floor(std::clamp(value, -2.0, static_cast<double>(extent) + 1)));
  };
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const Point from = source(x, y);
      if (!smooth) {
        const auto from_y = place(from.y, height), from_x = place(from.x, width);
        for (std::int64_t c = 0; c < channels; ++c) *out++ = at(from_y, from_x, c);
        continue;
      }
      const double right = from.x - 0.5, down = from.y - 0.5;
      const auto left = place(right, width), top = place(down, height);
      const double part_x = right - std::floor(right), part_y = down - std::floor(down);
      for (std::int64_t c = 0; c < channels; ++c) {
        const double above = at(top, left, c) * (1 - part_x) + at(top, left + 1, c) * part_x;
        const double below = at(top + 1, left, c) * (1 - part_x) + at(top + 1, left + 1, c) * part_x;
        *out++ = static_cast<std::uint8_t>(std::lround(above * (1 - part_y) + below * part_y));
      }
    }
  return result;
}

/// A Gaussian that reaches four deviations to either side, as torchvision's.
std::vector<double> gaussian(double sigma) {
  const auto reach = static_cast<std::int64_t>(8 * sigma + 1) / 2;
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    weights.push_back(std::exp(-0.5 * std::pow(static_cast<double>(i) / sigma, 2)));
    sum += weights.back();
  }
  for (auto& weight : weights) weight /= sum;
  return weights;
}

/// Behind the border the values are mirrored, the border's own once.
std::int64_t mirrored(std::int64_t at, std::int64_t extent) {
  if (extent == 1) return 0;
  const auto period = 2 * (extent - 1);
  at = (at % period + period) % period;
  return std::min(at, period - at);
}

/// Each of `lines` lines of `count` values, `step` apart, by the weights.
void smooth_lines(std::vector<float>& values, const std::vector<double>& weights, std::int64_t lines, std::int64_t between_lines,
                  std::int64_t count, std::int64_t step) {
  const auto reach = static_cast<std::int64_t>(weights.size() / 2);
  std::vector<double> padded(static_cast<std::size_t>(count + 2 * reach));
  for (std::int64_t line = 0; line < lines; ++line) {
    float* first = values.data() + line * between_lines;
    for (std::int64_t i = -reach; i < count + reach; ++i)
      padded[static_cast<std::size_t>(i + reach)] = static_cast<double>(first[mirrored(i, count) * step]);
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) sum += weights[k] * padded[static_cast<std::size_t>(i) + k];
      first[i * step] = static_cast<float>(sum);
    }
  }
}

/// RandAugment's magnitudes for `level` from 0 to 30, and its operations with equal shares (torchvision's RandAugment).
void rand_augment(Canvas& canvas, std::int64_t level, SampleRandom& random) {
  constexpr int unchanged = 0, shears = 1, moves = 3, turn = 5, recolourings = 6, operations = 14;
  constexpr double most_shear = 0.3, most_move = 150.0 / 331, most_degrees = 30, most_light = 0.9;
  const auto operation = static_cast<int>(random.below(operations));
  const double share = static_cast<double>(level) / 30, sign = random.below(2) == 1 ? -1 : 1;
  const auto height = static_cast<double>(canvas.image.height), width = static_cast<double>(canvas.image.width);
  if (operation == unchanged) return;
  if (operation < moves) {
    const double degrees = std::atan(sign * most_shear * share) * 180 / std::numbers::pi;
    canvas.warp(affine_of(operation == shears ? AffineChange{.shear_x = degrees} : AffineChange{.shear_y = degrees}, {0, 0}),
                false);
  } else if (operation < turn) {
    const double extent = operation == moves ? width : height, distance = std::trunc(sign * most_move * extent * share);
    canvas.warp(affine_of({.move = operation == moves ? Point{distance, 0} : Point{0, distance}}, {0, 0}), false);
  } else if (operation == turn) {
    canvas.warp(affine_of({.degrees = sign * most_degrees * share}, {width / 2, height / 2}), false);
  } else {
    const auto kind = static_cast<Recolouring>(operation - recolourings);
    const double magnitude = kind == Recolouring::posterize  ? 8 - std::round(share * 4)
                             : kind == Recolouring::solarize ? 255 * (1 - share)
                                                             : sign * most_light * share;
    recolour(canvas.image, kind, magnitude);
  }
}

}  // namespace

double uniform(SampleRandom& random, double low, double high) { return low + (high - low) * random.unit(); }

Affine Affine::inverse() const {
  const double determinant = m[0] * m[4] - m[1] * m[3];
  const double a = m[4] / determinant, b = -m[1] / determinant, d = -m[3] / determinant, e = m[0] / determinant;
  return {{a, b, -(a * m[2] + b * m[5]), d, e, -(d * m[2] + e * m[5])}};
}

Affine affine_of(const AffineChange& change, Point centre) {
  const double turn = radians(change.degrees), shear_x = radians(change.shear_x), shear_y = radians(change.shear_y);
  const double c = std::cos(turn - shear_y) / std::cos(shear_y), s = std::sin(turn - shear_y) / std::cos(shear_y);
  const double a = change.scale * c, b = change.scale * (-c * std::tan(shear_x) - std::sin(turn));
  const double d = change.scale * s, e = change.scale * (-s * std::tan(shear_x) + std::cos(turn));
  return {{a, b, centre.x + change.move.x - a * centre.x - b * centre.y, d, e,
           centre.y + change.move.y - d * centre.x - e * centre.y}};
}

Point Displacements::at(Point place) const {
  const double right = std::clamp(place.x - 0.5, 0.0, static_cast<double>(width - 1));
  const double down = std::clamp(place.y - 0.5, 0.0, static_cast<double>(height - 1));
  const auto left = static_cast<std::int64_t>(right), top = static_cast<std::int64_t>(down);
  const auto next = std::min(left + 1, width - 1), below = std::min(top + 1, height - 1);
  const double part_x = right - static_cast<double>(left), part_y = down - static_cast<double>(top);
  const auto between = [&](const std::vector<float>& values) {
    const auto value = [&](std::int64_t row, std::int64_t column) {
      return static_cast<double>(values[static_cast<std::size_t>(row * width + column)]);
    };
    return (value(top, left) * (1 - part_x) + value(top, next) * part_x) * (1 - part_y) +
           (value(below, left) * (1 - part_x) + value(below, next) * part_x) * part_y;
  };
  return {between(x), between(y)};
}

Displacements elastic(std::int64_t height, std::int64_t width, double strength, double sigma, SampleRandom& random) {
  Displacements result{.height = height, .width = width, .x = {}, .y = {}};
  const auto weights = gaussian(sigma);
  for (auto* values : {&result.x, &result.y}) {
    values->resize(static_cast<std::size_t>(height * width));
    for (auto& value : *values) value = static_cast<float>(uniform(random, -1, 1));
    smooth_lines(*values, weights, height, width, width, 1);
    smooth_lines(*values, weights, width, 1, height, width);
    for (auto& value : *values) value *= static_cast<float>(strength / 2);
  }
  return result;
}

Pixels warped(const Pixels& image, const Affine& forward, std::uint8_t fill, bool smooth) {
  return sampled(image, fill, smooth, [back = forward.inverse()](std::int64_t x, std::int64_t y) {
    return back({static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5});
  });
}

Pixels warped(const Pixels& image, const Displacements& displacements, std::uint8_t fill, bool smooth) {
  return sampled(image, fill, smooth, [&](std::int64_t x, std::int64_t y) {
    const auto i = static_cast<std::size_t>(y * displacements.width + x);
    return Point{static_cast<double>(x) + 0.5 + static_cast<double>(displacements.x[i]),
                 static_cast<double>(y) + 0.5 + static_cast<double>(displacements.y[i])};
  });
}

void Canvas::fit(const Box& box, std::int64_t height, std::int64_t width) {
  image = resized(image, box, height, width);
  if (!mask.bytes.empty()) mask = nearest(mask, box, height, width);
  for (auto& outline : outlines)
    for (auto& point : outline)
      point = {(point.x - box.left) * static_cast<double>(width) / box.width,
               (point.y - box.top) * static_cast<double>(height) / box.height};
}

void Canvas::flip() {
  mirror(image);
  mirror(mask);
  for (auto& outline : outlines)
    for (auto& point : outline) point.x = static_cast<double>(image.width) - point.x;
}

void Canvas::warp(const Affine& forward, bool smooth) {
  image = warped(image, forward, 0, smooth);
  if (!mask.bytes.empty()) mask = warped(mask, forward, not_counted, false);
  for (auto& outline : outlines)
    for (auto& point : outline) point = forward(point);
}

void Canvas::warp(const Displacements& displacements) {
  image = warped(image, displacements, 0, true);
  if (!mask.bytes.empty()) mask = warped(mask, displacements, not_counted, false);
  // The place whose source the point is, by iteration: q + d(q) = p.
  constexpr int iterations = 20;
  for (auto& outline : outlines)
    for (auto& point : outline) {
      Point place = point;
      for (int i = 0; i < iterations; ++i) {
        const auto distance = displacements.at(place);
        place = {point.x - distance.x, point.y - distance.y};
      }
      point = place;
    }
}

void change(Canvas& canvas, const ImageOptions& o, SampleRandom& random) {
  canvas.fit(o.crop < 1 ? random_part(canvas.image, o, random) : middle_of(canvas.image, o), o.height, o.width);
  if (o.flip && random.below(2) == 1) canvas.flip();
  if (o.rotate > 0 || o.translate > 0 || o.scale > 0 || o.shear > 0) {
    const auto height = static_cast<double>(o.height), width = static_cast<double>(o.width);
    AffineChange affine{.degrees = -uniform(random, -o.rotate, o.rotate),
                        .scale = uniform(random, 1 - o.scale, 1 + o.scale),
                        .shear_x = uniform(random, -o.shear, o.shear)};
    affine.move = {std::round(uniform(random, -o.translate, o.translate) * width),
                   std::round(uniform(random, -o.translate, o.translate) * height)};
    canvas.warp(affine_of(affine, {width / 2, height / 2}), true);
  }
  if (o.elastic > 0) canvas.warp(elastic(o.height, o.width, o.elastic, o.elastic_sigma, random));
  for (std::int64_t i = 0; i < o.rand_augment; ++i) rand_augment(canvas, o.magnitude, random);
}

}  // namespace clnet::data
