// Decoded images: rows of pixels, each a byte per channel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/data/images.h"

namespace clnet::data {

struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> bytes;  ///< height * width * channels
};

/// Indices: a palette's, and grey values of less than 8 bits as they are, for masks. Wide: PNG with two bytes per value, the
/// higher one first, counted as two channels; other formats as colours.
enum class Decoding : std::uint8_t { colours, indices, wide };

/// Sizes from files are checked by it before anything is allocated.
constexpr std::int64_t most_pixels = std::int64_t{1} << 27;
/// "is a PNG of 0 x 7 pixels, ..."; empty for a size that may be.
std::string size_fault(std::string_view format, std::uint64_t height, std::uint64_t width);

/// The luma of ITU-R 601-2 in PIL's fixed point, of values up to 16 bits.
template <class Colours>
std::uint32_t luma_of(const Colours& colours) {
  return (colours[0] * 19595U + colours[1] * 38470U + colours[2] * 7471U + 0x8000U) >> 16;
}
inline std::uint8_t luma(const std::uint8_t* colours) { return static_cast<std::uint8_t>(luma_of(colours)); }
Pixels with_channels(Pixels image, std::int64_t wanted);

/// Whether this build has the libraries.
extern const bool has_png, has_jpeg;

using FileBytes = std::span<const std::uint8_t>;
/// Each throws Error with the reason alone. Colours give 1 or 3 channels.
Pixels decode_png(FileBytes file, Decoding decoding);
Pixels decode_jpeg(FileBytes file);
Pixels decode_bmp(FileBytes file, Decoding decoding);

/// The EXIF orientation, 1 to 8, of an APP1 segment's content; 1 where it has none.
int exif_orientation(std::span<const std::uint8_t> segment);
/// The same of the TIFF inside, which is a PNG's chunk eXIf.
int tiff_orientation(std::span<const std::uint8_t> tiff);
Pixels oriented(Pixels image, int orientation);

/// Bilinear with antialiasing, as PIL: the box {top, left, height, width} in another size.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};
Pixels resized(const Pixels& image, const Box& box, std::int64_t height, std::int64_t width);
/// The nearest pixel of the box, for masks.
Pixels nearest(const Pixels& image, const Box& box, std::int64_t height, std::int64_t width);

void mirror(Pixels& image);

/// The whole file, decoded. Throws FileError: "NAME: REASON".
Pixels decode(FileBytes file, const std::string& name, Decoding decoding);
Pixels read_pixels(const std::filesystem::path& path, Decoding decoding);

}  // namespace clnet::data
