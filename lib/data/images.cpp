// Image files as samples.
#include "clnet/data/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/epoch_order.h"
#include "lib/data/pixels.h"

namespace clnet::data {
namespace {

constexpr std::uint8_t not_counted = 255;
constexpr std::int32_t ignored_class = -100;
constexpr std::int64_t most_side = 16384;

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
  if (!(o.rotate >= 0 && o.rotate <= 180)) invalid(fmt::format("rotate is {}, expected 0 to 180 degrees", o.rotate));
  for (const auto& [name, value] : {std::pair{"brightness", o.brightness}, std::pair{"contrast", o.contrast}})
    if (!(value >= 0 && value <= 1)) invalid(fmt::format("{} is {}, expected 0 to 1", name, value));
}

/// Uniform from `low` to `high`.
double uniform(SampleRandom& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
}

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

/// From 0 to 1, with other light, normalised; {channels, height, width}.
Array finished(const Pixels& image, const ImageOptions& o, SampleRandom& random) {
  const auto plane = static_cast<std::size_t>(image.height * image.width), channels = static_cast<std::size_t>(image.channels);
  const auto light = static_cast<float>(uniform(random, 1 - o.brightness, 1 + o.brightness));
  const auto spread = static_cast<float>(uniform(random, 1 - o.contrast, 1 + o.contrast));
  double grey = 0;
  if (o.contrast > 0)
    for (std::size_t i = 0; i < plane; ++i)
      grey += std::min(1.0, light * (channels == 3 ? luma(&image.bytes[3 * i]) : image.bytes[i]) / 255.0);
  const auto mean_grey = static_cast<float>(grey / static_cast<double>(plane));
  Array result(Shape{image.channels, image.height, image.width}, Dtype::f32, "image");
  const auto out = result.values<float>();
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < plane; ++i) {
      float value = static_cast<float>(image.bytes[i * channels + c]) / 255.0F;
      if (o.brightness > 0) value = std::clamp(value * light, 0.0F, 1.0F);
      if (o.contrast > 0) value = std::clamp(mean_grey + (value - mean_grey) * spread, 0.0F, 1.0F);
      out[c * plane + i] = o.mean.empty() ? value : (value - o.mean[c]) / o.std[c];
    }
  return result;
}

Array classes_of(const Pixels& mask, std::int64_t classes, const std::string& name) {
  Array result(Shape{mask.height, mask.width}, Dtype::i32, "mask");
  const auto out = result.values<std::int32_t>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = mask.bytes[i];
    if (value >= classes && value != not_counted)
      throw FileError(fmt::format("{}: a pixel has the class {}, expected 0 to {}, or 255 for none", name, value, classes - 1));
    out[i] = value < classes ? value : ignored_class;
  }
  return result;
}

void require_sample(std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size) throw Error(fmt::format("images: there is no sample {} among {}", index, size));
}

}  // namespace

Images::Images(std::vector<File> files, std::vector<std::string> class_names, ImageOptions options)
    : files_(std::move(files)), class_names_(std::move(class_names)), options_(std::move(options)) {
  validate(options_);
  for (const auto& file : files_)
    if (file.label < 0 || std::cmp_greater_equal(file.label, class_names_.size()))
      throw Error(
          fmt::format("images: {} has the class {}, expected one of {}", file.image.string(), file.label, class_names_.size()));
}

Example Images::get(std::int64_t index, std::uint64_t seed) const {
  require_sample(index, size());
  const auto& file = files_[static_cast<std::size_t>(index)];
  auto image = with_channels(read_pixels(file.image, Decoding::colours), options_.channels);
  Pixels mask;
  const bool has_mask = !file.mask.empty();
  if (has_mask) {
    mask = read_pixels(file.mask, Decoding::indices);
    if (mask.channels != 1 || mask.height != image.height || mask.width != image.width)
      throw FileError(fmt::format("{}: is a mask of {} x {} x {}, and its image has {} x {} pixels", file.mask.string(),
                                  mask.height, mask.width, mask.channels, image.height, image.width));
  }
  SampleRandom random(seed, 0, 0);
  const auto box = options_.crop < 1 ? random_part(image, options_, random) : middle_of(image, options_);
  image = resized(image, box, options_.height, options_.width);
  if (has_mask) mask = nearest(mask, box, options_.height, options_.width);
  if (options_.flip && random.below(2) == 1) {
    mirror(image);
    if (has_mask) mirror(mask);
  }
  if (options_.rotate > 0) {
    const double angle = uniform(random, -options_.rotate, options_.rotate);
    image = rotated(image, angle, 0, true);
    if (has_mask) mask = rotated(mask, angle, not_counted, false);
  }
  Example example;
  example.push_back(finished(image, options_, random));
  if (has_mask)
    example.push_back(classes_of(mask, static_cast<std::int64_t>(class_names_.size()), file.mask.string()));
  else
    example.emplace_back(file.label, "label");
  return example;
}

std::string Images::name_of(std::int64_t index) const {
  require_sample(index, size());
  return files_[static_cast<std::size_t>(index)].image.string();
}

std::string Images::fingerprint() const {
  Checksum names;
  // Without folders: a set may move.
  for (const auto& file : files_)
    names.add(file.image.filename().string()).add(class_names_[static_cast<std::size_t>(file.label)]);
  const auto& o = options_;
  return fmt::format(
      "{} images, names {}, {} x {} x {}, aspect {}, mean {}, std {}, crop {}, flip {}, rotate {}, light {} and {}", size(),
      names.text(), o.channels, o.height, o.width, o.keep_aspect ? "kept" : "changed", fmt::join(o.mean, " "),
      fmt::join(o.std, " "), o.crop, o.flip, o.rotate, o.brightness, o.contrast);
}

std::pair<Images, Images> Images::split(double share, std::uint64_t seed) const {
  if (!(share > 0 && share < 1)) throw Error(fmt::format("images: a split of {}, expected a share between 0 and 1", share));
  std::map<std::int32_t, std::vector<std::size_t>> by_class;
  for (std::size_t i = 0; i < files_.size(); ++i) by_class[files_[i].label].push_back(i);
  std::vector<bool> is_second(files_.size(), false);
  for (const auto& [label, members] : by_class) {
    const auto count = static_cast<std::int64_t>(members.size());
    const auto second = count < 2 ? 0 : std::clamp<std::int64_t>(std::llround(share * static_cast<double>(count)), 1, count - 1);
    const auto order = epoch_order(count, true, seed, static_cast<std::uint64_t>(label));
    for (std::int64_t i = 0; i < second; ++i)
      is_second[members[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]] = true;
  }
  std::vector<File> parts[2];
  for (std::size_t i = 0; i < files_.size(); ++i) parts[is_second[i] ? 1 : 0].push_back(files_[i]);
  return {Images(std::move(parts[0]), class_names_, options_), Images(std::move(parts[1]), class_names_, options_)};
}

}  // namespace clnet::data
