// Pictures for the examples: BMP files, and drawings of shapes for those who have no images at hand.
#ifndef CLNET_EXAMPLES_PICTURE_H
#define CLNET_EXAMPLES_PICTURE_H

#include <clnet/clnet.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

/// Writes colours, u8 {3, height, width}, or grey values or classes, u8 {height, width}, as a BMP file.
inline void write_bmp(const std::filesystem::path& path, const clnet::data::Array& image) {
  const auto pixels = image.values<std::uint8_t>();
  const auto rank = image.shape.rank();
  const std::int64_t channels = rank == 3 ? 3 : 1, height = image.shape[rank - 2], width = image.shape[rank - 1];
  const std::int64_t start = channels == 3 ? 54 : 54 + 4 * 256, stride = (channels * width + 3) / 4 * 4;
  std::string file = "BM";
  const auto number = [&](std::int64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) file += static_cast<char>(value & 255);
  };
  for (auto field : {start + stride * height, std::int64_t{0}, start, std::int64_t{40}, width, height}) number(field, 4);
  number(1, 2);
  number(8 * channels, 2);
  for (int field = 0; field < 6; ++field) number(0, 4);
  for (int grey = 0; channels == 1 && grey < 256; ++grey) number(grey * 0x010101, 4);
  // From the last row to the first, blue before green and red.
  for (auto y = height - 1; y >= 0; --y) {
    for (std::int64_t x = 0; x < width; ++x)
      for (auto c = channels - 1; c >= 0; --c)
        file += static_cast<char>(pixels[static_cast<std::size_t>((c * height + y) * width + x)]);
    file.resize(static_cast<std::size_t>(start + stride * (height - y)), '\0');
  }
  std::ofstream out(path, std::ios::binary);
  out << file;
  if (!out.flush()) throw clnet::FileError("cannot write " + path.string());
}

/// Writes values from 0 to 1, {3, height, width}.
inline void write_bmp(const std::filesystem::path& path, const clnet::Tensor& image) {
  write_bmp(path, clnet::data::Array((image.clamp(0, 1) * 255.0).round().to(clnet::Dtype::u8)));
}

/// A square picture over whose noisy ground shapes are drawn.
struct Drawing {
  static inline const std::vector<std::string> shapes{"circle", "cross", "ring", "square", "triangle"};

  std::int64_t size;
  clnet::data::Array image;  ///< u8 {3, size, size}
  clnet::data::Array mask;   ///< u8 {size, size}: 0 on the ground, 1 + the last shape's number elsewhere

  Drawing(std::int64_t width, std::mt19937& random)
      : size(width), image({3, width, width}, clnet::Dtype::u8), mask({width, width}, clnet::Dtype::u8) {
    for (auto& value : image.values<std::uint8_t>()) value = static_cast<std::uint8_t>(random() % 40);
  }

  /// Draws a shape of this number in a random place, turn and colour. The radius is a part of the picture's size.
  void add(std::size_t shape, double smallest, double largest, std::mt19937& random) {
    const auto between = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random() % 4096) / 4096;
    };
    const auto extent = static_cast<double>(size);
    const double radius = between(smallest, largest) * extent, turn = between(0, 3.14);
    const double left = between(radius, extent - radius), top = between(radius, extent - radius);
    const std::array<double, 3> colour{between(120, 255), between(120, 255), between(120, 255)};
    for (std::int64_t y = 0; y < size; ++y)
      for (std::int64_t x = 0; x < size; ++x) {
        int covered = 0;  // of four points within the pixel
        for (int point = 0; point < 4; ++point) {
          const double across = (static_cast<double>(x) + 0.25 + 0.5 * (point % 2) - left) / radius;
          const double down = (static_cast<double>(y) + 0.25 + 0.5 * (point / 2) - top) / radius;
          covered +=
              contains(shape, across * std::cos(turn) + down * std::sin(turn), down * std::cos(turn) - across * std::sin(turn));
        }
        const auto pixel = static_cast<std::size_t>(y * size + x);
        for (std::size_t c = 0; c < 3; ++c) {
          auto& value = image.values<std::uint8_t>()[c * static_cast<std::size_t>(size * size) + pixel];
          value = static_cast<std::uint8_t>(value + (colour[c] - value) * covered / 4);
        }
        if (covered >= 2) mask.values<std::uint8_t>()[pixel] = static_cast<std::uint8_t>(1 + shape);
      }
  }

 private:
  /// Whether a shape of radius 1 around the origin has the point.
  static bool contains(std::size_t shape, double x, double y) {
    const double near = std::min(std::abs(x), std::abs(y)), far = std::max(std::abs(x), std::abs(y)), squares = x * x + y * y;
    if (shape == 0) return squares < 1;
    if (shape == 1) return near < 0.3 && far < 1;
    if (shape == 2) return squares < 1 && squares > 0.35;
    if (shape == 3) return far < 0.8;
    return y > -0.5 && std::sqrt(3) * std::abs(x) + y < 1;
  }
};

#endif
