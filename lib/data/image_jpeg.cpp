// JPEG by libjpeg-turbo.
#include "clnet/error.h"
#include "lib/data/pixels.h"

#if CLNET_HAS_JPEG
#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>

// After <cstdio>, which they need.
#include <jerror.h>
#include <jpeglib.h>
#endif

namespace clnet::data {

const bool has_jpeg = CLNET_HAS_JPEG;

#if CLNET_HAS_JPEG

namespace {

/// A file of a few bytes can have any number of scans over a large image.
constexpr int most_scans = 128;
constexpr unsigned most_segment = 65533;

/// libjpeg tells of faults by a jump: the functions that it may jump out of have no objects with destructors.
class JpegFile {
 public:
  explicit JpegFile(FileBytes file) : file_(file) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = &on_error;
    errors_.emit_message = &on_message;
    errors_.output_message = [](j_common_ptr) {};
  }
  ~JpegFile() { jpeg_destroy_decompress(&info_); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  Pixels decoded() {
    if (!read_header()) fail();
    if (const auto fault = size_fault("JPEG", info_.image_height, info_.image_width); !fault.empty()) throw Error(fault);
    int orientation = 1;
    for (auto* marker = info_.marker_list; marker && orientation == 1; marker = marker->next)
      orientation = exif_orientation({marker->data, marker->data_length});
    if (!start()) fail();
    Pixels image{.height = info_.output_height, .width = info_.output_width, .channels = info_.output_components, .bytes = {}};
    image.bytes.resize(static_cast<std::size_t>(image.height * image.width * image.channels));
    if (!read_rows(image.bytes.data(), static_cast<std::size_t>(image.width * image.channels))) fail();
    return oriented(image.channels == 4 ? without_black(image) : std::move(image), orientation);
  }

 private:
  [[noreturn]] static void on_error(j_common_ptr info) {
    auto* self = static_cast<JpegFile*>(info->client_data);
    info->err->format_message(info, self->text_);
    std::longjmp(self->jump_, 1);
  }
  /// Data that are damaged or end early are a warning for libjpeg, which invents the rest.
  static void on_message(j_common_ptr info, int level) {
    const auto code = info->err->msg_code;
    if (level == -1 &&
        (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC))
      on_error(info);
  }
  static void on_progress(j_common_ptr info) {
    if (info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans)
      ERREXIT(info, JERR_BAD_PROGRESSION);
  }
  [[noreturn]] void fail() const { throw Error(fmt::format("is a damaged JPEG: {}", text_)); }

  bool read_header() {
    if (setjmp(jump_)) return false;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = &on_progress;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, file_.data(), file_.size());
    jpeg_save_markers(&info_, JPEG_APP0 + 1, most_segment);
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  bool start() {
    if (setjmp(jump_)) return false;
    const auto stored = info_.jpeg_color_space;
    info_.out_color_space = stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK
                            : stored == JCS_GRAYSCALE                ? JCS_GRAYSCALE
                                                                     : JCS_RGB;
    jpeg_start_decompress(&info_);
    return true;
  }
  bool read_rows(JSAMPROW first, std::size_t row) {
    if (setjmp(jump_)) return false;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW at = first + info_.output_scanline * row;
      jpeg_read_scanlines(&info_, &at, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  /// Cyan, magenta, yellow and black as colours. Adobe's programs store them inverted.
  Pixels without_black(const Pixels& image) const {
    Pixels colours{.height = image.height, .width = image.width, .channels = 3, .bytes = {}};
    colours.bytes.reserve(image.bytes.size() / 4 * 3);
    const bool inverted = info_.saw_Adobe_marker;
    for (std::size_t at = 0; at < image.bytes.size(); at += 4) {
      const auto light = [&](std::size_t c) {
        return static_cast<unsigned>(inverted ? image.bytes[at + c] : 255 - image.bytes[at + c]);
      };
      for (std::size_t c = 0; c < 3; ++c) colours.bytes.push_back(static_cast<std::uint8_t>((light(c) * light(3) + 127) / 255));
    }
    return colours;
  }

  FileBytes file_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  char text_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

Pixels decode_jpeg(FileBytes file) { return JpegFile(file).decoded(); }

#else

Pixels decode_jpeg(FileBytes) {
  throw Error("is a JPEG, and this clnet was built without libjpeg-turbo (Debian's libjpeg62-turbo-dev)");
}

#endif

}  // namespace clnet::data
