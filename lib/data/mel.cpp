// Mel spectrograms as torchaudio defines them: a Hann window, Fourier transforms, and triangular filters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "clnet/data/audio.h"
#include "clnet/error.h"

namespace clnet::data {
namespace {

using Complex = std::complex<double>;

/// The discrete Fourier transform of any length, by its prime factors (J. Cooley, J. Tukey, 1965).
class Fourier {
 public:
  explicit Fourier(std::size_t length) : length_(length) {
    for (std::size_t rest = length, factor = 2; rest > 1; ++factor)
      for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
    for (std::size_t i = 0; i < length; ++i)
      roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length)));
    parts_.resize(factors_.empty() ? 1 : factors_.back());
  }
  void operator()(const std::vector<Complex>& in, std::vector<Complex>& out) { step(in.data(), 1, out.data(), length_, 0); }

 private:
  void step(const Complex* in, std::size_t stride, Complex* out, std::size_t length, std::size_t level) {
    if (length == 1) {
      *out = *in;
      return;
    }
    const auto count = factors_[level], each = length / count;
    for (std::size_t part = 0; part < count; ++part) step(in + part * stride, stride * count, out + part * each, each, level + 1);
    for (std::size_t k = 0; k < each; ++k) {
      for (std::size_t part = 0; part < count; ++part) parts_[part] = out[part * each + k] * root(part * k * stride);
      for (std::size_t j = 0; j < count; ++j) {
        Complex sum = 0;
        for (std::size_t part = 0; part < count; ++part) sum += parts_[part] * root(part * j * (length_ / count));
        out[k + j * each] = sum;
      }
    }
  }
  const Complex& root(std::size_t power) const { return roots_[power % length_]; }

  const std::size_t length_;
  std::vector<std::size_t> factors_;
  std::vector<Complex> roots_, parts_;
};

/// M. Slaney's Auditory Toolbox: linear below 1 kHz, logarithmic above.
constexpr double slaney_step = 200.0 / 3, slaney_begin = 1000, slaney_mels = slaney_begin / slaney_step;
const double slaney_log_step = std::log(6.4) / 27;

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < slaney_begin ? hertz / slaney_step : slaney_mels + std::log(hertz / slaney_begin) / slaney_log_step;
}
double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < slaney_mels ? mel * slaney_step : slaney_begin * std::exp(slaney_log_step * (mel - slaney_mels));
}

/// {n_mels, bins}.
std::vector<double> mel_filters(std::int64_t rate, const MelOptions& o) {
  const auto bins = static_cast<std::size_t>(o.n_fft / 2 + 1), bands = static_cast<std::size_t>(o.n_mels);
  const double first = mel_of(o.f_min, o.scale), last = mel_of(o.f_max, o.scale);
  std::vector<double> edges;
  for (std::size_t i = 0; i < bands + 2; ++i)
    edges.push_back(hertz_of(first + (last - first) * static_cast<double>(i) / static_cast<double>(bands + 1), o.scale));
  std::vector<double> filters(bands * bins);
  for (std::size_t m = 0; m < bands; ++m)
    for (std::size_t k = 0; k < bins; ++k) {
      const double hertz = static_cast<double>(rate / 2) * static_cast<double>(k) / static_cast<double>(bins - 1);
      const double rising = (hertz - edges[m]) / (edges[m + 1] - edges[m]),
                   falling = (edges[m + 2] - hertz) / (edges[m + 2] - edges[m + 1]);
      const double norm = o.slaney_norm ? 2 / (edges[m + 2] - edges[m]) : 1;
      filters[m * bins + k] = norm * std::max(0.0, std::min(rising, falling));
    }
  return filters;
}

