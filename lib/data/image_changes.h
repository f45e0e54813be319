// Random changes of a decoded image, with its mask and its boxes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "clnet/data/images.h"
#include "lib/data/epoch_order.h"
#include "lib/data/pixels.h"

namespace clnet::data {

/// 255 in a mask's file is no class, and counts for nothing: -100.
constexpr std::uint8_t not_counted = 255;
constexpr std::int32_t ignored_class = -100;

/// Of boxes, to either side.
constexpr float most_coordinate = 1e6F;

/// Throws Error for options out of range.
void validate(const ImageOptions& options);
/// All options, for fingerprints.
std::string text_of(const ImageOptions& options);

/// Uniform from `low` to `high`.
double uniform(SampleRandom& random, double low, double high);

/// A place in an image: pixel (y, x) reaches from x to x + 1 and from y to y + 1.
struct Point {
  double x = 0, y = 0;
};

/// x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5].
struct Affine {
  std::array<double, 6> m{1, 0, 0, 0, 1, 0};
  Point operator()(Point p) const { return {m[0] * p.x + m[1] * p.y + m[2], m[3] * p.x + m[4] * p.y + m[5]}; }
  Affine inverse() const;
};
/// torchvision's affine about `centre`: shears by degrees along x and y, scales, turns by degrees clockwise, and moves.
struct AffineChange {
  double degrees = 0, scale = 1, shear_x = 0, shear_y = 0;
  Point move = {};
};
Affine affine_of(const AffineChange& change, Point centre);

/// How far each pixel of a result lies from its place in the source.
struct Displacements {
  std::int64_t height = 0, width = 0;
  std::vector<float> x, y;
  /// Bilinear between pixels.
  Point at(Point place) const;
};
/// torchvision's elastic transform: noise from -1 to 1, smoothed by a Gaussian of `sigma` pixels, times strength / 2.
Displacements elastic(std::int64_t height, std::int64_t width, double strength, double sigma, SampleRandom& random);

/// The pixel at p comes from forward^-1(p); pixels from outside are `fill`. Smooth: bilinear; else the nearest pixel.
Pixels warped(const Pixels& image, const Affine& forward, std::uint8_t fill, bool smooth);
/// The pixel at p comes from p + displacements(p).
Pixels warped(const Pixels& image, const Displacements& displacements, std::uint8_t fill, bool smooth);

/// One operation of RandAugment on colours, as Pillow computes it; `magnitude` as torchvision gives it.
enum class Recolouring : std::uint8_t { brightness, colour, contrast, sharpness, posterize, solarize, autocontrast, equalize };
void recolour(Pixels& image, Recolouring operation, double magnitude);

/// An image and all that moves with it.
struct Canvas {
  Pixels image;
  Pixels mask = {};  ///< without bytes: none
  /// The borders of boxes as points, which follow the image's changes.
  std::vector<std::vector<Point>> outlines = {};

  void fit(const Box& box, std::int64_t height, std::int64_t width);
  void flip();
  void warp(const Affine& forward, bool smooth);
  void warp(const Displacements& displacements);
};
/// Cuts, resizes and moves as the options say.
void change(Canvas& canvas, const ImageOptions& options, SampleRandom& random);

/// Colours from 0 to 1 with changes, normalised, {channels, height, width}.
Array finished(const Pixels& image, const ImageOptions& options, SampleRandom& random);
/// A part that is erased; without height: none.
struct Part {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};
/// Of torchvision's RandomErasing.
Part random_part_to_erase(const ImageOptions& options, SampleRandom& random);
template <class T>
void erase(Array& planes, const Part& part, T value) {
  const auto height = planes.shape[planes.shape.rank() - 2], width = planes.shape[planes.shape.rank() - 1];
  const auto values = planes.values<T>();
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  for (std::int64_t row = 0; row < rows; ++row)
    if (const auto y = row % height; y >= part.top && y < part.top + part.height)
      for (std::int64_t x = part.left; x < part.left + part.width; ++x) values[static_cast<std::size_t>(row * width + x)] = value;
}

// Changes of planes of red, green and blue, or of grey, from 0 to 1: torchvision's on floating-point images.
void change_brightness(std::span<float> planes, double factor);
void change_contrast(std::span<float> planes, std::int64_t channels, double factor);
void change_saturation(std::span<float> planes, std::int64_t channels, double factor);
void change_hue(std::span<float> planes, std::int64_t channels, double turn);

}  // namespace clnet::data
