// The way from a file to an image: its format by its content, EXIF orientation, channels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "clnet/error.h"
#include "lib/base/input_file.h"
#include "lib/data/pixels.h"

namespace clnet::data {
namespace {

constexpr std::uint64_t most_file_bytes = std::uint64_t{256} << 20;
constexpr std::array<std::uint8_t, 8> png_magic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<std::uint8_t, 3> jpeg_magic{0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 2> bmp_magic{'B', 'M'};

template <std::size_t count>
bool begins_with(FileBytes file, const std::array<std::uint8_t, count>& magic) {
  return file.size() >= count && std::equal(magic.begin(), magic.end(), file.begin());
}

Pixels decode_any(FileBytes file, Decoding decoding) {
  if (begins_with(file, png_magic)) return decode_png(file, decoding);
  if (begins_with(file, bmp_magic)) return decode_bmp(file, decoding);
  if (!begins_with(file, jpeg_magic)) throw Error("is no PNG, JPEG or BMP");
  if (decoding == Decoding::indices) throw Error("is a JPEG, whose pixels are no exact numbers of classes");
  return decode_jpeg(file);
}

/// As {channels, height, width}.
Array planes_of(const Pixels& image) {
  Array result(Shape{image.channels, image.height, image.width}, Dtype::u8, "image");
  const auto out = result.values<std::uint8_t>();
  const auto plane = static_cast<std::size_t>(image.height * image.width), channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < plane; ++i) out[c * plane + i] = image.bytes[i * channels + c];
  return result;
}

void require_channels(std::int64_t channels) {
  if (channels != 1 && channels != 3) throw Error(fmt::format("images: {} channels, expected 1 or 3", channels));
}

}  // namespace

std::string size_fault(std::string_view format, std::uint64_t height, std::uint64_t width) {
  if (height > 0 && width > 0 && height <= most_pixels / width) return {};
  return fmt::format("is a {} of {} x {} pixels, expected 1 to {}", format, height, width, most_pixels);
}

int exif_orientation(std::span<const std::uint8_t> segment) {
  constexpr std::string_view begin("Exif\0\0", 6);
  if (segment.size() < begin.size() || std::memcmp(segment.data(), begin.data(), begin.size()) != 0) return 1;
  return tiff_orientation(segment.subspan(begin.size()));
}

int tiff_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t orientation_tag = 0x112, short_type = 3;
  constexpr std::size_t header = 8;
  if (tiff.size() < header) return 1;
  const bool is_little = tiff[0] == 'I';
  // 0 where the segment ends before.
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    if (at > tiff.size() || tiff.size() - at < bytes) return value;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint32_t{tiff[at + i]} << (8 * (is_little ? i : bytes - 1 - i));
    return value;
  };
  const std::size_t directory = number(4, 4), entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + 12 * i;
    if (number(entry, 2) != orientation_tag || number(entry + 2, 2) != short_type) continue;
    const auto value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Pixels oriented(Pixels image, int orientation) {
  if (orientation == 1) return image;
  const bool turned = orientation >= 5;
  const auto last_y = image.height - 1, last_x = image.width - 1;
  Pixels result{.height = turned ? image.width : image.height,
                .width = turned ? image.height : image.width,
                .channels = image.channels,
                .bytes = {}};
  result.bytes.reserve(image.bytes.size());
  for (std::int64_t y = 0; y < result.height; ++y)
    for (std::int64_t x = 0; x < result.width; ++x) {
      auto from_y = turned ? x : y, from_x = turned ? y : x;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) from_y = last_y - from_y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) from_x = last_x - from_x;
      const auto* pixel = image.bytes.data() + (from_y * image.width + from_x) * image.channels;
      result.bytes.insert(result.bytes.end(), pixel, pixel + image.channels);
    }
  return result;
}

Pixels with_channels(Pixels image, std::int64_t wanted) {
  if (image.channels == wanted) return image;
  Pixels result{.height = image.height, .width = image.width, .channels = wanted, .bytes = {}};
  const auto pixels = static_cast<std::size_t>(image.height * image.width), channels = static_cast<std::size_t>(image.channels);
  result.bytes.reserve(pixels * static_cast<std::size_t>(wanted));
  for (std::size_t i = 0; i < pixels; ++i) {
    const auto* pixel = image.bytes.data() + i * channels;
    if (wanted == 3)
      result.bytes.insert(result.bytes.end(), 3, *pixel);
    else
      result.bytes.push_back(luma(pixel));
  }
  return result;
}

