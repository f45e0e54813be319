// PNG by libpng.
#include "clnet/error.h"
#include "lib/data/pixels.h"

#if CLNET_HAS_PNG
#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#endif

namespace clnet::data {

const bool has_png = CLNET_HAS_PNG;

#if CLNET_HAS_PNG

namespace {

/// Deflate's limit: 258 bytes from two bits.
constexpr std::uint64_t most_png_inflation = 1032;
constexpr png_alloc_size_t most_chunk_bytes = 8 << 20;
constexpr png_uint_32 most_chunks = 1;  // none is kept: texts, palettes of others, unknown ones

std::size_t big_endian(FileBytes bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[i];
  return value;
}

/// Of the first chunk eXIf, which may lie behind the pixels; 1 where there is none, or it is damaged.
int orientation_of(FileBytes file) {
  constexpr std::size_t magic = 8, type = 4, around = 12;
  for (auto left = file.subspan(std::min(magic, file.size())); left.size() >= around;) {
    const auto length = big_endian(left);
    if (length > left.size() - around) return 1;
    const auto typed = left.subspan(type, type + length);
    if (std::memcmp(typed.data(), "eXIf", type) == 0) {
      const bool is_whole = ::crc32_z(0, typed.data(), typed.size()) == big_endian(left.subspan(2 * type + length));
      return is_whole ? tiff_orientation(typed.subspan(type)) : 1;
    }
    left = left.subspan(around + length);
  }
  return 1;
}

/// libpng tells of faults by a jump: the functions that it may jump out of have no objects with destructors.
class PngFile {
 public:
  explicit PngFile(FileBytes file) : file_(file), left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error("libpng cannot start");
    }
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  Pixels decoded(Decoding decoding) {
    if (!read_header()) fail();
    const auto height = png_get_image_height(png_, info_), width = png_get_image_width(png_, info_);
    if (const auto fault = size_fault("PNG", height, width); !fault.empty()) throw Error(fault);
    const auto type = png_get_color_type(png_, info_);
    const bool is_coloured = (type & PNG_COLOR_MASK_COLOR) != 0 && type != PNG_COLOR_TYPE_PALETTE;
    if (decoding == Decoding::indices && (is_coloured || png_get_bit_depth(png_, info_) == 16))
      throw Error("has colours or 16 bits, where a mask has the numbers of classes");
    const auto raw = std::uint64_t{png_get_rowbytes(png_, info_)} * height;
    if (raw / most_png_inflation > file_.size())
      throw Error(fmt::format("ends early: {} bytes cannot hold {} x {} pixels", file_.size(), height, width));
    if (!transform(decoding)) fail();
    Pixels image{.height = height, .width = width, .channels = png_get_channels(png_, info_), .bytes = {}};
    if (decoding == Decoding::wide) image.channels *= 2;
    const auto row = png_get_rowbytes(png_, info_);
    if (row != static_cast<std::size_t>(image.width * image.channels)) throw Error("libpng gives rows of another length");
    image.bytes.resize(row * height);
    std::vector<png_bytep> rows(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = image.bytes.data() + y * row;
    if (!read_rows(rows.data())) fail();
    return oriented(std::move(image), orientation_of(file_));
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngFile*>(png_get_error_ptr(png));
    std::strncpy(self->text_, text, sizeof self->text_ - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep out, png_size_t bytes) {
    auto* self = static_cast<PngFile*>(png_get_io_ptr(png));
    if (self->left_.size() < bytes) png_error(png, "ends early");
    std::memcpy(out, self->left_.data(), bytes);
    self->left_ = self->left_.subspan(bytes);
  }
  [[noreturn]] void fail() const { throw Error(fmt::format("is a damaged PNG: {}", text_)); }

  bool read_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, this, &on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // by size_fault()
    png_set_chunk_malloc_max(png_, most_chunk_bytes);
    png_set_chunk_cache_max(png_, most_chunks);
    png_read_info(png_, info_);
    return true;
  }

  bool transform(Decoding decoding) {
    if (setjmp(png_jmpbuf(png_))) return false;
    switch (decoding) {
      case Decoding::colours:
        png_set_expand(png_);
        png_set_scale_16(png_);
        break;
      case Decoding::wide: png_set_expand_16(png_); break;
      case Decoding::indices: png_set_packing(png_); break;
    }
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    return true;
  }

  FileBytes file_, left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char text_[128] = {};
};

}  // namespace

Pixels decode_png(FileBytes file, Decoding decoding) { return PngFile(file).decoded(decoding); }

#else

Pixels decode_png(FileBytes, Decoding) { throw Error("is a PNG, and this clnet was built without libpng (Debian's libpng-dev)"); }

#endif

}  // namespace clnet::data
