// clnet-train with networks from ONNX files.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "clnet/clnet.h"
#include "clnet/models.h"
#include "tests/acceptance.h"
#include "tests/idx_writer.h"
#include "tests/models/process.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/cnn_a.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using Catch::Contains;
using clnet::Shape;
namespace fs = std::filesystem;
namespace io = clnet::io;

namespace {

/// Numbers that are small and unlike each other.
std::vector<double> spread(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.3 * std::sin(1.7 * static_cast<double>(i * i % 1009));
  return values;
}

/// Two layers on `inputs` numbers; `last` may be a Softmax.
std::string perceptron(const std::vector<std::int64_t>& input, std::int64_t inputs, std::int64_t classes,
                       const std::string& last = "Identity") {
  Builder b;
  const auto count = static_cast<std::size_t>(inputs), outputs = static_cast<std::size_t>(classes);
  b.initializer("fc1.weight", {inputs, 16}, spread(count * 16)).initializer("fc1.bias", {16}, spread(16));
  b.initializer("fc2.weight", {16, classes}, spread(16 * outputs)).initializer("fc2.bias", {classes}, spread(outputs));
  b.input("pixels", Type::f32, input).output("scores");
  b.node("Flatten", {"pixels"}, {"flat"}).node("MatMul", {"flat", "fc1.weight"}, {"a"}).node("Add", {"a", "fc1.bias"}, {"b"});
  b.node("Relu", {"b"}, {"c"}).node("MatMul", {"c", "fc2.weight"}, {"d"}).node("Add", {"d", "fc2.bias"}, {"e"});
  b.node(last, {"e"}, {"scores"});
  return b.model(13);
}

/// clnet-train with this model on small data of 10 classes.
struct Small {
  Small() { write_idx_dataset(data.path(), 200, 40); }
  Outcome train(std::vector<std::string> more, const std::string& model) {
    place.write("net.onnx", model);
    more.insert(more.begin(),
                {"--data", data.path(), "--model", "net.onnx", "--batch-size", "20", "--epochs", "4", "--lr", "0.01"});
    return clnet_train(place.path(), more);
  }
  Folder data, place;
};

/// The only line of an error.
std::string line_of(const Outcome& outcome) {
  CHECK(outcome.code == 1);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  return outcome.err;
}

}  // namespace

TEST_CASE("clnet-train: a network from an ONNX file trains, and is saved under the file's names") {
  Small run;
  const auto help = clnet_train(run.place.path(), {"--help"}).out;
  for (const char* option : {"--export", "--freeze", "--freeze-statistics", "--replace-head"}) CHECK_THAT(help, Contains(option));
  const auto outcome = run.train({}, perceptron({-1, 64}, 64, 10, "Softmax"));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("net.onnx with 1210 parameters on ") && Contains("test accuracy 100.00 %"));
  CHECK_THAT(outcome.out, Contains("net.onnx ends in Softmax: the loss is cross-entropy of the values before it"));
  const auto saved = io::load_safetensors(run.place / "clnet-net.safetensors");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : saved.tensors) names.push_back(name);
  CHECK(names == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
  auto model = clnet::onnx::load(run.place / "net.onnx");
  model.load_state_dict(saved.tensors);
}

TEST_CASE("clnet-train: what was trained is exported, with the softmax of the file") {
  Small run;
  const auto outcome = run.train({"--export", "out.onnx", "--replace-head", "10"}, perceptron({1, 64}, 64, 7, "Softmax"));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("network written to out.onnx"));
  auto model = clnet::onnx::load(run.place / "out.onnx");
  CHECK(model.last_softmax() == "Softmax");
  CHECK(model.inputs()[0].name == "pixels");
  CHECK(model.outputs()[0].name == "scores");
  const auto saved = io::load_safetensors(run.place / "clnet-net.safetensors").tensors;
  model.load_state_dict(saved);  // names and shapes are those of the weights
  const auto scores = model(clnet::ones({5, 64}));
  REQUIRE(scores.shape() == Shape{5, 10});
  CHECK(clnet::sum(scores).item<float>() == Approx(5));

  const auto own =
      clnet_train(run.place.path(), {"--data", run.data.path(), "--model", "mlp", "--steps", "2", "--export", "mlp.onnx"});
  INFO(own.out << own.err);
  REQUIRE(own.code == 0);
  auto mlp = clnet::onnx::load(run.place / "mlp.onnx");
  CHECK(mlp(clnet::zeros({3, 1, 8, 8})).shape() == Shape{3, 10});
  const auto again = run.train({"--model", "mlp.onnx", "--init", "clnet-mlp.safetensors", "--save", "w"}, "");
  CHECK(again.code == 0);
  CHECK_THAT(clnet_train(run.place.path(), {"--export", "/nonexistent/a.onnx"}).err, Contains("--export /nonexistent"));
}

