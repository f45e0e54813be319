// WAV files: RIFF chunks, of which "fmt " and "data" count (Microsoft's Multimedia Programming Interface, 1991; mmreg.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>

#include "clnet/data/audio.h"
#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"

namespace clnet::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t most_wav_bytes = std::uint64_t{1} << 30;
constexpr std::size_t most_channels = 64, most_samples = std::size_t{1} << 28;
constexpr std::uint32_t most_rate = 1'000'000;
constexpr std::uint16_t pcm_tag = 1, float_tag = 3, extensible_tag = 0xfffe;

struct WavLayout {
  bool is_float = false;
  std::size_t bytes = 0;  ///< of one sample
  std::size_t channels = 0;
  std::uint32_t rate = 0;
};

class WavParser {
 public:
  WavParser(std::span<const std::uint8_t> file, const std::string& name) : file_(file), name_(name) {}

  Sound parse() {
    if (file_.size() < 12 || tag(0) != "RIFF" || tag(8) != "WAVE")
      fail(file_.size() >= 4 && (tag(0) == "RF64" || tag(0) == "RIFX") ? "is of the kind " + tag(0) + ", which is not read"
                                                                       : "is no WAV file: it does not begin with RIFF and WAVE");
    std::optional<WavLayout> layout;
    for (std::size_t at = 12; at + 8 <= file_.size();) {
      const auto id = tag(at);
      const std::uint64_t size = number<std::uint32_t>(at + 4);
      at += 8;
      if (size > file_.size() - at)
        fail(fmt::format("its chunk {} would have {} bytes, and {} follow", in_quotes(id), size, file_.size() - at));
      const auto content = file_.subspan(at, static_cast<std::size_t>(size));
      if (id == "fmt ") {
        if (layout) fail("has two chunks \"fmt \"");
        layout = format(at, content.size());
      } else if (id == "data") {
        if (!layout) fail("has no chunk \"fmt \" before its data");
        return decoded(content, *layout);
      }
      at += content.size() + content.size() % 2;
    }
    fail("has no chunk \"data\"");
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const { throw FileError(fmt::format("{}: {}", name_, reason)); }
  std::string tag(std::size_t at) const { return {reinterpret_cast<const char*>(file_.data()) + at, 4}; }
  template <class T>
  T number(std::size_t at) const {
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }

  WavLayout format(std::size_t at, std::size_t bytes) const {
    constexpr std::size_t plain_bytes = 16, extensible_bytes = 40, tag_in_extension = 24;
    if (bytes < plain_bytes) fail(fmt::format("its chunk \"fmt \" has {} bytes, expected at least {}", bytes, plain_bytes));
    auto kind = number<std::uint16_t>(at);
    WavLayout layout;
    layout.channels = number<std::uint16_t>(at + 2);
    layout.rate = number<std::uint32_t>(at + 4);
    const std::size_t block = number<std::uint16_t>(at + 12), bits = number<std::uint16_t>(at + 14);
    if (kind == extensible_tag) {
      if (bytes < extensible_bytes)
        fail(fmt::format("its extensible chunk \"fmt \" has {} bytes, expected {}", bytes, extensible_bytes));
      kind = number<std::uint16_t>(at + tag_in_extension);
    }
    layout.is_float = kind == float_tag;
    if (kind != pcm_tag && kind != float_tag)
      fail(fmt::format("its samples have the coding {}, expected 1 (whole numbers) or 3 (floats)", kind));
    const bool is_known = layout.is_float ? bits == 32 || bits == 64 : bits == 8 || bits == 16 || bits == 24 || bits == 32;
    if (!is_known)
      fail(fmt::format("its samples are {} of {} bits, which are not read", layout.is_float ? "floats" : "whole numbers", bits));
    layout.bytes = bits / 8;
    if (layout.channels < 1 || layout.channels > most_channels)
      fail(fmt::format("has {} channels, expected 1 to {}", layout.channels, most_channels));
    if (layout.rate < 1 || layout.rate > most_rate)
      fail(fmt::format("has {} frames per second, expected 1 to {}", layout.rate, most_rate));
    if (block != layout.bytes * layout.channels)
      fail(fmt::format("has frames of {} bytes, expected {} for {} channels of {} bits", block, layout.bytes * layout.channels,
                       layout.channels, bits));
    return layout;
  }

  static float sample(const std::uint8_t* in, const WavLayout& layout) {
    if (layout.is_float) {
      if (layout.bytes == sizeof(float)) {
        float value;
        std::memcpy(&value, in, sizeof value);
        return value;
      }
      double value;
      std::memcpy(&value, in, sizeof value);
      return static_cast<float>(value);
    }
    if (layout.bytes == 1) return static_cast<float>(in[0] - 128) / 128.0F;
    // The sign is in the highest byte.
    std::int32_t value = 0;
    std::memcpy(reinterpret_cast<std::uint8_t*>(&value) + sizeof value - layout.bytes, in, layout.bytes);
    return static_cast<float>(value * 0x1p-31);
  }

  Sound decoded(std::span<const std::uint8_t> data, const WavLayout& layout) const {
    const auto frame = layout.bytes * layout.channels;
    if (data.size() % frame != 0)
      fail(fmt::format("its {} bytes of data are no whole number of frames of {}", data.size(), frame));
    const auto frames = data.size() / frame;
    if (frames * layout.channels > most_samples) fail(fmt::format("has more than {} samples", most_samples));
    Sound sound{.rate = layout.rate,
                .samples = Array(Shape{static_cast<std::int64_t>(layout.channels), static_cast<std::int64_t>(frames)}, Dtype::f32,
                                 "sound")};
    const auto out = sound.samples.values<float>();
    for (std::size_t i = 0; i < frames; ++i)
      for (std::size_t c = 0; c < layout.channels; ++c)
        out[c * frames + i] = sample(data.data() + i * frame + c * layout.bytes, layout);
    return sound;
  }

  const std::span<const std::uint8_t> file_;
  const std::string& name_;
};

template <class T>
void append_bytes(std::string& out, T value, std::size_t bytes = sizeof(T)) {
  out.append(reinterpret_cast<const char*>(&value), bytes);
}

void append_sample(std::string& out, float value, WavFormat format) {
  // NaN is written as silence where there is no other.
  const double clipped = std::isnan(value) ? 0 : std::clamp(static_cast<double>(value), -1.0, 1.0);
  const auto whole = [&](int bits) {
    const double largest = std::ldexp(1.0, bits - 1);
    return static_cast<std::int64_t>(std::min(std::nearbyint(clipped * largest), largest - 1));
  };
  switch (format) {
    case WavFormat::pcm8: append_bytes(out, static_cast<std::uint8_t>(whole(8) + 128)); break;
    case WavFormat::pcm16: append_bytes(out, whole(16), 2); break;
    case WavFormat::pcm24: append_bytes(out, whole(24), 3); break;
    case WavFormat::pcm32: append_bytes(out, whole(32), 4); break;
    case WavFormat::f32: append_bytes(out, value); break;
    case WavFormat::f64: append_bytes(out, static_cast<double>(value)); break;
  }
}

}  // namespace

