// Images written as PNG, or as BMP.
#include <fmt/format.h>

#include <string>

#include "clnet/data/images.h"
#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/data/pixels.h"

#if CLNET_HAS_PNG
#include <png.h>
#endif

namespace clnet::data {
namespace {

/// Rows of pixels, a byte per channel.
std::string interleaved(const Array& image, std::int64_t channels) {
  const auto values = image.values<std::uint8_t>();
  const auto plane = values.size() / static_cast<std::size_t>(image.shape[0]);
  std::string bytes;
  bytes.reserve(plane * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
      bytes += static_cast<char>(values[image.shape[0] == 1 ? i : c * plane + i]);
  return bytes;
}

/// 24 bits per pixel, from the bottom up.
std::string as_bmp(const Array& image) {
  constexpr std::size_t header = 54, channels = 3;
  const auto height = static_cast<std::size_t>(image.shape[1]), width = static_cast<std::size_t>(image.shape[2]);
  const auto stride = (width * channels + 3) / 4 * 4;
  const auto pixels = interleaved(image, channels);
  std::string file(header + stride * height, '\0');
  const auto put = [&](std::size_t at, std::size_t value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 255);
  };
  file.replace(0, 2, "BM");
  put(2, file.size());
  put(10, header);
  put(14, 40);  // this header's own size
  put(18, width);
  put(22, height);
  put(26, 1 | 24 << 16);  // a plane of 24 bits
  put(34, stride * height);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        file[header + (height - 1 - y) * stride + x * channels + 2 - c] = pixels[(y * width + x) * channels + c];
  return file;
}

#if CLNET_HAS_PNG
std::string as_png(const Array& image) {
  png_image head{};
  head.version = PNG_IMAGE_VERSION;
  head.height = static_cast<png_uint_32>(image.shape[1]);
  head.width = static_cast<png_uint_32>(image.shape[2]);
  head.format = image.shape[0] == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto pixels = interleaved(image, image.shape[0]);
  png_alloc_size_t size = 0;
  std::string file;
  bool written = png_image_write_to_memory(&head, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0;
  if (written) {
    file.resize(size);
    written = png_image_write_to_memory(&head, file.data(), &size, 0, pixels.data(), 0, nullptr) != 0;
  }
  if (!written) throw Error(fmt::format("write_image: libpng fails: {}", head.message));
  file.resize(size);
  return file;
}
#else
std::string as_png(const Array&) {
  throw Error("write_image: this clnet was built without libpng (Debian's libpng-dev), expected a path that ends in .bmp");
}
#endif

}  // namespace

void write_image(const std::filesystem::path& path, const Array& image) {
  if (image.dtype != Dtype::u8 || image.shape.rank() != 3 || (image.shape[0] != 1 && image.shape[0] != 3))
    throw ShapeError(fmt::format("write_image: {}, expected u8[1 or 3, height, width]", to_string(image.spec())));
  if (const auto fault =
          size_fault("result", static_cast<std::uint64_t>(image.shape[1]), static_cast<std::uint64_t>(image.shape[2]));
      !fault.empty())
    throw Error("write_image: " + fault);
  const auto ending = path.extension();
  if (ending != ".png" && ending != ".bmp")
    throw FileError(fmt::format("{}: ends in \"{}\", expected .png or .bmp", path.string(), ending.string()));
  file::replace(path, ending == ".bmp" ? as_bmp(image) : as_png(image));
}

}  // namespace clnet::data
