// WAV files, and mel spectrograms beside torchaudio's.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using Catch::Contains;

template <class... Numbers>
std::string packed(Numbers... numbers) {
  std::string result;
  (result.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return result;
}

/// A file of one "fmt " chunk and one "data" chunk.
struct Wav {
  std::uint16_t kind = 1, channels = 1, bits = 16;
  std::uint32_t rate = 8000;
  std::string data = packed(std::int16_t{16384}, std::int16_t{-32768}), before = {}, extension = {};
  int block = -1;
  std::uint32_t size = static_cast<std::uint32_t>(data.size());

  std::string file() const {
    const auto frame = static_cast<std::uint16_t>(block >= 0 ? block : channels * bits / 8);
    const auto format = packed(kind, channels, rate, rate * frame, frame, bits) + extension;
    return "RIFF" + packed(std::uint32_t{0}) + "WAVE" + before + "fmt " + packed(static_cast<std::uint32_t>(format.size())) +
           format + "data" + packed(size) + data;
  }
};

Sound parsed(const std::string& file) {
  return decode_wav({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "a.wav");
}
std::vector<float> samples_of(const Sound& sound) {
  const auto values = sound.samples.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("WAV files of all codings are read") {
  CHECK(samples_of(parsed(Wav().file())) == std::vector<float>{0.5F, -1});
  CHECK(parsed(Wav().file()).rate == 8000);
  const auto stereo = parsed(Wav{.channels = 2, .bits = 8, .data = std::string("\x80\xff\0\x40", 4)}.file());
  CHECK(stereo.samples.shape == Shape{2, 2});
  CHECK(samples_of(stereo) == std::vector<float>{0, -1, 127.0F / 128, -0.5F});
  CHECK(samples_of(parsed(Wav{.bits = 24, .data = std::string("\0\0\x40\xff\xff\xff", 6)}.file())) ==
        std::vector<float>{0.5F, -1.0F / (1 << 23)});
  CHECK(samples_of(parsed(Wav{.bits = 32, .data = packed(std::int32_t{1 << 30}, std::int32_t{INT32_MIN})}.file())) ==
        std::vector<float>{0.5F, -1});
  CHECK(samples_of(parsed(Wav{.kind = 3, .bits = 32, .data = packed(1.25F, -0.1F)}.file())) == std::vector<float>{1.25F, -0.1F});
  CHECK(samples_of(parsed(Wav{.kind = 3, .bits = 64, .data = packed(1.25, -0.1)}.file())) == std::vector<float>{1.25F, -0.1F});
  // Extensible: what it is stands at the beginning of an identifier. Other chunks are skipped, with a byte behind odd ones.
  const auto extension = packed(std::uint16_t{22}, std::uint16_t{16}, std::uint32_t{4}, std::uint16_t{1}) + std::string(14, 'x');
  const auto before = "LIST" + packed(std::uint32_t{3}) + std::string("abc\0", 4);
  CHECK(samples_of(parsed(Wav{.kind = 0xfffe, .before = before, .extension = extension}.file())) == std::vector<float>{0.5F, -1});
}

TEST_CASE("a WAV file that is not one says why") {
  const auto fault = [](const std::string& file) {
    try {
      parsed(file);
    } catch (const FileError& error) {
      CHECK(std::string(error.what()).starts_with("a.wav: "));
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      return std::string(error.what());
    }
    return std::string("read");
  };
  const auto file = Wav().file();
  CHECK_THAT(fault(""), Contains("does not begin with RIFF"));
  CHECK_THAT(fault("RF64" + file.substr(4)), Contains("of the kind RF64"));
  CHECK_THAT(fault(file.substr(0, 30)), Contains("\"fmt \" would have 16 bytes, and 10 follow"));
  CHECK_THAT(fault(file.substr(0, 36)), Contains("no chunk \"data\""));
  CHECK_THAT(fault(file.substr(0, 12) + file.substr(36)), Contains("no chunk \"fmt \" before its data"));
  CHECK_THAT(fault(file.substr(0, 36) + file.substr(12)), Contains("two chunks \"fmt \""));
  CHECK_THAT(fault(Wav{.size = 5}.file()), Contains("would have 5 bytes, and 4 follow"));
  CHECK_THAT(fault(Wav{.size = 0xffffffff}.file()), Contains("would have 4294967295 bytes"));
  CHECK_THAT(fault(Wav{.size = 3}.file()), Contains("no whole number of frames of 2"));
  CHECK_THAT(fault(Wav{.kind = 2}.file()), Contains("the coding 2"));
  CHECK_THAT(fault(Wav{.kind = 0xfffe}.file()), Contains("extensible chunk"));
  CHECK_THAT(fault(Wav{.bits = 12}.file()), Contains("whole numbers of 12 bits"));
  CHECK_THAT(fault(Wav{.kind = 3}.file()), Contains("floats of 16 bits"));
  CHECK_THAT(fault(Wav{.channels = 0}.file()), Contains("0 channels"));
  CHECK_THAT(fault(Wav{.channels = 65}.file()), Contains("65 channels"));
  CHECK_THAT(fault(Wav{.rate = 0}.file()), Contains("0 frames per second"));
  CHECK_THAT(fault(Wav{.block = 3}.file()), Contains("frames of 3 bytes, expected 2"));
}

TEST_CASE("sounds return from WAV files") {
  const test::Folder folder;
  const Sound sound{.rate = 11025, .samples = Array(std::vector<float>{0, 0.25F, -1, 0.5F, -0.75F, 1}, Shape{2, 3})};
  for (const auto& [format, error] : {std::pair{WavFormat::pcm8, 1.0 / 128},
                                      {WavFormat::pcm16, 1.0 / 32768},
                                      {WavFormat::pcm24, 1.0 / (1 << 23)},
                                      {WavFormat::pcm32, 1e-7},
                                      {WavFormat::f32, 0.0},
                                      {WavFormat::f64, 0.0}}) {
    write_wav(folder / "a.wav", sound, format);
    const auto back = read_wav(folder / "a.wav");
    CHECK(back.rate == 11025);
    REQUIRE(back.samples.shape == Shape{2, 3});
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(samples_of(back)[i] - samples_of(sound)[i]) <= error);
  }
  const Sound odd{.rate = 8000, .samples = Array(std::vector<float>{2, NAN, -3}, Shape{1, 3})};
  write_wav(folder / "a.wav", odd, WavFormat::pcm8);
  CHECK(std::filesystem::file_size(folder / "a.wav") == 48);
  CHECK(samples_of(read_wav(folder / "a.wav")) == std::vector<float>{127.0F / 128, 0, -1});
  CHECK_THROWS_WITH(write_wav(folder / "a.wav", {.rate = 8000, .samples = Array(1.0F)}), Contains("write_wav"));
  CHECK_THROWS_WITH(write_wav(folder / "a.wav", {.rate = 0, .samples = sound.samples}), Contains("0 frames per second"));
  CHECK_THROWS_AS(read_wav(folder / "b.wav"), FileError);
}

/// A signal that the reference had, too.
std::vector<float> some_sound() {
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2000; ++i)
    values.push_back(static_cast<float>(static_cast<double>((i * 7919 + (i * i) % 1013 * 31) % 2001 - 1000) / 1000 * 0.5 +
                                        0.5 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 8000)));
  return values;
}

