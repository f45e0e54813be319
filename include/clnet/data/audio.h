// Sounds: WAV files, mel spectrograms, and folders of sounds by class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clnet/data/dataset.h"
#include "clnet/export.h"

namespace clnet::data {

/// A piece of sound.
struct Sound {
  std::int64_t rate = 16000;  ///< frames per second
  Array samples;              ///< f32 {channels, frames}, from -1 to 1
};

/// How a WAV file stores a sample.
enum class WavFormat : std::uint8_t { pcm8, pcm16, pcm24, pcm32, f32, f64 };

/// A WAV file: whole numbers of 8, 16, 24 or 32 bits, or floats of 32 or 64, also WAVE_FORMAT_EXTENSIBLE. Whole numbers become
/// numbers from -1 to 1 as torchaudio makes them. Throws FileError, with the path, for another coding, for sizes that the file
/// does not bear out, and above 1 GiB, 64 channels or 2^28 samples.
CLNET_API Sound read_wav(const std::filesystem::path& path);
/// The same from bytes; `name` stands for the path in errors.
CLNET_API Sound decode_wav(std::span<const std::uint8_t> file, const std::string& name);
/// Writes a temporary file and renames it. Numbers beyond -1 to 1 are clipped where the format has none. Throws Error for a sound
/// that is not f32 {channels, frames} of 1 to 64 channels, and FileError where the file cannot be written.
CLNET_API void write_wav(const std::filesystem::path& path, const Sound& sound, WavFormat format = WavFormat::pcm16);

/// Formulas of the mel scale: HTK's, or that of Slaney's Auditory Toolbox.
enum class MelScale : std::uint8_t { htk, slaney };
/// The last step of a mel spectrogram: none, the natural logarithm, or decibels.
enum class MelLog : std::uint8_t { none, natural, decibel };

/// Options of mel_spectrogram(): those of torchaudio.transforms.MelSpectrogram, with its defaults.
struct MelOptions {
  std::int64_t n_fft = 400;
  std::int64_t win_length = 0;  ///< of the Hann window; 0: n_fft
  std::int64_t hop_length = 0;  ///< 0: half of win_length
  std::int64_t n_mels = 128;
  double f_min = 0, f_max = 0;  ///< Hz; f_max 0: half of the rate
  double power = 2;             ///< of the magnitudes
  MelScale scale = MelScale::htk;
  bool slaney_norm = false;   ///< divides each band by its width
  bool center = true;         ///< reflects half of n_fft at both ends, so that frame i is around sample i * hop_length
  MelLog log = MelLog::none;  ///< of at least 1e-10
  double top_db = 0;          ///< of decibels: nothing is further below the largest; 0: no limit
};

/// Mel bands over time, f32 {n_mels, frames}. Throws Error for options out of range, and for fewer samples than one window takes:
/// n_fft, or with `center` n_fft / 2 + 1.
CLNET_API Array mel_spectrogram(std::span<const float> samples, std::int64_t rate, const MelOptions& options = {});

/// How files become samples.
struct SoundOptions {
  std::int64_t rate = 16000;  ///< of all files: others are an error
  double seconds = 1;         ///< shorter sounds get silence behind them, longer ones are cut
  bool random_start = false;  ///< cuts longer sounds anywhere, by the sample's seed: of training samples. Else at the beginning
  MelOptions mel = {.n_mels = 64, .log = MelLog::decibel};
  double mean = 0, std = 1;  ///< (x - mean) / std of all values
};

/// WAV files with a class each. Channels are averaged. A sample is an f32 {1, n_mels, frames} and its class, i32 {}. Files are
/// read and transformed when samples are, so several `workers` help.
class CLNET_API Sounds : public Dataset {
 public:
  struct File {
    std::filesystem::path path;
    std::int32_t label = 0;  ///< of class_names
  };

  /// Throws Error for options out of range, and for labels outside of `class_names`.
  Sounds(std::vector<File> files, std::vector<std::string> class_names, const SoundOptions& options);

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::int32_t label_of(std::int64_t index) const override;
  /// The file's path.
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

  const std::vector<File>& files() const { return files_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  const SoundOptions& options() const { return options_; }
  /// The same files with other options.
  Sounds with(const SoundOptions& options) const { return {files_, class_names_, options}; }
  /// Two sets, of which the second has this share of each class, as by stratified_split().
  std::pair<Sounds, Sounds> split(double share, std::uint64_t seed = 0) const;

 private:
  const File& file_at(std::int64_t index) const;

  std::vector<File> files_;
  std::vector<std::string> class_names_;
  SoundOptions options_;
};

/// A folder with a folder of WAV files per class: DIR/bell/1.wav. Classes are in the order of their names. Files are found by
/// their ending in up to 16 levels of folders; hidden ones are left out. Throws FileError where there is none.
CLNET_API Sounds sound_folder(const std::filesystem::path& folder, const SoundOptions& options = {});

}  // namespace clnet::data
