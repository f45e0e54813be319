// BMP, of Windows 3 and later: uncompressed, or indices in runs.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>

#include "clnet/error.h"
#include "lib/data/pixels.h"

namespace clnet::data {
namespace {

constexpr std::size_t file_header = 14, least_info_header = 40, masks_end = file_header + 52;
constexpr std::uint32_t uncompressed = 0, runs_of_8_bits = 1, runs_of_4_bits = 2, with_masks = 3;
/// Two bytes of a run are 255 pixels at most.
constexpr std::uint64_t most_bmp_inflation = 128;

class BmpFile {
 public:
  explicit BmpFile(FileBytes file) : file_(file) {
    if (file.size() < file_header + least_info_header) throw Error("is a damaged BMP: its header ends early");
    info_size_ = number(14, 4);
    const auto width = static_cast<std::int32_t>(number(18, 4)), height = static_cast<std::int32_t>(number(22, 4));
    bits_ = number(28, 2);
    compression_ = number(30, 4);
    colours_ = number(46, 4);
    is_top_down_ = height < 0;
    height_ = std::abs(std::int64_t{height});
    width_ = width;
    if (info_size_ < least_info_header)
      throw Error(fmt::format("is a BMP with a header of {} bytes, expected 40 or more", info_size_));
    if (const auto fault = size_fault("BMP", static_cast<std::uint64_t>(height_), static_cast<std::uint64_t>(std::max(0, width)));
        !fault.empty())
      throw Error(fault);
    if (bits_ != 1 && bits_ != 4 && bits_ != 8 && bits_ != 16 && bits_ != 24 && bits_ != 32)
      throw Error(fmt::format("is a BMP of {} bits per pixel, expected 1, 4, 8, 16, 24 or 32", bits_));
    const bool in_runs = (compression_ == runs_of_8_bits && bits_ == 8) || (compression_ == runs_of_4_bits && bits_ == 4);
    if (compression_ != uncompressed && !in_runs && !(compression_ == with_masks && (bits_ == 16 || bits_ == 32)))
      throw Error(fmt::format("is a BMP of compression {} and {} bits, which is not read", compression_, bits_));
    first_ = number(10, 4);
    stride_ = (static_cast<std::uint64_t>(width_) * bits_ + 31) / 32 * 4;
    const auto pixels = static_cast<std::uint64_t>(height_ * width_);
    const auto needed = in_runs ? pixels / most_bmp_inflation : stride_ * static_cast<std::uint64_t>(height_);
    if (first_ > file.size() || file.size() - first_ < needed)
      throw Error(fmt::format("is a damaged BMP: {} bytes of pixels, expected {}",
                              file.size() - std::min<std::size_t>(first_, file.size()), needed));
  }

  Pixels decoded(Decoding decoding) const {
    if (bits_ <= 8) return decoding == Decoding::indices ? indices() : looked_up(indices());
    if (decoding == Decoding::indices) throw Error("has colours, where a mask has the numbers of classes");
    Pixels image{.height = height_, .width = width_, .channels = 3, .bytes = {}};
    image.bytes.reserve(static_cast<std::size_t>(3 * height_ * width_));
    const auto masks = colour_masks();
    const std::size_t item = bits_ / 8;
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < static_cast<std::size_t>(width_); ++x) {
        const auto pixel = number(row(y) + x * item, item);
        for (const auto mask : masks) image.bytes.push_back(part(pixel, mask));
      }
    return image;
  }

 private:
  /// Little-endian. The header's and pixels' bytes are there.
  std::uint32_t number(std::size_t at, std::size_t bytes) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint32_t{file_[at + i]} << (8 * i);
    return value;
  }
  std::size_t row(std::int64_t y) const {
    return first_ + static_cast<std::size_t>(is_top_down_ ? y : height_ - 1 - y) * stride_;
  }

  Pixels indices() const { return compression_ == uncompressed ? packed_indices() : indices_of_runs(); }