void check_frames(const Array& mel, const std::vector<std::pair<int, std::vector<double>>>& wanted) {
  const auto frames = static_cast<std::size_t>(mel.shape[1]);
  for (const auto& [frame, bands] : wanted)
    for (std::size_t m = 0; m < bands.size(); ++m) {
      INFO("frame " << frame << ", band " << m);
      CHECK(mel.values<float>()[m * frames + static_cast<std::size_t>(frame)] == Approx(bands[m]).epsilon(1e-4));
    }
}

TEST_CASE("mel spectrograms are those of torchaudio 2.11") {
  const auto sound = some_sound();
  const MelOptions htk{.n_fft = 256, .hop_length = 100, .n_mels = 8};
  const auto mel = mel_spectrogram(sound, 8000, htk);
  CHECK(mel.shape == Shape{8, 21});
  check_frames(mel, {{0, {102.0656, 875.2494, 321.329, 64.80894, 93.12905, 175.7437, 280.6286, 227.9572}},
                     {3, {86.259, 1128.337, 498.8389, 70.91402, 78.59525, 116.4575, 161.7017, 216.3903}},
                     {20, {158.8122, 1180.146, 346.7807, 118.2827, 60.60628, 87.3607, 222.3693, 157.4019}}});
  const auto slaney = mel_spectrogram(sound, 8000,
                                      {.n_fft = 200,
                                       .win_length = 160,
                                       .hop_length = 80,
                                       .n_mels = 6,
                                       .f_min = 100,
                                       .f_max = 3500,
                                       .power = 1,
                                       .scale = MelScale::slaney,
                                       .slaney_norm = true});
  CHECK(slaney.shape == Shape{6, 26});
  check_frames(slaney, {{0, {0.1717619, 0.06561066, 0.04892718, 0.03869598, 0.06031727, 0.05768448}},
                        {3, {0.1861643, 0.07596519, 0.03200173, 0.05758235, 0.05454183, 0.05709906}},
                        {25, {0.2004803, 0.06669164, 0.06038576, 0.02878793, 0.03799506, 0.04607668}}});
  const auto inside = mel_spectrogram(sound, 8000, {.n_fft = 256, .n_mels = 5, .center = false});
  CHECK(inside.shape == Shape{5, 14});
  check_frames(inside, {{0, {804.4514, 824.9666, 103.6926, 200.2511, 306.1258}},
                        {13, {803.0779, 768.1121, 149.1829, 184.5885, 290.5297}}});
  auto decibel = htk;
  decibel.log = MelLog::decibel;
  check_frames(mel_spectrogram(sound, 8000, decibel),
               {{3, {19.35804, 30.52439, 26.9796, 18.50732, 18.95396, 20.66168, 22.08715, 23.35238}}});
  decibel.top_db = 20;
  const auto limited = mel_spectrogram(sound, 8000, decibel);
  const auto values = limited.values<float>();
  CHECK(*std::min_element(values.begin(), values.end()) == Approx(12.195247650146484).epsilon(1e-4));
  CHECK(*std::max_element(values.begin(), values.end()) == Approx(32.150638580322266).epsilon(1e-4));
  auto natural = htk;
  natural.log = MelLog::natural;
  check_frames(mel_spectrogram(sound, 8000, natural), {{3, {std::log(86.259), std::log(1128.337)}}});
}