TEST_CASE("clnet-train: --init reads each format that clnet-convert writes") {
  Small run;
  const auto train = [&](const std::string& init, const std::string& model = "resnet20") {
    return clnet_train(run.place.path(), {"--data", run.data.path(), "--model", model, "--steps", "1", "--lr", "1e-12",
                                          "--schedule", "constant", "--batch-size", "20", "--init", init, "--save", "after"});
  };
  auto net = clnet::models::make("resnet20", {1, 8, 8}, 10);
  // Buffers change in a step; parameters stay, but for a step of 1e-12.
  const auto check = [&](const std::string& file) {
    CAPTURE(file);
    const auto outcome = train(file);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto after = io::load_safetensors(run.place / "after").tensors;
    for (const auto& [name, parameter] : net->parameters()) {
      const auto found = std::find_if(after.begin(), after.end(), [&, &own = name](const auto& e) { return e.first == own; });
      REQUIRE(found != after.end());
      CHECK(clnet::max(clnet::abs(found->second - parameter.value())).item<float>() < 1e-6F);
    }
  };
  for (const char* name : {"w.safetensors", "w.npz", "w.pt", "w.pth", "w.ckpt", "w.bin"}) {
    io::save_state(run.place / name, net->state_dict());
    check(name);
  }
  net->inference();
  clnet::onnx::save(*net, {clnet::zeros({2, 1, 8, 8})}, run.place / "w.onnx");
  check("w.onnx");
  // Other programs' files have no counts of batches.
  Builder b;
  for (const auto& [name, value] : net->state_dict())
    if (!name.ends_with("num_batches_tracked")) b.initializer(name, value.shape(), value.to_vector<double>());
  b.input("x").node("Identity", {"x"}, {"y"}).output("y");
  run.place.write("w.onnx", b.model());
  check("w.onnx");
  CHECK_THAT(line_of(train("w.onnx", "mlp")), Contains("w.onnx: ") && Contains("conv1.weight"));
  run.place.write("w.onnx", "nothing");
  CHECK_THAT(line_of(train("w.onnx")), Contains("w.onnx: no ONNX model"));
}

TEST_CASE("clnet-train: images become what the ONNX file's input is") {
  Small run;
  // In planes of colour, in pixels of colour, in grey, with a fixed batch, and of any size.
  for (const std::vector<std::int64_t>& input :
       {std::vector<std::int64_t>{-1, 3, 6, 10}, {1, 6, 10, 3}, {-1, 12, 15}, {-1, 1, 12, 15}}) {
    const bool grey = input.size() == 3 || input[1] == 1;
    const auto outcome = run.train({"--epochs", "8"}, perceptron(input, 180, 10));
    INFO(outcome.out << outcome.err << grey);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("test accuracy 100.00 %"));
  }
  const auto open = run.train({}, perceptron({-1, -1, -1, -1}, 64, 10));
  INFO(open.out << open.err);
  CHECK(open.code == 0);
}

TEST_CASE("clnet-train: bytes are an input as well") {
  Builder b;
  b.initializer("fc.weight", {64, 10}, spread(640)).initializer("fc.bias", {10}, spread(10));
  b.input("pixels", Type::u8, {-1, 64}).output("scores");
  b.node("Cast", {"pixels"}, {"a"}, {attribute("to", std::int64_t{1})}).node("Gemm", {"a", "fc.weight", "fc.bias"}, {"scores"});
  Small run;
  const auto bytes = run.train({"--lr", "0.0005", "--export", "out.onnx"}, b.model(13));
  INFO(bytes.out << bytes.err);
  REQUIRE(bytes.code == 0);
  CHECK(clnet::onnx::load(run.place / "out.onnx").inputs()[0].type == "uint8");
  CHECK_THAT(line_of(run.train({"--normalize", "mean-std"}, b.model(13))),
             Contains("takes pixels as they are, without --normalize"));
}

