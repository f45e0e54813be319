// WAV files as samples, by folders.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clnet/data/audio.h"
#include "clnet/data/samplers.h"
#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/epoch_order.h"
#include "lib/data/folder_entries.h"

namespace clnet::data {
namespace {

constexpr double most_seconds = 3600;

const FileKind sound_files{"sounds", "wav files", {".wav", ".wave"}};

}  // namespace

Sounds::Sounds(std::vector<File> files, std::vector<std::string> class_names, const SoundOptions& options)
    : files_(std::move(files)), class_names_(std::move(class_names)), options_(options) {
  const auto& o = options_;
  if (!(o.seconds > 0 && o.seconds <= most_seconds))
    throw Error(fmt::format("sounds: seconds is {}, expected more than 0 and at most {}", o.seconds, most_seconds));
  if (o.rate < 2 || o.rate > 1'000'000) throw Error(fmt::format("sounds: rate is {}, expected 2 to 1000000", o.rate));
  if (!std::isfinite(o.mean) || !(o.std > 0) || !std::isfinite(o.std))
    throw Error(fmt::format("sounds: mean {} and std {}: expected a number, and one above 0", o.mean, o.std));
  for (const auto& file : files_)
    if (file.label < 0 || std::cmp_greater_equal(file.label, class_names_.size()))
      throw Error(
          fmt::format("sounds: {} has the class {}, expected one of {}", file.path.string(), file.label, class_names_.size()));
}

Example Sounds::get(std::int64_t index, std::uint64_t seed) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("sounds: there is no sample {} among {}", index, size()));
  const auto& file = files_[static_cast<std::size_t>(index)];
  const auto sound = read_wav(file.path);
  if (sound.rate != options_.rate)
    throw FileError(fmt::format("{}: has {} frames per second, expected {}", file.path.string(), sound.rate, options_.rate));
  const auto channels = static_cast<std::size_t>(sound.samples.shape[0]),
             frames = static_cast<std::size_t>(sound.samples.shape[1]);
  std::vector<float> piece(static_cast<std::size_t>(std::llround(options_.seconds * static_cast<double>(options_.rate))));
  const auto count = std::min(piece.size(), frames);
  SampleRandom random(seed, 0, 0);
  const auto begin = options_.random_start ? static_cast<std::size_t>(random.below(frames - count + 1)) : 0;
  const auto values = sound.samples.values<float>();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < channels; ++c) piece[i] += values[c * frames + begin + i];
    piece[i] /= static_cast<float>(channels);
  }
  auto mel = mel_spectrogram(piece, options_.rate, options_.mel);
  mel.shape = Shape{1, mel.shape[0], mel.shape[1]};
  for (float& value : mel.values<float>()) value = static_cast<float>((value - options_.mean) / options_.std);
  Example example;
  example.push_back(std::move(mel));
  example.emplace_back(file.label, "label");
  return example;
}

const Sounds::File& Sounds::file_at(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("sounds: there is no sample {} among {}", index, size()));
  return files_[static_cast<std::size_t>(index)];
}
std::string Sounds::name_of(std::int64_t index) const { return file_at(index).path.string(); }
std::int32_t Sounds::label_of(std::int64_t index) const { return file_at(index).label; }

std::string Sounds::fingerprint() const {
  Checksum names;
  // Without folders: a set may move.
  for (const auto& file : files_)
    names.add(file.path.filename().string()).add(class_names_[static_cast<std::size_t>(file.label)]);
  const auto& o = options_;
  const auto& m = o.mel;
  return fmt::format("{} sounds, names {}, rate {}, {} s{}, mel {} {} {} {} {} {} {} {} {} {} {} {}, mean {}, std {}", size(),
                     names.text(), o.rate, o.seconds, o.random_start ? " from anywhere" : "", m.n_fft, m.win_length, m.hop_length,
                     m.n_mels, m.f_min, m.f_max, m.power, static_cast<int>(m.scale), m.slaney_norm, m.center,
                     static_cast<int>(m.log), m.top_db, o.mean, o.std);
}

std::pair<Sounds, Sounds> Sounds::split(double share, std::uint64_t seed) const {
  const auto [first, second] = stratified_split(labels_of(*this), share, seed);
  const auto part = [&](const std::vector<std::int64_t>& indices) {
    std::vector<File> files;
    for (const auto index : indices) files.push_back(files_[static_cast<std::size_t>(index)]);
    return Sounds(std::move(files), class_names_, options_);
  };
  return {part(first), part(second)};
}

Sounds sound_folder(const std::filesystem::path& folder, const SoundOptions& options) {
  auto found = files_by_class(folder, sound_files);
  std::vector<Sounds::File> files;
  for (auto& [path, label] : found.files) files.push_back({.path = std::move(path), .label = label});
  return {std::move(files), std::move(found.names), options};
}

}  // namespace clnet::data
