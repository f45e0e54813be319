// Changes of colours: Pillow's on bytes, torchvision's on planes from 0 to 1, normalisation, erased parts.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "lib/data/image_changes.h"

namespace clnet::data {
namespace {

using Histogram = std::array<std::int64_t, 256>;
using Lookup = std::array<std::uint8_t, 256>;

/// ITU-R 601-2.
constexpr float red_share = 0.299F, green_share = 0.587F, blue_share = 0.114F;

Lookup identity() {
  Lookup table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i);
  return table;
}

/// `table_of` makes a channel's table of its histogram.
template <class TableOf>
void look_up(Pixels& image, const TableOf& table_of) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    Histogram counts{};
    for (std::size_t i = c; i < image.bytes.size(); i += channels) ++counts[image.bytes[i]];
    const Lookup table = table_of(counts);
    for (std::size_t i = c; i < image.bytes.size(); i += channels) image.bytes[i] = table[image.bytes[i]];
  }
}

Lookup autocontrast_table(const Histogram& counts) {
  auto table = identity();
  std::size_t low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  if (high <= low) return table;
  const double scale = 255.0 / static_cast<double>(high - low), offset = -static_cast<double>(low) * scale;
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::uint8_t>(std::clamp(static_cast<double>(i) * scale + offset, 0.0, 255.0));
  return table;
}

Lookup equalize_table(const Histogram& counts) {
  auto table = identity();
  const auto last = std::find_if(counts.rbegin(), counts.rend(), [](auto count) { return count > 0; });
  if (last == counts.rend()) return table;
  const auto step = (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) - *last) / 255;
  if (step == 0) return table;
  auto sum = step / 2;
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(std::min<std::int64_t>(sum / step, 255));
    sum += counts[i];
  }
  return table;
}

/// From `from` to `to` by `factor`, and further beyond 1.
std::uint8_t blended(std::uint8_t from, std::uint8_t to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(int{to} - int{from});
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

/// `from(pixel)`: the pixel's value at factor 0.
template <class From>
void blend_pixels(Pixels& image, double factor, const From& from) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.bytes.size(); i += channels) {
    const std::uint8_t grey = from(&image.bytes[i]);
    for (std::size_t c = 0; c < channels; ++c) image.bytes[i + c] = blended(grey, image.bytes[i + c], static_cast<float>(factor));
  }
}

std::uint8_t grey_of(const Pixels& image, const std::uint8_t* pixel) { return image.channels == 3 ? luma(pixel) : *pixel; }

void change_contrast_of(Pixels& image, double factor) {
  const auto channels = static_cast<std::size_t>(image.channels);
  double sum = 0;
  for (std::size_t i = 0; i < image.bytes.size(); i += channels) sum += grey_of(image, &image.bytes[i]);
  const auto mean = static_cast<std::uint8_t>(sum / static_cast<double>(image.bytes.size() / channels) + 0.5);
  blend_pixels(image, factor, [&](const std::uint8_t*) { return mean; });
}

/// Between the image and its mean over 3 x 3 pixels, the middle one five times. The border stays.
void sharpen(Pixels& image, double factor) {
  const auto before = image.bytes;
  const auto channels = image.channels, row = image.width * channels;
  for (std::int64_t y = 1; y + 1 < image.height; ++y)
    for (std::int64_t at = y * row + channels; at < (y + 1) * row - channels; ++at) {
      int sum = 4 * before[static_cast<std::size_t>(at)];
      for (const auto line : {at - row, at, at + row})
        for (const auto place : {line - channels, line, line + channels}) sum += before[static_cast<std::size_t>(place)];
      const auto smooth = static_cast<std::uint8_t>((2 * sum + 13) / 26);
      image.bytes[static_cast<std::size_t>(at)] =
          blended(smooth, before[static_cast<std::size_t>(at)], static_cast<float>(factor));
    }
}

float clamped(float value) { return std::min(std::max(value, 0.0F), 1.0F); }

float grey_of(std::span<const float> planes, std::size_t plane, std::size_t i) {
  return red_share * planes[i] + green_share * planes[plane + i] + blue_share * planes[2 * plane + i];
}

}  // namespace

void recolour(Pixels& image, Recolouring operation, double magnitude) {
  switch (operation) {
    case Recolouring::brightness: blend_pixels(image, 1 + magnitude, [](const std::uint8_t*) { return std::uint8_t{0}; }); break;
    case Recolouring::colour:
      if (image.channels == 3) blend_pixels(image, 1 + magnitude, [](const std::uint8_t* pixel) { return luma(pixel); });
      break;
    case Recolouring::contrast: change_contrast_of(image, 1 + magnitude); break;
    case Recolouring::sharpness: sharpen(image, 1 + magnitude); break;
    case Recolouring::posterize:
      for (auto& byte : image.bytes) byte = static_cast<std::uint8_t>(byte & ~((1U << (8 - static_cast<int>(magnitude))) - 1));
      break;
    case Recolouring::solarize:
      for (auto& byte : image.bytes)
        if (byte >= magnitude) byte = static_cast<std::uint8_t>(255 - byte);
      break;
    case Recolouring::autocontrast: look_up(image, autocontrast_table); break;
    case Recolouring::equalize: look_up(image, equalize_table); break;
  }
}