Sound decode_wav(std::span<const std::uint8_t> file, const std::string& name) { return WavParser(file, name).parse(); }

Sound read_wav(const std::filesystem::path& path) {
  const auto content = file::read(path, most_wav_bytes);
  return decode_wav({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}, path.string());
}

void write_wav(const std::filesystem::path& path, const Sound& sound, WavFormat format) {
  constexpr std::array<std::uint16_t, 6> bits_of{8, 16, 24, 32, 32, 64};
  constexpr std::size_t header_bytes = 36;
  const auto& samples = sound.samples;
  if (samples.dtype != Dtype::f32 || samples.shape.rank() != 2 || samples.shape[0] < 1 ||
      std::cmp_greater(samples.shape[0], most_channels))
    throw Error(fmt::format("write_wav: a sound is f32 {{channels, frames}} of 1 to {} channels, not {}", most_channels,
                            to_string(samples.spec())));
  if (sound.rate < 1 || sound.rate > most_rate)
    throw Error(fmt::format("write_wav: {} frames per second, expected 1 to {}", sound.rate, most_rate));
  const auto bits = bits_of[static_cast<std::size_t>(format)];
  const auto channels = static_cast<std::size_t>(samples.shape[0]), frames = static_cast<std::size_t>(samples.shape[1]);
  const auto data_bytes = channels * frames * bits / 8, frame = channels * bits / 8;
  if (data_bytes > std::numeric_limits<std::uint32_t>::max() - header_bytes - 1)
    throw Error(fmt::format("write_wav: {} bytes of samples are more than a WAV file holds", data_bytes));
  std::string out = "RIFF";
  append_bytes(out, static_cast<std::uint32_t>(header_bytes + data_bytes + data_bytes % 2));
  out += "WAVEfmt ";
  append_bytes(out, std::uint32_t{16});
  append_bytes(out, format == WavFormat::f32 || format == WavFormat::f64 ? float_tag : pcm_tag);
  append_bytes(out, static_cast<std::uint16_t>(channels));
  append_bytes(out, static_cast<std::uint32_t>(sound.rate));
  append_bytes(out, static_cast<std::uint32_t>(static_cast<std::uint64_t>(sound.rate) * frame));
  append_bytes(out, static_cast<std::uint16_t>(frame));
  append_bytes(out, bits);
  out += "data";
  append_bytes(out, static_cast<std::uint32_t>(data_bytes));
  const auto values = samples.values<float>();
  for (std::size_t i = 0; i < frames; ++i)
    for (std::size_t c = 0; c < channels; ++c) append_sample(out, values[c * frames + i], format);
  out.resize(out.size() + data_bytes % 2);
  file::replace(path, out);
}

}  // namespace clnet::data