  Pixels packed_indices() const {
    Pixels image{.height = height_, .width = width_, .channels = 1, .bytes = {}};
    image.bytes.reserve(static_cast<std::size_t>(height_ * width_));
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < static_cast<std::size_t>(width_); ++x) {
        const std::size_t bit = x * bits_;
        const unsigned byte = file_[row(y) + bit / 8];
        image.bytes.push_back(static_cast<std::uint8_t>((byte >> (8 - bits_ - bit % 8)) & ((1U << bits_) - 1)));
      }
    return image;
  }

  /// Pixels that are jumped over have index 0.
  Pixels indices_of_runs() const {
    constexpr std::uint8_t escape = 0, end_of_row = 0, end_of_image = 1, jump = 2;
    Pixels image{.height = height_, .width = width_, .channels = 1, .bytes = {}};
    image.bytes.resize(static_cast<std::size_t>(height_ * width_));
    auto at = first_;
    std::int64_t x = 0, y = 0;  // from the bottom
    const auto next = [&] {
      if (at >= file_.size()) throw Error("is a damaged BMP: its runs end early");
      return file_[at++];
    };
    const auto put = [&](unsigned index) {
      if (x >= width_ || y >= height_) throw Error("is a damaged BMP: a run leaves the image");
      const auto row = is_top_down_ ? y : height_ - 1 - y;
      image.bytes[static_cast<std::size_t>(row * width_ + x++)] = static_cast<std::uint8_t>(index);
    };
    /// Pixel i of a byte that has one or two.
    const auto part = [&](unsigned byte, unsigned i) { return bits_ == 8 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15U; };
    for (;;) {
      const unsigned count = next(), value = next();
      if (count != escape) {
        for (unsigned i = 0; i < count; ++i) put(part(value, i));
      } else if (value == end_of_row) {
        x = 0;
        ++y;
      } else if (value == end_of_image) {
        return image;
      } else if (value == jump) {
        x += next();
        y += next();
      } else {
        // As many pixels as they are, padded to two bytes.
        const auto begin = at;
        unsigned byte = 0;
        for (unsigned i = 0; i < value; ++i) {
          if (bits_ == 8 || i % 2 == 0) byte = next();
          put(part(byte, i));
        }
        if ((at - begin) % 2 == 1) next();
      }
    }
  }

  Pixels looked_up(const Pixels& indices) const {
    const std::size_t table = file_header + info_size_, count = colours_ == 0 ? std::size_t{1} << bits_ : colours_;
    if (count > 256 || table + 4 * count > file_.size())
      throw Error(fmt::format("is a damaged BMP: a palette of {} colours in {} bytes", count, file_.size()));
    Pixels image{.height = height_, .width = width_, .channels = 3, .bytes = {}};
    image.bytes.reserve(3 * indices.bytes.size());
    for (const std::size_t index : indices.bytes) {
      if (index >= count) throw Error(fmt::format("is a damaged BMP: colour {} of {}", index, count));
      for (const std::size_t c : {2U, 1U, 0U}) image.bytes.push_back(file_[table + 4 * index + c]);
    }
    return image;
  }

  /// Of red, green and blue.
  std::array<std::uint32_t, 3> colour_masks() const {
    if (compression_ != with_masks)
      return bits_ == 16 ? std::array<std::uint32_t, 3>{0x7c00, 0x3e0, 0x1f}
                         : std::array<std::uint32_t, 3>{0xff0000, 0xff00, 0xff};
    if (file_.size() < masks_end) throw Error("is a damaged BMP: its colour masks are missing");
    return {number(54, 4), number(58, 4), number(62, 4)};
  }
  static std::uint8_t part(std::uint32_t pixel, std::uint32_t mask) {
    if (mask == 0) return 0;
    const auto shift = std::countr_zero(mask);
    const std::uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
    return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
  }

  FileBytes file_;
  std::size_t info_size_ = 0, first_ = 0, stride_ = 0;
  std::int64_t height_ = 0, width_ = 0;
  std::uint32_t bits_ = 0, compression_ = 0, colours_ = 0;
  bool is_top_down_ = false;
};

}  // namespace

Pixels decode_bmp(FileBytes file, Decoding decoding) { return BmpFile(file).decoded(decoding); }

}  // namespace clnet::data
