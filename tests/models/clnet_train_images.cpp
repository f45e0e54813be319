// clnet-train on a folder of image files by class.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "clnet/clnet.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A BMP of 12 x 10 pixels of one colour.
void write_square(const fs::path& path, int red, int green) {
  std::string file(54, '\0');
  const auto set = [&](std::size_t at, int value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 255);
  };
  set(10, 54);
  set(14, 40);
  set(18, 12);
  set(22, 10);
  set(26, 1 | 24 << 16);
  file.replace(0, 2, "BM");
  for (int pixel = 0; pixel < 120; ++pixel) file += {static_cast<char>(pixel), static_cast<char>(green), static_cast<char>(red)};
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << file;
}

void write_colours(const fs::path& folder, int count) {
  for (int i = 0; i < count; ++i) {
    write_square(folder / "red" / (std::to_string(i) + ".bmp"), 150 + i, 0);
    write_square(folder / "green" / (std::to_string(i) + ".bmp"), 0, 150 + i);
  }
}

std::vector<std::string> on(const fs::path& data, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--data", data, "--model", "mlp", "--batch-size", "8", "--image-size", "8", "--epochs", "8"});
  return more;
}

}  // namespace

TEST_CASE("clnet-train: a folder of images by class is split, trained on, and reported by class") {
  const Folder data, place;
  write_colours(data.path(), 20);
  const auto outcome = clnet_train(place.path(), on(data.path(), {"--augment", "--normalize", "mean-std"}));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("32 training and 8 test images") && Contains("test accuracy 100.00 %"));
  CHECK_THAT(outcome.out, Contains("green       4  100.00 %") && Contains("red         4  100.00 %"));
  CHECK_THAT(outcome.out, Contains("green               4      0") && Contains("red                 0      4"));
  // The worst of 8 pictures: 5 in a row, and frames that say they were right.
  CHECK_THAT(outcome.out, Contains("their pictures, row by row: clnet-mlp-worst."));
  const bool has_png = clnet::data::reads_images("png");
  const auto sheet = clnet::data::read_image(place / (has_png ? "clnet-mlp-worst.png" : "clnet-mlp-worst.bmp"));
  REQUIRE(sheet.shape == clnet::Shape{3, 2 * 194 + 6, 5 * 194 + 6});
  const auto colour = [&](std::size_t y, std::size_t x) {
    const auto values = sheet.values<std::uint8_t>();
    return std::vector<int>{values[y * 976 + x], values[(394 + y) * 976 + x], values[(788 + y) * 976 + x]};
  };
  CHECK(colour(0, 0) == std::vector<int>{255, 255, 255});
  CHECK(colour(7, 7) == std::vector<int>{44, 160, 44});
  CHECK(colour(11, 11) == std::vector<int>{32, 32, 32});  // above a wide picture
  const auto first = colour(100, 100);
  const bool is_red =
      outcome.out.find("1  ") != std::string::npos && outcome.out.find("red, red, ") < outcome.out.find("green, green, ");
  CHECK((is_red ? first[0] : first[1]) >= 150);
  CHECK((is_red ? first[1] : first[0]) == 0);
  // The same for any number of workers.
  const auto weights = content(place / "clnet-mlp.safetensors");
  CHECK(clnet_train(place.path(), on(data.path(), {"--augment", "--normalize", "mean-std", "--workers", "1"})).code == 0);
  CHECK(content(place / "clnet-mlp.safetensors") == weights);
}