TEST_CASE("clnet-train: frozen parameters stay, a fresh head does not") {
  Small run;
  const auto outcome = run.train({"--replace-head", "10", "--freeze", "*", "--epochs", "8"}, perceptron({-1, 64}, 64, 7));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  const auto before = clnet::onnx::load(run.place / "net.onnx").state_dict();
  const auto after = io::load_safetensors(run.place / "clnet-net.safetensors").tensors;
  for (std::size_t i = 0; i < 2; ++i) CHECK(equal(before[i].second, after[i].second));
  CHECK(after[2].second.shape() == Shape{16, 10});
  const auto accuracy = outcome.out.find("; test accuracy ");
  REQUIRE(accuracy != std::string::npos);
  CHECK(std::stod(outcome.out.substr(accuracy + 16)) > 50);
}

TEST_CASE("clnet-train: training of an ONNX file goes on from a checkpoint") {
  Small whole, parted;
  const auto file = perceptron({-1, 64}, 64, 10);
  const std::vector<std::string> end{"--steps", "25", "--schedule", "constant", "--checkpoint", "run"};
  CHECK(whole.train(end, file).code == 0);
  CHECK(parted.train({"--steps", "10", "--schedule", "constant", "--checkpoint", "run"}, file).code == 0);
  auto more = end;
  more.push_back("--resume");
  more.insert(more.end(), {"--data", whole.data.path()});
  const auto rest = parted.train(more, file);
  INFO(rest.out << rest.err);
  CHECK_THAT(rest.out, Contains("going on after step 10"));
  CHECK(content(whole.place / "clnet-net.safetensors") == content(parted.place / "clnet-net.safetensors"));
}