void change_brightness(std::span<float> planes, double factor) {
  const auto by = static_cast<float>(factor);
  for (auto& value : planes) value = clamped(value * by);
}

void change_contrast(std::span<float> planes, std::int64_t channels, double factor) {
  const auto plane = planes.size() / static_cast<std::size_t>(channels);
  double sum = 0;
  for (std::size_t i = 0; i < plane; ++i) sum += static_cast<double>(channels == 3 ? grey_of(planes, plane, i) : planes[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(plane)), by = static_cast<float>(factor);
  for (auto& value : planes) value = clamped(mean + (value - mean) * by);
}

void change_saturation(std::span<float> planes, std::int64_t channels, double factor) {
  if (channels != 3) return;
  const auto plane = planes.size() / 3;
  const auto by = static_cast<float>(factor);
  for (std::size_t i = 0; i < plane; ++i) {
    const float grey = grey_of(planes, plane, i);
    for (std::size_t at = i; at < planes.size(); at += plane) planes[at] = clamped(grey + (planes[at] - grey) * by);
  }
}

void change_hue(std::span<float> planes, std::int64_t channels, double turn) {
  if (channels != 3) return;
  const auto plane = planes.size() / 3;
  // Hue in sixths of the circle: red 0, green 2, blue 4.
  const auto by = static_cast<float>(6 * turn);
  for (std::size_t i = 0; i < plane; ++i) {
    float& red = planes[i];
    float& green = planes[plane + i];
    float& blue = planes[2 * plane + i];
    const float value = std::max({red, green, blue}), range = value - std::min({red, green, blue});
    if (range <= 0) continue;
    const float hue = value == red     ? (green - blue) / range
                      : value == green ? 2 + (blue - red) / range
                                       : 4 + (red - green) / range;
    const float turned = hue + by + 12;  // above 0
    const auto part = [&](float offset) {
      float at = offset + turned;
      at -= 6 * static_cast<float>(static_cast<int>(at / 6));
      return value - range * clamped(std::min(at, 4 - at));
    };
    red = part(5);
    green = part(3);
    blue = part(1);
  }
}

Part random_part_to_erase(const ImageOptions& o, SampleRandom& random) {
  constexpr int attempts = 10;
  constexpr double least_area = 0.02, most_area = 0.33, least_aspect = 0.3, most_aspect = 3.3;
  if (!(uniform(random, 0, 1) < o.erase)) return {};
  const auto area = static_cast<double>(o.height * o.width);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double part = area * uniform(random, least_area, most_area);
    const double aspect = std::exp(uniform(random, std::log(least_aspect), std::log(most_aspect)));
    const auto height = std::llround(std::sqrt(part * aspect)), width = std::llround(std::sqrt(part / aspect));
    if (height < 1 || width < 1 || height >= o.height || width >= o.width) continue;
    return {.top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(o.height - height + 1))),
            .left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(o.width - width + 1))),
            .height = height,
            .width = width};
  }
  return {};
}

Array finished(const Pixels& image, const ImageOptions& o, SampleRandom& random) {
  const auto plane = static_cast<std::size_t>(image.height * image.width), channels = static_cast<std::size_t>(image.channels);
  Array result(Shape{image.channels, image.height, image.width}, Dtype::f32, "image");
  const auto out = result.values<float>();
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < plane; ++i) out[c * plane + i] = static_cast<float>(image.bytes[i * channels + c]) / 255.0F;
  // In any order, as torchvision's ColorJitter.
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  for (const int kind : order) {
    if (kind == 0 && o.brightness > 0) change_brightness(out, uniform(random, 1 - o.brightness, 1 + o.brightness));
    if (kind == 1 && o.contrast > 0) change_contrast(out, image.channels, uniform(random, 1 - o.contrast, 1 + o.contrast));
    if (kind == 2 && o.saturation > 0)
      change_saturation(out, image.channels, uniform(random, 1 - o.saturation, 1 + o.saturation));
    if (kind == 3 && o.hue > 0) change_hue(out, image.channels, uniform(random, -o.hue, o.hue));
  }
  for (std::size_t c = 0; c < o.mean.size(); ++c)
    for (std::size_t i = 0; i < plane; ++i) out[c * plane + i] = (out[c * plane + i] - o.mean[c]) / o.std[c];
  return result;
}

}  // namespace clnet::data