TEST_CASE("clnet-run goes by what clnet-train --export says of images and classes") {
  const Folder data, place;
  write_colours(data.path(), 20);
  const auto trained = clnet_train(place.path(), on(data.path(), {"--normalize", "mean-std", "--export", "net.onnx"}));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto said = [&](const std::string& file, const std::string& key) {
    const auto model = clnet::onnx::load(place / file);
    for (const auto& [name, value] : model.metadata())
      if (name == key) return value;
    return std::string("none");
  };
  CHECK(said("net.onnx", "clnet.labels") == "green\nred");
  CHECK(said("net.onnx", "clnet.crop") == "1");
  const auto mean = said("net.onnx", "clnet.mean"), deviation = said("net.onnx", "clnet.std");
  CHECK(std::count(mean.begin(), mean.end(), ',') == 2);

  const auto picture = (data / "red" / "7.bmp").string();
  const auto run = [&](const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), {CLNET_RUN, model, picture, "--output-dir", "out", "--format", "npy"});
    const auto outcome = Process(place.path(), std::move(more)).wait();
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return std::pair(outcome.out, clnet::io::load_npy(place / "out/output_0.npy").to_vector<float>());
  };
  const auto [text, scores] = run("net.onnx", {});
  CHECK(text.find("  red\n") < text.find("  green\n"));
  const auto info = Process(place.path(), {CLNET_RUN, "net.onnx", "--info"}).wait();
  CHECK(info.code == 0);
  CHECK_THAT(info.out, Contains("images: mean ") && Contains("images: the middle is cut out\n2 classes: green, red\n"));
  // As in training.
  clnet::data::ImageOptions options{.height = 8, .width = 8};
  const auto numbers = [](std::string list) {
    std::vector<float> out;
    std::replace(list.begin(), list.end(), ',', ' ');
    std::istringstream in(list);
    for (float number; in >> number;) out.push_back(number);
    return out;
  };
  options.mean = numbers(mean);
  options.std = numbers(deviation);
  const auto images = clnet::data::image_folder(data.path(), options);
  auto model = clnet::onnx::load(place / "net.onnx");
  std::vector<float> expected;
  for (std::int64_t i = 0; i < images.size(); ++i)
    if (const auto sample = images.get(i, 0); images.name_of(i) == picture)
      expected = model(clnet::unsqueeze(sample[0].tensor(), 0)).to_vector<float>();
  REQUIRE(expected.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(scores[i] == Approx(expected[i]).epsilon(1e-5));
  // Options go before.
  place.write("names.txt", "one\ntwo\n");
  CHECK(run("net.onnx", {"--mean", mean, "--std", deviation, "--crop"}).second == scores);
  CHECK(run("net.onnx", {"--mean", "0"}).second != scores);
  CHECK(run("net.onnx", {"--no-crop"}).second != scores);
  CHECK_THAT(run("net.onnx", {"--labels", "names.txt"}).first, Contains("  two\n") && !Contains("red"));

  // Another training of the file normalizes as it says, unless an option chooses.
  const auto again = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"--data", data.path(), "--model", "net.onnx", "--steps", "1", "--lr", "1e-9", "--export", "b.onnx"});
    const auto outcome = clnet_train(place.path(), more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  CHECK_THAT(again({}), Contains("net.onnx says how images are normalized: mean " + mean + ", std " + deviation));
  CHECK(said("b.onnx", "clnet.labels") == "green\nred");
  CHECK(said("b.onnx", "clnet.mean") == mean);
  CHECK(said("b.onnx", "clnet.std") == deviation);
  const auto after = run("b.onnx", {}).second;
  for (std::size_t i = 0; i < 2; ++i) CHECK(after[i] == Approx(scores[i]).epsilon(0.001));
  CHECK_THAT(again({"--normalize", "none"}), Contains("--normalize none in place of what net.onnx says: mean " + mean));
  CHECK(said("b.onnx", "clnet.mean") == "none");
  CHECK(said("b.onnx", "clnet.std") == "none");

  for (const auto& [key, value, reason] :
       std::vector<std::array<std::string, 3>>{{"clnet.std", "1,0,1", "\"1,0,1\", not numbers above 0 with commas between them"},
                                               {"clnet.mean", "1,", "\"1,\", not numbers with commas between them"},
                                               {"clnet.crop", "yes", "\"yes\", not 1"}}) {
    clnet::onnx::save(model, {clnet::zeros({1, 3, 8, 8})}, place / "bad.onnx", {.metadata = {{key, value}}});
    const auto fault = "bad.onnx: the metadata " + key + " are " + reason + "\n";
    const auto bad = Process(place.path(), {CLNET_RUN, "bad.onnx", picture}).wait();
    CHECK(bad.code == 1);
    CHECK(bad.err == "clnet-run: " + fault);
    const auto shown = Process(place.path(), {CLNET_RUN, "bad.onnx", "--info"}).wait();
    CHECK(shown.code == 0);
    CHECK_THAT(shown.out, Contains("\nimages: " + fault));
  }
}

TEST_CASE("clnet-train: folders train and test of images") {
  const Folder data, place;
  write_colours(data / "train", 9);
  write_colours(data / "test", 3);
  const auto outcome = clnet_train(place.path(), on(data.path()));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("18 training and 6 test images"));
  write_square(data / "test" / "blue" / "1.bmp", 0, 0);
  CHECK_THAT(clnet_train(place.path(), on(data.path())).err, Contains("test has other classes than train"));
  fs::remove_all(data / "test" / "blue");
  CHECK_THAT(clnet_train(place.path(), on(data.path(), {"--sheet", "/nonexistent/a.png"})).err, Contains("--sheet /nonexistent"));
  if (clnet::data::reads_images("png"))
    CHECK_THAT(clnet_train(place.path(), on(data.path(), {"--sheet", "a.gif"})).err,
               Contains("a.gif does not end in .png or .bmp"));
  std::ofstream(data / "train" / "red" / "3.bmp") << "no image";
  CHECK_THAT(clnet_train(place.path(), on(data.path())).err, Contains("train/red/3.bmp: is no PNG, JPEG or BMP"));
  CHECK_THAT(clnet_train(place.path(), on(data / "train" / "red")).err, Contains("holds no dataset"));
}
