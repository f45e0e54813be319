// A folder of BMP files with a folder per class, written here: circles, crosses and stripes. The folder is split, a small network
// is trained with random changes of the images, and its confusion matrix is compared with plain loops. Logs are read again.
#include <clnet/clnet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace clnet;

namespace {

constexpr int side = 20;

/// 24 bits per pixel, the lowest row first, rows in multiples of four bytes.
void write_bmp(const std::filesystem::path& path, const std::vector<std::uint8_t>& grey) {
  std::string file = "BM";
  const auto number = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file += static_cast<char>((value >> (8 * i)) & 255U);
  };
  constexpr std::uint32_t stride = (3 * side + 3) / 4 * 4;
  number(54 + stride * side, 4);
  number(0, 4);
  number(54, 4);
  number(40, 4);
  number(side, 4);
  number(side, 4);
  number(1, 2);
  number(24, 2);
  for (int i = 0; i < 6; ++i) number(0, 4);
  for (int y = side - 1; y >= 0; --y) {
    for (int x = 0; x < side; ++x) number(grey[static_cast<std::size_t>(y * side + x)] * 0x010101U, 3);
    number(0, static_cast<int>(stride) - 3 * side);
  }
  std::ofstream(path, std::ios::binary) << file;
}

std::vector<std::uint8_t> drawn(int kind, std::mt19937& random) {
  const auto place = [&] { return 7 + static_cast<int>(random() % 6); };
  const int cx = place(), cy = place(), radius = 4 + static_cast<int>(random() % 3), shift = static_cast<int>(random() % 4);
  const auto light = static_cast<std::uint8_t>(150 + random() % 100);
  std::vector<std::uint8_t> pixels(side * side);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const double distance = std::hypot(x - cx, y - cy);
      const bool on = kind == 0   ? std::abs(distance - radius) < 1
                      : kind == 1 ? distance < radius + 1 && (std::abs(x - cx) < 2 || std::abs(y - cy) < 2)
                                  : (y + shift) % 4 < 2;
      pixels[static_cast<std::size_t>(y * side + x)] = static_cast<std::uint8_t>((on ? light : 20) + random() % 5);
    }
  return pixels;
}

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / ("images-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::mt19937 random(1);
  const std::vector<std::string> names{"circle", "cross", "stripes"};
  std::vector<std::uint8_t> first;
  for (int kind = 0; kind < 3; ++kind) {
    const auto of_kind = folder / "files" / names[static_cast<std::size_t>(kind)];
    std::filesystem::create_directories(of_kind);
    for (int i = 0; i < 50; ++i) {
      const auto pixels = drawn(kind, random);
      if (first.empty()) first = pixels;
      write_bmp(of_kind / (std::to_string(100 + i) + ".bmp"), pixels);
    }
  }

  const data::ImageOptions plain{.height = side, .width = side, .channels = 1};
  const auto all = data::image_folder(folder / "files", plain);
  std::cout << all.size() << " files of";
  for (const auto& name : all.class_names()) std::cout << ' ' << name;
  const auto sample = all.get(0, 0);
  const auto values = sample[0].values<float>();
  std::cout << "\nthe first one " << sample[0].shape << ": "
            << (std::equal(values.begin(), values.end(), first.begin(), first.end(),
                           [](float a, std::uint8_t b) { return std::abs(a - static_cast<float>(b) / 255) < 1e-6F; })
                    ? "right"
                    : "WRONG")
            << '\n';

  const auto [rest, test] = all.split(0.2, 1);
  auto changed = plain;
  changed.crop = 0.8;
  changed.flip = true;
  changed.rotate = 10;
  changed.brightness = 0.2;
  const auto training = rest.with(changed);
  std::cout << training.size() << " for training, " << test.size() << " for the test\n";

  manual_seed(1);
  nn::Sequential model{nn::Conv2d(1, 8, 3, {.padding = 1}),
                       relu,
                       nn::MaxPool2d(2),
                       nn::Conv2d(8, 16, 3, {.padding = 1}),
                       relu,
                       nn::MaxPool2d(2),
                       nn::Flatten(),
                       nn::Linear(16 * 5 * 5, 3)};
  train::FitOptions options{
      .epochs = 15, .batch_size = 12, .optimizer = optim::Adam(model, 3e-3), .validation = test, .workers = 2};
  options.metrics = {metrics::F1(3)};
  options.hooks = {train::tensorboard(folder / "runs"), train::csv(folder / "run.csv")};
  options.progress = false;
  const auto result = train::fit(model, training, options);
  std::cout << "accuracy above 0.9: " << (result.epochs.back().validation->accuracy > 0.9 ? "yes" : "no") << '\n';

  const auto confusion = train::confusion_matrix(model, test);
  std::array<std::array<std::int64_t, 3>, 3> counted{};
  model.inference();
  for (const auto& [x, labels] : data::batches(test, {.batch_size = 8})) {
    const auto guesses = model(x).argmax(1).to_vector<std::int64_t>();
    const auto truth = labels.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < truth.size(); ++i)
      ++counted[static_cast<std::size_t>(truth[i])][static_cast<std::size_t>(guesses[i])];
  }
  bool right = confusion.size() == 3;
  for (std::size_t i = 0; right && i < 3; ++i)
    right = std::equal(confusion[i].begin(), confusion[i].end(), counted[i].begin(), counted[i].end());
  std::cout << "confusion matrix: " << (right ? "right" : "WRONG") << '\n';

  // A line of names, and a row for each epoch with the numbers of the records.
  std::ifstream csv(folder / "run.csv");
  std::string line;
  std::getline(csv, line);
  std::cout << line << '\n';
  std::size_t rows = 0;
  for (; std::getline(csv, line); ++rows) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    right = right && std::stoi(row[0]) == static_cast<int>(rows) + 1;
  }
  std::cout << rows << " rows: " << (right ? "right" : "WRONG") << '\n';

  // Records of an event file: length, checksum, content, checksum. The first has the version.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "runs")) {
    std::ifstream events(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << events.rdbuf();
    ++files;
    std::cout << (text.str().find("brain.Event:2") == 21 || text.str().find("brain.Event:2") < 40 ? "an event file"
                                                                                                  : "SOMETHING ELSE");
    for (const auto* tag : {"loss/step", "loss/validation", "accuracy/validation", "f1/train"})
      std::cout << (text.str().find(tag) != std::string::npos ? ", " : ", NO ") << tag;
    std::cout << '\n';
  }
  std::cout << files << " file\n";
  std::filesystem::remove_all(folder);
}
