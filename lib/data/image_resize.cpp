// Resizing and mirroring of decoded images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "clnet/error.h"
#include "lib/data/pixels.h"

namespace clnet::data {
namespace {

/// Where PIL's fixed-point weights have their point (Pillow's Resample.c).
constexpr int weight_bits = 32 - 8 - 2;

/// The weights of one output position: of the input positions from `first` on.
struct Weights {
  std::int64_t first = 0;
  std::vector<std::int32_t> values;
};

std::vector<Weights> weights_of(std::int64_t input, double begin, double extent, std::int64_t output) {
  const double scale = extent / static_cast<double>(output), support = std::max(scale, 1.0);
  std::vector<Weights> all(static_cast<std::size_t>(output));
  for (std::int64_t at = 0; at < output; ++at) {
    const double middle = begin + (static_cast<double>(at) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(middle - support + 0.5));
    const auto last = std::min(input, static_cast<std::int64_t>(middle + support + 0.5));
    std::vector<double> parts;
    double sum = 0;
    for (auto i = first; i < last; ++i) {
      const double distance = std::abs((static_cast<double>(i) - middle + 0.5) * (1 / support));
      parts.push_back(distance < 1 ? 1 - distance : 0);
      sum += parts.back();
    }
    auto& weights = all[static_cast<std::size_t>(at)];
    weights.first = first;
    for (const double part : parts)
      weights.values.push_back(static_cast<std::int32_t>(0.5 + (sum == 0 ? part : part / sum) * (1 << weight_bits)));
  }
  return all;
}

/// Weights add up to 2^22, and rounding at most doubles them: sums of bytes have 31 bits.
std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255)); }

/// The rows from `top` to before `bottom`.
Pixels resized_rows(const Pixels& image, const std::vector<Weights>& weights, std::int64_t top, std::int64_t bottom) {
  const auto width = static_cast<std::int64_t>(weights.size()), channels = image.channels, height = bottom - top;
  if (height > most_pixels / width)
    throw Error(fmt::format("resizing {} x {} pixels takes {} x {} between, expected at most {}", image.height, image.width,
                            height, width, most_pixels));
  Pixels result{.height = height, .width = width, .channels = channels, .bytes = {}};
  result.bytes.reserve(static_cast<std::size_t>(height * width * channels));
  for (std::int64_t y = top; y < bottom; ++y) {
    const auto* row = image.bytes.data() + y * image.width * channels;
    for (const auto& at : weights)
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int32_t sum = 1 << (weight_bits - 1);
        const auto* in = row + at.first * channels + c;
        for (const auto weight : at.values) {
          sum += *in * weight;
          in += channels;
        }
        result.bytes.push_back(rounded(sum));
      }
  }
  return result;
}

Pixels resized_columns(const Pixels& image, const std::vector<Weights>& weights) {
  const auto height = static_cast<std::int64_t>(weights.size()), row = image.width * image.channels;
  Pixels result{.height = height, .width = image.width, .channels = image.channels, .bytes = {}};
  result.bytes.reserve(static_cast<std::size_t>(height * row));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row));
  for (const auto& at : weights) {
    std::fill(sums.begin(), sums.end(), 1 << (weight_bits - 1));
    const auto* in = image.bytes.data() + at.first * row;
    for (const auto weight : at.values)
      for (auto& sum : sums) sum += *in++ * weight;
    for (const auto sum : sums) result.bytes.push_back(rounded(sum));
  }
  return result;
}

bool is_whole(double begin, double extent, std::int64_t input, std::int64_t output) {
  return begin == 0 && extent == static_cast<double>(input) && input == output;
}

}  // namespace

Pixels resized(const Pixels& image, const Box& box, std::int64_t height, std::int64_t width) {
  const bool rows = !is_whole(box.left, box.width, image.width, width);
  const bool columns = !is_whole(box.top, box.height, image.height, height);
  if (!rows && !columns) return image;
  auto down = columns ? weights_of(image.height, box.top, box.height, height) : std::vector<Weights>{};
  if (!rows) return resized_columns(image, down);
  // Only the rows that the second pass reads.
  const auto top = columns ? down.front().first : 0;
  const auto bottom = columns ? down.back().first + std::ssize(down.back().values) : image.height;
  for (auto& at : down) at.first -= top;
  const auto between = resized_rows(image, weights_of(image.width, box.left, box.width, width), top, bottom);
  return columns ? resized_columns(between, down) : between;
}

Pixels nearest(const Pixels& image, const Box& box, std::int64_t height, std::int64_t width) {
  Pixels result{.height = height, .width = width, .channels = image.channels, .bytes = {}};
  result.bytes.reserve(static_cast<std::size_t>(height * width * image.channels));
  const auto place = [](double begin, double extent, std::int64_t at, std::int64_t output, std::int64_t input) {
    const double middle = begin + (static_cast<double>(at) + 0.5) * extent / static_cast<double>(output);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(middle), 0, input - 1);
  };
  for (std::int64_t y = 0; y < height; ++y) {
    const auto from_y = place(box.top, box.height, y, height, image.height);
    for (std::int64_t x = 0; x < width; ++x) {
      const auto from = (from_y * image.width + place(box.left, box.width, x, width, image.width)) * image.channels;
      for (std::int64_t c = 0; c < image.channels; ++c) result.bytes.push_back(image.bytes[static_cast<std::size_t>(from + c)]);
    }
  }
  return result;
}

void mirror(Pixels& image) {
  const auto channels = image.channels;
  for (std::int64_t y = 0; y < image.height; ++y) {
    auto* row = image.bytes.data() + y * image.width * channels;
    for (std::int64_t x = 0; x < image.width / 2; ++x)
      std::swap_ranges(row + x * channels, row + (x + 1) * channels, row + (image.width - 1 - x) * channels);
  }
}

}  // namespace clnet::data