TEST_CASE("Fourier transforms of awkward lengths are plain sums") {
  const auto sound = some_sound();
  for (const std::int64_t length : {2, 7, 30, 49, 97, 210}) {
    // One band that has all frequencies below the highest with known weights: compare the sum over them.
    const auto mel = mel_spectrogram(sound, 8000, {.n_fft = length, .n_mels = 1, .center = false});
    const double edge = 2595 * std::log10(1 + 4000.0 / 700) / 2, peak = 700 * (std::pow(10, edge / 2595) - 1);
    double wanted = 0;
    for (std::int64_t k = 0; k <= length / 2; ++k) {
      double real = 0, imaginary = 0;
      for (std::int64_t i = 0; i < length; ++i) {
        const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length),
                     value = static_cast<double>(sound[static_cast<std::size_t>(i)]) * (0.5 - 0.5 * std::cos(turn));
        real += value * std::cos(turn * static_cast<double>(k));
        imaginary += value * std::sin(turn * static_cast<double>(k));
      }
      const double hertz = 4000.0 * static_cast<double>(k) / static_cast<double>(length / 2);
      const double weight = std::max(0.0, std::min(hertz / peak, (4000 - hertz) / (4000 - peak)));
      wanted += weight * (real * real + imaginary * imaginary);
    }
    CHECK(mel.values<float>()[0] == Approx(wanted).epsilon(1e-5).margin(1e-9));
  }
}

