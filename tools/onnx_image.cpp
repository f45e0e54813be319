#include "tools/onnx_image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::tools {
namespace {

constexpr std::int64_t largest_side = 65536;

/// The number of an extent; 0: it is open, and has a name or nothing.
std::int64_t number_of(const std::string& extent) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
  return code == std::errc() && end == extent.data() + extent.size() && value > 0 ? value : 0;
}

}  // namespace

ImageInput::ImageInput(const onnx::ValueInfo& input, const std::string& file)
    : type(input.type),
      file_(file),
      description_(fmt::format("input {} of {} [{}]", input.name, input.type, fmt::join(input.extents, ", "))) {
  if (input.is_sequence || (type != "float" && type != "float16" && type != "double" && type != "uint8")) fail("is no image");
  if (!input.is_known_rank) return;
  for (const auto& extent : input.extents) extents_.push_back(number_of(extent));
  for (const auto extent : extents_)
    if (extents_.size() > 2 && extent > largest_side) fail("is too large");
  const auto is_channels = [&](std::size_t d) { return extents_[d] == 1 || extents_[d] == 3; };
  switch (extents_.size()) {
    case 4: choose(!is_channels(1) && is_channels(3) ? Layout::pixels : Layout::planes); break;
    case 3:
      layout = Layout::grey;
      image = {1, extents_[1], extents_[2]};
      break;
    case 2:
      layout = Layout::flat;
      numbers = extents_[1];
      // Of image files, which have any size; other data may have this many numbers in another shape.
      for (const std::int64_t channels : {3, 1}) {
        const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(numbers / channels))));
        if (numbers > 0 && side <= largest_side && channels * side * side == numbers) image = {channels, side, side};
      }
      break;
    default: fail("is no batch of images");
  }
}

void ImageInput::choose(Layout chosen) {
  layout = chosen;
  image = layout == Layout::pixels ? Shape{extents_[3], extents_[1], extents_[2]} : Shape{extents_[1], extents_[2], extents_[3]};
  if (image[0] != 0 && image[0] != 1 && image[0] != 3) fail("has neither 1 nor 3 channels");
}

void ImageInput::fail(std::string_view reason) const { throw Error(fmt::format("{}: {} {}", file_, description_, reason)); }

Tensor ImageInput::of(const Tensor& images) const {
  Tensor x = images;
  const auto n = x.size(0), height = x.size(2), width = x.size(3);
  if (layout == Layout::pixels) x = permute(x, {0, 2, 3, 1});
  if (layout == Layout::grey) x = reshape(x, {n, height, width});
  if (layout == Layout::flat) x = reshape(x, {n, x.size(1) * height * width});
  if (type == "float16") return cast(x, Dtype::f16);
  if (type == "double") return cast(x, Dtype::f64);
  if (takes_bytes()) return cast(round(x * 255.0), Dtype::u8);
  return x;
}

Tensor normalized(const Tensor& images, const std::vector<float>& mean, const std::vector<float>& std, const std::string& what) {
  const auto by_channel = [&](const std::vector<float>& values, std::string_view name) {
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(images.size(1)))
      throw Error(fmt::format("{}: the {} has {} numbers for {} channels", what, name, values.size(), images.size(1)));
    return reshape(Tensor::from(values), {std::ssize(values), 1, 1});
  };
  Tensor x = images;
  if (!mean.empty()) x = x - by_channel(mean, "mean");
  if (!std.empty()) x = x / by_channel(std, "std");
  return x;
}

}  // namespace clnet::tools