TEST_CASE("clnet-train: an ONNX file that does not fit is one line") {
  Small run;
  const auto file = perceptron({-1, 64}, 64, 7);
  CHECK_THAT(line_of(run.train({}, file)),
             Contains("net.onnx: has 7 outputs, and the data 10 classes; --replace-head 10 gives it"));
  CHECK_THAT(line_of(run.train({"--replace-head", "9"}, file)), Contains("has 9 outputs, and the data 10 classes"));
  CHECK_THAT(line_of(run.train({"--replace-head", "10", "--freeze", "conv*"}, file)),
             Contains("--freeze: module: no parameter matches 'conv*'; there are fc1.weight"));
  CHECK_THAT(line_of(run.train({"--freeze", "fc?.*"}, perceptron({-1, 64}, 64, 10))),
             Contains("--freeze: nothing is left to train"));
  // Before data is read.
  CHECK_THAT(line_of(run.train({"--data", "/nonexistent"}, perceptron({-1, 64}, 64, 10, "Foo"))),
             Contains("net.onnx: clnet lacks an operator that it needs: Foo of set 13"));
  CHECK_THAT(line_of(run.train({}, perceptron({-1, 5, 6, 7}, 210, 10))), Contains("has neither 1 nor 3 channels"));
  CHECK_THAT(line_of(run.train({}, perceptron({-1, 70}, 70, 10))), Contains("takes 70 numbers, which no square image has"));
  CHECK_THAT(line_of(run.train({}, "no model")), Contains("net.onnx: "));
  const auto wrong = clnet_train(run.place.path(), {"--model", "cnn", "--replace-head", "5"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("--replace-head: is for ONNX files, not for cnn"));
  CHECK(!fs::exists(run.place / "clnet-net.safetensors"));
}

TEST_CASE("clnet-train: an ONNX file learns a folder of images by class") {
  const Folder data, place;
  for (int i = 0; i < 20; ++i)
    for (const bool red : {false, true}) {
      clnet::data::Array image(Shape{3, 10, 12}, clnet::Dtype::u8);
      std::fill_n(image.values<std::uint8_t>().begin() + (red ? 0 : 120), 120, static_cast<std::uint8_t>(150 + i));
      fs::create_directories(data / (red ? "red" : "green"));
      clnet::data::write_image(data / (red ? "red" : "green") / (std::to_string(i) + ".bmp"), image);
    }
  place.write("net.onnx", perceptron({-1, 3, 8, 8}, 192, 1000));
  const auto outcome = clnet_train(place.path(), {"--data", data.path(), "--model", "net.onnx", "--replace-head", "2",
                                                  "--batch-size", "8", "--epochs", "8", "--lr", "0.01"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("32 training and 8 test images") && Contains("test accuracy 100.00 %"));
}

namespace {

/// Images of one brightness, of which a network knows the half: `low` to `low` + 19 of 255.
void write_greys(const fs::path& folder, int low) {
  fs::create_directories(folder);
  for (int i = 0; i < 20; ++i) {
    clnet::data::Array image(Shape{3, 10, 12}, clnet::Dtype::u8);
    const auto pixels = image.values<std::uint8_t>();
    std::fill(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(low + i));
    clnet::data::write_image(folder / (std::to_string(i) + ".bmp"), image);
  }
}

/// Its scores are the mean of its numbers, and minus that: above 0 the first class is the greater.
std::string sign_of_mean(const std::vector<std::int64_t>& input) {
  const auto count = std::accumulate(input.begin() + 1, input.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<double> weight;
  for (std::int64_t i = 0; i < count; ++i)
    for (const double sign : {1, -1}) weight.push_back(sign / static_cast<double>(count));
  Builder b;
  b.initializer("fc.weight", {count, 2}, weight).initializer("fc.bias", {2}, {0, 0});
  b.input("pixels", Type::f32, input).output("scores");
  b.node("Flatten", {"pixels"}, {"flat"}).node("Gemm", {"flat", "fc.weight", "fc.bias"}, {"scores"});
  return b.model();
}

}  // namespace

TEST_CASE("clnet-train: images are normalized as an ONNX file says, in each layout, and clnet-run sees the same") {
  const Folder data, place;
  write_greys(data / "bright", 150);
  write_greys(data / "dark", 80);
  for (const std::vector<std::int64_t>& input :
       {std::vector<std::int64_t>{-1, 3, 8, 8}, {-1, 8, 8, 3}, {-1, 8, 8}, {-1, 192}, {-1, 64}}) {
    CAPTURE(input);
    place.write("plain.onnx", sign_of_mean(input));
    auto network = clnet::onnx::load(place / "plain.onnx");
    auto extents = input;
    extents[0] = 1;
    clnet::onnx::save(network, {clnet::zeros(Shape(extents))}, place / "net.onnx",
                      {.metadata = {{"clnet.mean", "0.5"}, {"clnet.std", "0.25"}}});
    const auto train = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"--data", data.path(), "--model", "net.onnx", "--steps", "1", "--lr", "1e-9", "--batch-size",
                                 "8", "--export", "out.onnx"});
      const auto outcome = clnet_train(place.path(), more);
      INFO(outcome.err);
      REQUIRE(outcome.code == 0);
      return outcome.out;
    };
    // Without it all pixels are above 0.
    CHECK_THAT(train({"--normalize", "none"}), Contains("test accuracy 50.00 %"));
    CHECK_THAT(train({}), Contains("test accuracy 100.00 %") &&
                              Contains("net.onnx says how images are normalized: mean 0.5, std 0.25; --normalize changes that"));
    for (const auto& [file, best] : {std::pair("bright/3.bmp", "bright"), std::pair("dark/3.bmp", "dark")}) {
      const auto shown = Process(place.path(), {CLNET_RUN, "out.onnx", (data.path() / file).string()}).wait();
      INFO(shown.err);
      REQUIRE(shown.code == 0);
      CHECK(shown.out.find("  bright\n") != shown.out.find("  dark\n"));
      CHECK((shown.out.find("  bright\n") < shown.out.find("  dark\n")) == (std::string_view(best) == "bright"));
    }
  }
  // One number for each channel, or one for all.
  auto network = clnet::onnx::load(place / "plain.onnx");
  clnet::onnx::save(network, {clnet::zeros({1, 64})}, place / "net.onnx", {.metadata = {{"clnet.mean", "0.5,0.5"}}});
  const auto wrong = clnet_train(place.path(), {"--data", data.path(), "--model", "net.onnx"});
  CHECK_THAT(line_of(wrong), Contains("net.onnx: cannot take batches of images") &&
                                 Contains("its metadata: the mean has 2 numbers for 1 channels"));
}