/// The options with all defaults filled in.
MelOptions checked_mel(MelOptions o, std::int64_t rate) {
  constexpr std::int64_t most_fft = 1 << 14, most_mels = 4096;
  const auto require = [](bool is_right, std::string_view name, auto value, std::string_view expected) {
    if (!is_right) throw Error(fmt::format("mel_spectrogram: {} is {}, expected {}", name, value, expected));
  };
  require(rate >= 2, "rate", rate, "at least 2");
  require(o.n_fft >= 2 && o.n_fft <= most_fft, "n_fft", o.n_fft, "2 to 16384");
  if (o.win_length == 0) o.win_length = o.n_fft;
  require(o.win_length >= 1 && o.win_length <= o.n_fft, "win_length", o.win_length, "1 to n_fft");
  if (o.hop_length == 0) o.hop_length = std::max<std::int64_t>(1, o.win_length / 2);
  require(o.hop_length >= 1, "hop_length", o.hop_length, "at least 1");
  require(o.n_mels >= 1 && o.n_mels <= most_mels, "n_mels", o.n_mels, "1 to 4096");
  if (o.f_max == 0) o.f_max = static_cast<double>(rate / 2);
  require(o.f_min >= 0 && std::isfinite(o.f_min), "f_min", o.f_min, "at least 0");
  require(o.f_max > o.f_min && std::isfinite(o.f_max), "f_max", o.f_max, "more than f_min");
  require(o.power > 0 && std::isfinite(o.power), "power", o.power, "more than 0");
  require(o.top_db >= 0, "top_db", o.top_db, "at least 0");
  return o;
}

void take_logarithms(std::span<float> values, const MelOptions& o) {
  constexpr float least = 1e-10F;
  if (o.log == MelLog::none) return;
  float largest = -std::numeric_limits<float>::infinity();
  for (float& value : values) {
    value = std::max(value, least);
    // Decibels of amplitudes count twice.
    value = o.log == MelLog::natural ? std::log(value) : (o.power == 1 ? 20.0F : 10.0F) * std::log10(value);
    largest = std::max(largest, value);
  }
  if (o.log == MelLog::decibel && o.top_db > 0)
    for (float& value : values) value = std::max(value, largest - static_cast<float>(o.top_db));
}

}  // namespace

Array mel_spectrogram(std::span<const float> samples, std::int64_t rate, const MelOptions& options) {
  const auto o = checked_mel(options, rate);
  const auto length = static_cast<std::int64_t>(samples.size()), margin = o.center ? o.n_fft / 2 : 0;
  const auto least = o.center ? margin + 1 : o.n_fft;
  if (length < least) throw Error(fmt::format("mel_spectrogram: {} samples, expected at least {}", length, least));
  const auto frames = (length + 2 * margin - o.n_fft) / o.hop_length + 1;
  const auto bins = static_cast<std::size_t>(o.n_fft / 2 + 1), bands = static_cast<std::size_t>(o.n_mels);
  // Periodic, in the middle of n_fft.
  std::vector<double> window(static_cast<std::size_t>(o.n_fft));
  for (std::int64_t i = 0; i < o.win_length; ++i)
    window[static_cast<std::size_t>((o.n_fft - o.win_length) / 2 + i)] =
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(o.win_length));
  const auto filters = mel_filters(rate, o);
  Array result(Shape{o.n_mels, frames}, Dtype::f32, "mel");
  const auto out = result.values<float>();
  Fourier transform(window.size());
  std::vector<Complex> in(window.size()), spectrum(window.size());
  std::vector<double> magnitudes(bins);
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    for (std::int64_t i = 0; i < o.n_fft; ++i) {
      auto at = std::abs(frame * o.hop_length + i - margin);
      if (at >= length) at = 2 * (length - 1) - at;
      in[static_cast<std::size_t>(i)] =
          static_cast<double>(samples[static_cast<std::size_t>(at)]) * window[static_cast<std::size_t>(i)];
    }
    transform(in, spectrum);
    for (std::size_t k = 0; k < bins; ++k)
      magnitudes[k] = o.power == 2 ? std::norm(spectrum[k]) : std::pow(std::abs(spectrum[k]), o.power);
    for (std::size_t m = 0; m < bands; ++m) {
      double sum = 0;
      for (std::size_t k = 0; k < bins; ++k) sum += filters[m * bins + k] * magnitudes[k];
      out[m * static_cast<std::size_t>(frames) + static_cast<std::size_t>(frame)] = static_cast<float>(sum);
    }
  }
  take_logarithms(out, o);
  return result;
}

}  // namespace clnet::data
