// Sounds by ear: makes WAV files of tones, chords, sweeps and noise in the folder sounds, trains a small convolutional network on
// their mel spectrograms, and prints how many new sounds it tells apart.
#include <clnet/clnet.h>

#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

constexpr std::int64_t rate = 8000, frames = 4000;
const std::vector<std::string> kinds{"chord", "noise", "sweep", "tone"};

/// Half a second of a kind of sound, with some noise in it.
std::vector<float> made_up(const std::string& kind, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> pitch(200, 1200), loudness(0.1, 0.3);
  const double hertz = pitch(random), amplitude = loudness(random);
  const auto sine = [](double turns) { return std::sin(2 * std::numbers::pi * turns); };
  std::vector<float> sound;
  for (std::int64_t i = 0; i < frames; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(rate);
    double value = 0;
    if (kind == "tone") value = sine(hertz * t);
    if (kind == "chord") value = (sine(hertz * t) + sine(hertz * 1.25 * t) + sine(hertz * 1.5 * t)) / 2;  // a major triad
    if (kind == "sweep") value = sine(hertz * t + hertz * t * t);
    if (kind == "noise") value = normal(random) / 2;
    sound.push_back(static_cast<float>(amplitude * value + 0.02 * normal(random)));
  }
  return sound;
}

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? std::stoi(argv[1]) : 8, sounds_of_a_kind = argc > 2 ? std::stoi(argv[2]) : 60;
  const std::filesystem::path folder = "sounds";
  std::mt19937 random(1);
  for (const auto& kind : kinds) {
    std::filesystem::create_directories(folder / kind);
    for (int i = 0; i < sounds_of_a_kind; ++i)
      data::write_wav(folder / kind / (std::to_string(i) + ".wav"),
                      {.rate = rate, .samples = data::Array(made_up(kind, random), Shape{1, frames})});
  }

  const data::SoundOptions options{.rate = rate,
                                   .seconds = 0.5,
                                   .mel = {.n_fft = 256, .hop_length = 128, .n_mels = 32, .log = data::MelLog::decibel},
                                   .mean = -10,
                                   .std = 20};
  const auto [training, test] = data::sound_folder(folder, options).split(0.25);
  manual_seed(1);
  nn::Sequential model{nn::Conv2d(1, 16, 3, {.padding = 1}),
                       relu,
                       nn::MaxPool2d(2),
                       nn::Conv2d(16, 32, 3, {.padding = 1}),
                       relu,
                       nn::AdaptiveAvgPool2d({8, 2}),
                       nn::Flatten(),
                       nn::Linear(8 * 2 * 32, static_cast<std::int64_t>(kinds.size()))};
  train::fit(model, training,
             {.epochs = epochs, .batch_size = 20, .optimizer = optim::Adam(model, 3e-3), .workers = 2, .progress = false});
  const double accuracy = train::accuracy(model, test);
  std::cout << test.size() << " new sounds, " << 100 * accuracy << " % of them told apart\n";
  return accuracy > 0.8 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
