// The options of image datasets: their ranges, and their text in fingerprints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "clnet/error.h"
#include "lib/data/image_changes.h"

namespace clnet::data {
namespace {

constexpr std::int64_t most_side = 16384, most_operations = 16, most_magnitude = 30;
/// A wider Gaussian takes too long.
constexpr double widest_sigma = 100;

struct Range {
  const char* name;
  double value, least, most;
};

}  // namespace

void validate(const ImageOptions& o) {
  const auto invalid = [](const std::string& reason) { throw Error("images: " + reason); };
  if (o.height < 1 || o.width < 1 || o.height > most_side || o.width > most_side)
    invalid(fmt::format("{} x {} pixels, expected 1 to {} each", o.height, o.width, most_side));
  if (o.channels != 1 && o.channels != 3) invalid(fmt::format("{} channels, expected 1 or 3", o.channels));
  if (o.mean.size() != o.std.size() || (!o.mean.empty() && std::cmp_not_equal(o.mean.size(), o.channels)))
    invalid(fmt::format("mean and std have {} and {} values, expected {} or none", o.mean.size(), o.std.size(), o.channels));
  for (std::size_t c = 0; c < o.mean.size(); ++c)
    if (!std::isfinite(o.mean[c]) || !std::isfinite(o.std[c]) || o.std[c] <= 0)
      invalid(fmt::format("mean {} and std {}: expected a number, and one above 0", o.mean[c], o.std[c]));
  if (!(o.crop > 0 && o.crop <= 1)) invalid(fmt::format("crop is {}, expected a share above 0 and at most 1", o.crop));
  for (const Range& range : {Range{"rotate", o.rotate, 0, 180},
                             {"translate", o.translate, 0, 1},
                             {"scale", o.scale, 0, 0.99},
                             {"shear", o.shear, 0, 80},
                             {"elastic", o.elastic, 0, 1e5},
                             {"elastic_sigma", o.elastic_sigma, 0.1, widest_sigma},
                             {"rand_augment", static_cast<double>(o.rand_augment), 0, static_cast<double>(most_operations)},
                             {"magnitude", static_cast<double>(o.magnitude), 0, static_cast<double>(most_magnitude)},
                             {"brightness", o.brightness, 0, 1},
                             {"contrast", o.contrast, 0, 1},
                             {"saturation", o.saturation, 0, 1},
                             {"hue", o.hue, 0, 0.5},
                             {"erase", o.erase, 0, 1},
                             {"least_box", o.least_box, 0, 1}})
    if (!(range.value >= range.least && range.value <= range.most))
      invalid(fmt::format("{} is {}, expected {} to {}", range.name, range.value, range.least, range.most));
}

std::string text_of(const ImageOptions& o) {
  return fmt::format(
      "{} x {} x {}, aspect {}, mean {}, std {}, crop {}, flip {}, rotate {}, translate {}, scale {}, shear {}, elastic {} {}, "
      "rand_augment {} {}, light {} {} {} {}, erase {}, least_box {}",
      o.channels, o.height, o.width, o.keep_aspect ? "kept" : "changed", fmt::join(o.mean, " "), fmt::join(o.std, " "), o.crop,
      o.flip, o.rotate, o.translate, o.scale, o.shear, o.elastic, o.elastic_sigma, o.rand_augment, o.magnitude, o.brightness,
      o.contrast, o.saturation, o.hue, o.erase, o.least_box);
}

}  // namespace clnet::data
