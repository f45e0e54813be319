// Super-resolution by ESPCN (W. Shi et al., 2016): super_resolution [FOLDER [EPOCHS]]. A network learns to double the width and
// height of pictures: it computes the four pixels that become of one, and pixel_shuffle() puts them into place. It is measured by
// the peak signal-to-noise ratio (PSNR), beside bicubic interpolation. super_resolution.bmp has a small picture, both
// enlargements, and the original. FOLDER has PNG, JPEG or BMP files; without one it draws shapes.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "arguments.h"
#include "picture.h"

using namespace clnet;

constexpr std::int64_t cut = 48, factor = 2;  // pixels of a sample's large picture, and its width by the small one's

/// Squares out of pictures, each small and large: from the middle, or from a place that the seed gives.
class Cuts : public data::Dataset {
 public:
  Cuts(std::vector<std::filesystem::path> files, bool random_place) : files_(std::move(files)), random_(random_place) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  std::string name_of(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)].string(); }

  data::Example get(std::int64_t index, std::uint64_t seed) const override {
    const auto picture = data::read_image(files_[static_cast<std::size_t>(index)]);
    const auto height = picture.shape[1], width = picture.shape[2];
    if (height < cut || width < cut) throw Error("the picture is smaller than " + std::to_string(cut) + " pixels");
    std::mt19937_64 random(seed);
    const auto place = [&](std::int64_t room) {
      return random_ ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room + 1)) : room / 2;
    };
    const auto top = place(height - cut), left = place(width - cut);
    data::Array large({3, cut, cut}, Dtype::u8);
    for (std::int64_t row = 0; row < 3 * cut; ++row)
      std::copy_n(picture.values<std::uint8_t>().begin() + (row / cut * height + top + row % cut) * width + left, cut,
                  large.values<std::uint8_t>().begin() + row * cut);
    return {numbers(data::resize_image(large, cut / factor, cut / factor)), numbers(large)};
  }

 private:
  /// Pixels as numbers from 0 to 1.
  static data::Array numbers(const data::Array& bytes) {
    data::Array result(bytes.shape, Dtype::f32);
    const auto from = bytes.values<std::uint8_t>();
    std::transform(from.begin(), from.end(), result.values<float>().begin(),
                   [](auto byte) { return static_cast<float>(byte) / 255; });
    return result;
  }

  std::vector<std::filesystem::path> files_;
  bool random_;
};

Tensor bicubic(const Tensor& x) { return interpolate(x, {.scale_factor = {factor}, .mode = Interpolation::bicubic}); }

/// What is to be added to the bicubic interpolation.
struct SuperResolution : nn::Module {
  nn::Sequential body{nn::Conv2d(3, 32, 5, {.padding = 2}), relu, nn::Conv2d(32, 32, 3, {.padding = 1}), relu,
                      nn::Conv2d(32, 3 * factor * factor, 3, {.padding = 1})};
  SuperResolution() { add("body", body); }
  Tensor forward(const Tensor& x) override { return bicubic(x) + pixel_shuffle(body(x), factor); }
};

/// 10 log10(1 / mean squared error) of each picture, in decibels.
Tensor psnr(const Tensor& output, const Tensor& wanted) {
  return -10.0 / std::log(10.0) * log(mean(square(output.clamp(0, 1) - wanted), {1, 2, 3}));
}

/// The pictures of a folder in the order of their names.
std::vector<std::filesystem::path> pictures(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) throw FileError(folder.string() + ": is not a folder");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  if (files.size() < 10)
    throw FileError(folder.string() + ": expected at least 10 pictures, got " + std::to_string(files.size()));
  std::sort(files.begin(), files.end());
  return files;
}

std::filesystem::path draw_shapes() {
  std::mt19937 random(1);
  const std::filesystem::path folder = "super_resolution.shapes";
  std::filesystem::create_directories(folder);
  for (int i = 0; i < 100; ++i) {
    Drawing drawing(64, random);
    for (int shape = 0; shape < 5; ++shape) drawing.add(random() % Drawing::shapes.size(), 0.1, 0.3, random);
    write_bmp(folder / (std::to_string(i) + ".bmp"), drawing.image);
  }
  return folder;
}

int main(int argc, char** argv) try {
  const bool own = argc > 1;
  const auto epochs = number_argument(argc, argv, 2, "EPOCHS", own ? 200 : 50);
  const auto files = pictures(own ? std::filesystem::path(argv[1]) : draw_shapes());
  const auto tests = static_cast<std::ptrdiff_t>(files.size() / 5);
  const Cuts training({files.begin() + tests, files.end()}, true), test({files.begin(), files.begin() + tests}, false);

  manual_seed(1);
  SuperResolution model;
  const metrics::Mean metric("psnr", psnr);
  train::fit(model, training,
             {.epochs = epochs,
              .batch_size = 8,
              .optimizer = optim::Adam(model, 3e-3),
              .validation = test,
              .metrics = {metric},
              .workers = 2});

  nn::Sequential without{bicubic};
  const auto score = [&](nn::Module& enlarging) {
    return train::evaluate(enlarging, test, {.metrics = {metric}}).metrics[0].value;
  };
  const auto before = score(without), after = score(model);
  std::cout << "PSNR " << before << " dB by bicubic interpolation, " << after << " dB by the network\n";

  model.inference();
  for (const auto& [small, large] : data::batches(test, {.batch_size = 1})) {
    const auto blocks = interpolate(small, {.scale_factor = {factor}});
    write_bmp("super_resolution.bmp", concat({blocks, bicubic(small), model(small), large}, 3)[0]);
    break;
  }
  return own || after > before + 1 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "super_resolution: " << error.what() << '\n';
  return 1;
}