TEST_CASE("clnet-run: bytes of an image are what a network of bytes was trained on") {
  Builder b;
  std::vector<double> weight;
  for (int i = 0; i < 192; ++i) weight.insert(weight.end(), {1.0 / 192, -1.0 / 192});
  b.initializer("fc.weight", {192, 2}, weight).initializer("fc.bias", {2}, {0, 0}).initializer("half", {}, {127.5});
  b.input("pixels", Type::u8, {-1, 3, 8, 8}).output("scores");
  b.node("Cast", {"pixels"}, {"a"}, {attribute("to", std::int64_t{1})}).node("Sub", {"a", "half"}, {"b"});
  b.node("Flatten", {"b"}, {"c"}).node("Gemm", {"c", "fc.weight", "fc.bias"}, {"scores"});
  const Folder data, place;
  write_greys(data / "bright", 150);
  write_greys(data / "dark", 80);
  place.write("net.onnx", b.model());
  const auto trained = clnet_train(place.path(), {"--data", data.path(), "--model", "net.onnx", "--steps", "1", "--lr", "1e-9",
                                                  "--batch-size", "8", "--export", "out.onnx"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.out, Contains("test accuracy 100.00 %"));
  const auto shown = Process(place.path(), {CLNET_RUN, "out.onnx", (data / "dark" / "0.bmp").string()}).wait();
  INFO(shown.err);
  CHECK_THAT(shown.out, Contains(" 47.5000  dark\n  -47.5000  bright\n"));
}

namespace {

/// The reference's batches as the IDX files that clnet-train reads.
void write_batches(const fs::path& from, const Folder& to) {
  const auto batches = io::load_safetensors(from);
  std::string pixels, labels;
  std::uint32_t count = 0;
  for (const auto& [name, tensor] : batches.tensors) {
    if (name == "images")
      for (const auto pixel : tensor.to_vector<std::uint8_t>()) pixels += static_cast<char>(pixel);
    else
      for (const auto label : tensor.to_vector<std::int64_t>()) labels += static_cast<char>(label), ++count;
  }
  for (const char* part : {"train", "t10k"}) {
    to.write(std::string(part) + "-images-idx3-ubyte", idx(0x803, {count, 28, 28}, pixels));
    to.write(std::string(part) + "-labels-idx1-ubyte", idx(0x801, {count}, labels));
  }
}

}  // namespace

TEST_CASE("clnet-train: an ONNX file of cnn_a follows the reference losses") {
  const auto root = acceptance("trainref/cnn_a");
  if (!root) return;
  const Folder data, place;
  write_batches(*root / "batches.safetensors", data);
  place.write("cnn_a.onnx", cnn_a_file(*root / "init.safetensors"));
  std::ifstream file(*root / "losses.json");
  const auto runs = nlohmann::json::parse(file).at("runs");
  const std::vector<std::pair<std::string, std::vector<std::string>>> options{
      {"sgd_momentum", {"--optimizer", "sgd", "--lr", "0.05", "--momentum", "0.9"}},
      {"sgd_nesterov_wd", {"--optimizer", "sgd", "--lr", "0.02", "--momentum", "0.9", "--nesterov", "--weight-decay", "0.0005"}},
      {"adam", {"--optimizer", "adam", "--lr", "0.002"}},
      {"adamw", {"--optimizer", "adamw", "--lr", "0.002", "--weight-decay", "0.05"}},
      {"rmsprop", {"--optimizer", "rmsprop", "--lr", "0.001"}}};
  CHECK(runs.size() == options.size());
  for (const auto& [name, more] : options) {
    std::vector<std::string> all{"--data",      data.path(),  "--model",  "cnn_a.onnx", "--no-shuffle",
                                 "--normalize", "none",       "--steps",  "20",         "--batch-size",
                                 "64",          "--schedule", "constant", "--log",      name + ".jsonl"};
    all.insert(all.end(), more.begin(), more.end());
    const auto outcome = clnet_train(place.path(), all);
    INFO(name << "\n" << outcome.err);
    REQUIRE(outcome.code == 0);
    const auto& run = runs.at(name);
    const auto expected = run.at("loss_float64").get<std::vector<double>>();
    std::ifstream log(place / (name + ".jsonl"));
    std::size_t step = 0;
    for (std::string line; std::getline(log, line);) {
      const auto object = nlohmann::json::parse(line);
      if (!object.contains("step")) continue;
      REQUIRE(step < expected.size());
      INFO("step " << step);
      CHECK(std::abs(object.at("loss").get<double>() - expected[step]) <=
            run.at(step < 5 ? "suggested_tol_first5" : "suggested_tol_all").get<double>());
      ++step;
    }
    CHECK(step == expected.size());
  }
}