TEST_CASE("options of mel spectrograms that cannot be say why") {
  const auto sound = some_sound();
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.n_fft = 1}), Contains("n_fft is 1, expected 2 to 16384"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.win_length = 401}), Contains("win_length is 401"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.hop_length = -1}), Contains("hop_length is -1"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.n_mels = 0}), Contains("n_mels is 0"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.f_min = 500, .f_max = 400}), Contains("f_max is 400"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 8000, {.power = 0}), Contains("power is 0"));
  CHECK_THROWS_WITH(mel_spectrogram(sound, 1, {}), Contains("rate is 1"));
  CHECK_THROWS_WITH(mel_spectrogram(std::span(sound).first(200), 8000, {}), Contains("200 samples, expected at least 201"));
  CHECK_NOTHROW(mel_spectrogram(std::span(sound).first(201), 8000, {}));
  CHECK_THROWS_WITH(mel_spectrogram(std::span(sound).first(399), 8000, {.center = false}), Contains("expected at least 400"));
}

TEST_CASE("a folder of sounds is a dataset") {
  const test::Folder folder;
  const auto write = [&](const std::string& name, std::vector<float> values, std::int64_t channels) {
    std::filesystem::create_directories((folder / name).parent_path());
    const auto frames = static_cast<std::int64_t>(values.size()) / channels;
    write_wav(folder / name, {.rate = 1000, .samples = Array(values, Shape{channels, frames})}, WavFormat::f32);
  };
  std::vector<float> ramp(600);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i) / 600;
  for (const char* name : {"low/1.wav", "low/deep/2.WAV", "high/1.wav", "high/2.wav", "high/.hidden.wav", "high/note.txt"})
    write(name, ramp, 1);
  write("low/stereo.wav", ramp, 2);
  SoundOptions options{.rate = 1000, .seconds = 0.5, .mel = {.n_fft = 64, .n_mels = 4}, .mean = 2, .std = 4};
  const auto sounds = sound_folder(folder.path(), options);
  CHECK(sounds.class_names() == std::vector<std::string>{"high", "low"});
  REQUIRE(sounds.size() == 5);
  CHECK(labels_of(sounds) == std::vector<std::int32_t>{0, 0, 1, 1, 1});
  CHECK(sounds.name_of(2) == (folder / "low/1.wav").string());
  const auto sample = sounds.get(2, 0);
  CHECK(sample[0].shape == Shape{1, 4, 16});
  CHECK(sample[1].values<std::int32_t>()[0] == 1);
  const auto whole = mel_spectrogram(std::span(ramp).first(500), 1000, options.mel);
  for (std::size_t i = 0; i < whole.values<float>().size(); ++i)
    CHECK(sample[0].values<float>()[i] == Approx((whole.values<float>()[i] - 2) / 4).margin(1e-6));
  // 300 frames of two channels: their mean, and silence.
  std::vector<float> mono(500);
  for (std::size_t i = 0; i < 300; ++i) mono[i] = (ramp[i] + ramp[i + 300]) / 2;
  CHECK(sounds.get(4, 0)[0].values<float>()[5] == Approx((mel_spectrogram(mono, 1000, options.mel).values<float>()[5] - 2) / 4));
  options.random_start = true;
  const auto moving = sounds.with(options);
  CHECK(moving.get(2, 1)[0].bytes == moving.get(2, 1)[0].bytes);
  CHECK(moving.get(2, 1)[0].bytes != moving.get(2, 2)[0].bytes);
  CHECK(moving.fingerprint() != sounds.fingerprint());
  const auto [rest, test] = sounds.split(0.4, 3);
  CHECK(rest.size() == 3);
  CHECK(labels_of(test) == std::vector<std::int32_t>{0, 1});
  options.rate = 2000;
  CHECK_THROWS_WITH(sounds.with(options).get(0, 0), Contains("1.wav: has 1000 frames per second, expected 2000"));
  options.seconds = 0;
  CHECK_THROWS_WITH(sounds.with(options), Contains("seconds is 0"));
  CHECK_THROWS_WITH(sounds.get(5, 0), Contains("no sample 5"));
  CHECK_THROWS_WITH(sound_folder(folder / "high", options), Contains("holds no folders of sounds"));
  CHECK_THROWS_AS(sound_folder(folder / "none", options), FileError);
}

}  // namespace
}  // namespace clnet::data