Pixels decode(FileBytes file, const std::string& name, Decoding decoding) {
  try {
    return decode_any(file, decoding);
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", name, error.what()));
  } catch (const std::bad_alloc&) {
    throw FileError(fmt::format("{}: its pixels do not fit into memory", name));
  }
}

Pixels read_pixels(const std::filesystem::path& path, Decoding decoding) {
  const InputFile file(path);
  if (file.size() > most_file_bytes)
    file.fail(fmt::format("has {} bytes, expected at most {} for an image", file.size(), most_file_bytes));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes.data(), bytes.size());
  return decode(bytes, path.string(), decoding);
}

bool reads_images(std::string_view format) {
  return format == "bmp" || (format == "png" && has_png) || (format == "jpeg" && has_jpeg);
}

Array read_image(const std::filesystem::path& path, std::int64_t channels) {
  require_channels(channels);
  return planes_of(with_channels(read_pixels(path, Decoding::colours), channels));
}

Array read_image16(const std::filesystem::path& path, std::int64_t channels) {
  require_channels(channels);
  const auto image = read_pixels(path, Decoding::wide);
  const bool is_wide = image.channels % 2 == 0;
  const auto stored = static_cast<std::size_t>(is_wide ? image.channels / 2 : image.channels);
  Array result(Shape{channels, image.height, image.width}, Dtype::i32, "image");
  const auto out = result.values<std::int32_t>();
  const auto plane = static_cast<std::size_t>(image.height * image.width);
  for (std::size_t i = 0; i < plane; ++i) {
    constexpr std::uint32_t widened = 257;  // 255 becomes 65535
    std::array<std::uint32_t, 3> colours{};
    for (std::size_t c = 0; c < stored; ++c) {
      const auto at = i * stored + c;
      colours[c] = is_wide ? std::uint32_t{image.bytes[2 * at]} << 8 | image.bytes[2 * at + 1] : image.bytes[at] * widened;
    }
    if (stored == 1) colours[1] = colours[2] = colours[0];
    if (channels == 1 && stored == 3) colours[0] = luma_of(colours);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
      out[c * plane + i] = static_cast<std::int32_t>(colours[c]);
  }
  return result;
}

Array decode_image(std::span<const std::uint8_t> file, const std::string& name, std::int64_t channels) {
  require_channels(channels);
  return planes_of(with_channels(decode(file, name, Decoding::colours), channels));
}

Array read_mask(const std::filesystem::path& path) {
  auto mask = read_pixels(path, Decoding::indices);
  Array result(Shape{mask.height, mask.width}, Dtype::u8, "mask");
  std::memcpy(result.bytes.data(), mask.bytes.data(), mask.bytes.size());
  return result;
}

Array resize_image(const Array& image, std::int64_t height, std::int64_t width) {
  if (image.dtype != Dtype::u8 || image.shape.rank() != 3 || image.shape.numel() == 0)
    throw ShapeError(fmt::format("resize_image: {}, expected u8[channels, height, width]", to_string(image.spec())));
  if (const auto fault = size_fault("result", static_cast<std::uint64_t>(std::max<std::int64_t>(0, height)),
                                    static_cast<std::uint64_t>(std::max<std::int64_t>(0, width)));
      !fault.empty())
    throw Error("resize_image: " + fault);
  Array result(Shape{image.shape[0], height, width}, Dtype::u8, image.name);
  const auto in = image.values<std::uint8_t>(), out = std::span<const std::uint8_t>(result.values<std::uint8_t>());
  const auto plane = in.size() / static_cast<std::size_t>(image.shape[0]),
             wanted = out.size() / static_cast<std::size_t>(image.shape[0]);
  for (std::size_t c = 0; c < static_cast<std::size_t>(image.shape[0]); ++c) {
    const auto part = in.subspan(c * plane, plane);
    const Pixels one{.height = image.shape[1], .width = image.shape[2], .channels = 1, .bytes = {part.begin(), part.end()}};
    const Box whole{.height = static_cast<double>(one.height), .width = static_cast<double>(one.width)};
    const auto done = resized(one, whole, height, width);
    std::copy(done.bytes.begin(), done.bytes.end(),
              result.values<std::uint8_t>().begin() + static_cast<std::ptrdiff_t>(c * wanted));
  }
  return result;
}

}  // namespace clnet::data
