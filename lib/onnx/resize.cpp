#include "lib/onnx/resize.h"

#include <algorithm>
#include <cmath>

#include "clnet/error.h"

namespace clnet::onnx {
namespace {

/// The place in the source of element `i` of the result.
double source_of(const Resampling& how, std::int64_t i, std::int64_t from, std::int64_t to, double scale) {
  const auto x = static_cast<double>(i), in = static_cast<double>(from), out = static_cast<double>(to);
  const auto& mode = how.coordinates;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (mode == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel") return to > 1 ? (x + 0.5) / scale - 0.5 : 0;
  // Of the extent before it is rounded down.
  if (mode == "align_corners") return to > 1 ? x * (in - 1) / (scale * in - 1) : 0;
  if (mode == "asymmetric") return x / scale;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = out / (scale * in), center = in / 2;
    return center * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (mode == "tf_crop_and_resize")
    return to > 1 ? how.begin * (in - 1) + x * (how.end - how.begin) * (in - 1) / (out - 1)
                  : 0.5 * (how.begin + how.end) * (in - 1);
  throw Error("Resize: coordinate_transformation_mode is \"" + mode + "\"");
}

bool is_outside(const Resampling& how, double at, std::int64_t from) {
  return how.coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<double>(from - 1));
}

double cubic_weight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

}  // namespace

std::vector<std::int64_t> nearest_sources(const Resampling& how, std::int64_t from, std::int64_t to, double scale) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = source_of(how, i, from, to, scale);
    if (is_outside(how, at, from)) {
      out.push_back(-1);
      continue;
    }
    double chosen;
    if (how.nearest == "round_prefer_floor")
      chosen = std::ceil(at - 0.5);
    else if (how.nearest == "round_prefer_ceil")
      chosen = std::floor(at + 0.5);
    else if (how.nearest == "floor")
      chosen = std::floor(at);
    else if (how.nearest == "ceil")
      chosen = std::ceil(at);
    else
      throw Error("Resize: nearest_mode is \"" + how.nearest + "\"");
    out.push_back(static_cast<std::int64_t>(std::clamp(chosen, 0.0, static_cast<double>(from - 1))));
  }
  return out;
}

std::vector<double> resampling_weights(const Resampling& how, std::int64_t from, std::int64_t to, double scale,
                                       std::vector<bool>& outside) {
  const bool cubic = how.mode == "cubic";
  // A smaller result averages all that it covers where it is antialiased.
  const double narrow = how.antialias ? std::min(scale, 1.0) : 1.0, reach = cubic ? 2 : 1;
  const auto first = static_cast<std::int64_t>(std::floor(-reach / narrow)) + 1;
  const auto taps = (cubic ? 4 : 2) - 2 * (first + (cubic ? 1 : 0));
  std::vector<double> weights(static_cast<std::size_t>(to * from));
  outside.assign(static_cast<std::size_t>(to), false);
  std::vector<double> row(static_cast<std::size_t>(from));
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = source_of(how, i, from, to, scale);
    if (is_outside(how, at, from)) {
      outside[static_cast<std::size_t>(i)] = true;
      continue;
    }
    const double low = std::floor(at), ratio = at - low;
    std::fill(row.begin(), row.end(), 0.0);
    double total = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const auto place = static_cast<std::int64_t>(low) + first + k;
      const double distance = (static_cast<double>(first + k) - ratio) * narrow;
      const double weight = cubic ? cubic_weight(distance, how.cubic_a) : std::max(0.0, 1 - std::abs(distance));
      if (how.exclude_outside && (place < 0 || place >= from)) continue;
      row[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, from - 1))] += weight;
      total += weight;
    }
    const double divisor = how.exclude_outside || how.antialias ? total : 1;
    for (std::int64_t k = 0; k < from; ++k)
      weights[static_cast<std::size_t>(i * from + k)] = row[static_cast<std::size_t>(k)] / divisor;
  }
  return weights;
}

}  // namespace clnet::onnx
