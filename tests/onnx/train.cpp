// Training of networks from ONNX files: fresh heads, reference losses, and every classifier of the acceptance data.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "lib/base/pattern.h"
#include "tests/acceptance.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/cnn_a.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

onnx::Model read(const Builder& builder, const onnx::LoadOptions& options = {}) {
  const Folder folder;
  return onnx::load(folder.write("model.onnx", builder.model(13)), options);
}

std::vector<std::string> names_of(const onnx::Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.parameters()) names.push_back(name);
  return names;
}

/// x W + b, softmax.
Builder product() {
  Builder b;
  b.initializer("fc.weight", {3, 2}, {1, -1, 0.5, 2, 0.25, -0.5}).initializer("fc.bias", {2}, {0.5, 0});
  b.input("x", Type::f32, {-1, 3}).output("y");
  b.node("MatMul", {"x", "fc.weight"}, {"product"}).node("Add", {"product", "fc.bias"}, {"sum"});
  b.node("Softmax", {"sum"}, {"y"}, {attribute("axis", std::int64_t{1})});
  return b;
}

/// Convolution, convolution of one pixel, global pool, softmax, and a shape that has the classes in it.
Builder pooled(const std::string& last = "Softmax") {
  Builder b;
  b.initializer("body.weight", {2, 1, 1, 1}, {1, -2}).initializer("head.weight", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6});
  b.initializer("head.bias", {3}, {0.5, 0, -0.5}).initializer("shape", {2}, {1, 3}, Type::i64);
  b.input("x", Type::f32, {1, 1, 2, 2}).output("y");
  b.node("Conv", {"x", "body.weight"}, {"a"}).node("Conv", {"a", "head.weight", "head.bias"}, {"b"});
  b.node("GlobalAveragePool", {"b"}, {"c"}).node(last, {"c"}, {"d"}, {attribute("axis", std::int64_t{1})});
  b.node("Reshape", {"d", "shape"}, {"y"});
  return b;
}

std::string refusal(const Builder& builder) {
  try {
    (void)read(builder, {.replace_head = 4});
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a fresh head takes the place of a product with a bias") {
  manual_seed(1);
  auto model = read(product(), {.replace_head = 5, .logits = true});
  CHECK(names_of(model) == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(model.head() == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(model.parameter("fc.weight").shape() == Shape{3, 5});
  CHECK(model.last_softmax() == "Softmax");
  const Tensor x = Tensor::from({1.0F, 2.0F, -3.0F}, {1, 3});
  const auto w = model.parameter("fc.weight").value().to_vector<double>(),
             b = model.parameter("fc.bias").value().to_vector<double>();
  const auto y = model(x).to_vector<double>();
  REQUIRE(y.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(y[i] == Approx(w[i] + 2 * w[5 + i] - 3 * w[10 + i] + b[i]).margin(1e-6));
  // As nn::Linear begins: uniform up to 1 / sqrt(inputs).
  CHECK(*std::max_element(w.begin(), w.end()) <= 1 / std::sqrt(3.0));
  CHECK(*std::max_element(w.begin(), w.end()) > *std::min_element(w.begin(), w.end()));
  manual_seed(1);
  const auto again = read(product(), {.replace_head = 5});
  CHECK(equal(again.parameter("fc.weight").value(), model.parameter("fc.weight").value()));
}

TEST_CASE("a fresh head takes the place of a transposed product, and of a shared weight") {
  Builder b;
  b.initializer("w", {2, 2}, {1, 2, 3, 4}).initializer("c", {1, 2}, {5, 6});
  b.input("x", Type::f32, {-1, 2}).output("y");
  b.node("Gemm", {"x", "w"}, {"a"}).node("Gemm", {"a", "w", "c"}, {"y"}, {attribute("transB", std::int64_t{1})});
  auto model = read(b, {.replace_head = 3});
  CHECK(names_of(model) == std::vector<std::string>{"w", "w_head", "c"});
  CHECK(model.head() == std::vector<std::string>{"w_head", "c"});
  CHECK(model.parameter("w").value().to_vector<double>() == std::vector<double>{1, 2, 3, 4});
  CHECK(model.parameter("w_head").shape() == Shape{3, 2});
  CHECK(model.parameter("c").shape() == Shape{1, 3});
  CHECK(model(ones({4, 2})).shape() == Shape{4, 3});
}

TEST_CASE("a fresh head takes the place of a convolution before a pool, with shapes behind it") {
  auto model = read(pooled(), {.replace_head = 5, .free_batch = true});
  CHECK(model.head() == std::vector<std::string>{"head.weight", "head.bias"});
  CHECK(model.parameter("head.weight").shape() == Shape{5, 2, 1, 1});
  CHECK(model.parameter("body.weight").value().to_vector<double>() == std::vector<double>{1, -2});
  const auto y = model(ones({3, 1, 2, 2}));
  REQUIRE(y.shape() == Shape{3, 5});
  CHECK(sum(y).item<float>() == Approx(3));
}

TEST_CASE("a head's weight may be made by other nodes, and a norm may follow it") {
  Builder b;
  b.initializer("flat", {6}, {1, 2, 3, 4, 5, 6}).initializer("target", {2}, {3, 2}, Type::i64);
  b.initializer("scale", {2}, {2, 3})
      .initializer("shift", {2}, {1, 1})
      .initializer("mean", {2}, {1, 2})
      .initializer("var", {2}, {4, 9});
  b.input("x", Type::f32, {-1, 3}).output("y");
  b.node("Reshape", {"flat", "target"}, {"w"}).node("MatMul", {"x", "w"}, {"a"});
  b.node("BatchNormalization", {"a", "scale", "shift", "mean", "var"}, {"y"});
  auto model = read(b, {.replace_head = 4});
  CHECK(names_of(model) == std::vector<std::string>{"w_head", "scale", "shift"});
  CHECK(model.parameter("mean").shape() == Shape{4});
  CHECK(model(ones({2, 3})).shape() == Shape{2, 4});
}

TEST_CASE("a fresh head has the type of the weight, also where nodes turn it") {
  for (const auto type : {Type::f16, Type::f64}) {
    Builder b;
    b.initializer("w", {2, 3}, {1, 2, 3, 4, 5, 6}, type).input("x", type, {-1, 3}).output("y", type);
    b.node("Transpose", {"w"}, {"turned"}).node("Identity", {"turned"}, {"same"}).node("MatMul", {"x", "same"}, {"y"});
    auto model = read(b, {.replace_head = 4});
    const auto dtype = type == Type::f16 ? Dtype::f16 : Dtype::f64;
    CHECK(model.parameter(model.head().at(0)).dtype() == dtype);
    if (dtype == Dtype::f16) CHECK(model(ones({2, 3}, dtype)).shape() == Shape{2, 4});
  }
}

TEST_CASE("a fresh head changes the declared classes, not a batch of the same extent") {
  Builder b;
  b.initializer("w", {2, 5}, std::vector<double>(10, 1)).input("x", Type::f32, {5, 2}).output("y", Type::f32, {5, 5});
  b.node("MatMul", {"x", "w"}, {"y"});
  CHECK(read(b, {.replace_head = 3}).outputs()[0].extents == std::vector<std::string>{"5", "3"});
}

TEST_CASE("lists of parameters hold only for a file that has all of them") {
  const auto with_lists = [](const std::string& parameters) {
    auto bytes = product().model(13);
    std::string entry;
    protozero::pbf_writer writer(entry);
    writer.add_string(1, "clnet.parameters");
    writer.add_string(2, parameters);
    protozero::pbf_writer(bytes).add_message(14, entry);
    return bytes;
  };
  const Folder folder;
  const auto names = [&](const std::string& parameters, std::int64_t head = 0) {
    return names_of(onnx::load(folder.write("model.onnx", with_lists(parameters)), {.replace_head = head}));
  };
  CHECK(names("fc.weight") == std::vector<std::string>{"fc.weight"});
  CHECK(names("fc.weight", 4) == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(names("renamed\nfc.weight") == std::vector<std::string>{"fc.weight", "fc.bias"});
}

TEST_CASE("inputs with values in the file go with these") {
  Builder b;
  b.initializer("extents", {2}, {3, 2}, Type::i64).initializer("c", {2}, {5, 6});
  b.input("x", Type::f32, {-1, 3}).input("extents", Type::i64, {2}).input("c", Type::f32, {2}).output("y");
  b.node("ConstantOfShape", {"extents"}, {"w"}).node("Gemm", {"x", "w", "c"}, {"y"});
  auto model = read(b, {.replace_head = 4});
  REQUIRE(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == "x");
  CHECK(names_of(model) == std::vector<std::string>{"w_head", "c"});
  CHECK(model(ones({2, 3})).shape() == Shape{2, 4});
}

TEST_CASE("where there is no head, one line says what is in the way") {
  Builder none;
  none.input("x", Type::f32, {-1, 3}).output("y").node("Relu", {"x"}, {"y"});
  CHECK_THAT(refusal(none), Contains("model.onnx: no head to replace: the output comes from no operator"));
  Builder two;
  two.input("x", Type::f32, {-1, 3}).output("y").node("Sin", {"x"}, {"a"}).node("Add", {"a", "x"}, {"y"});
  CHECK_THAT(refusal(two), Contains(R"(no head to replace: "Add" before the output adds two values)"));
  Builder other;
  other.input("x", Type::f32, {-1, 3}).output("y").node("Sin", {"x"}, {"y"});
  CHECK_THAT(refusal(other), Contains(R"("Sin" before the output is no linear layer)"));
  Builder wide;
  wide.initializer("w", {1, 1, 2, 2}, {1, 2, 3, 4})
      .input("x", Type::f32, {-1, 1, 2, 2})
      .output("y")
      .node("Conv", {"x", "w"}, {"y"});
  CHECK_THAT(refusal(wide), Contains(R"("Conv" before the output has a kernel of more than one pixel)"));
  CHECK_THROWS_WITH(read(product(), {.replace_head = -1}), Contains("a head of -1 classes"));
}

TEST_CASE("a last softmax is left out for the loss") {
  for (const std::string last : {"Softmax", "LogSoftmax"}) {
    auto whole = read(pooled(last)), logits = read(pooled(last), {.logits = true});
    CHECK(whole.last_softmax() == last);
    const Tensor x = Tensor::from({1.0F, 2.0F, -3.0F, 0.5F}, {1, 1, 2, 2}), label = Tensor::from({std::int32_t{1}}, {1});
    const auto of_file = whole(x).to_vector<double>();
    const auto expected = last == "Softmax" ? -std::log(of_file[1]) : -of_file[1];
    CHECK(cross_entropy(logits(x), label).item<float>() == Approx(expected).epsilon(1e-5));
  }
  CHECK(read(pooled("Relu")).last_softmax().empty());
}

TEST_CASE("parameters are frozen by patterns of their names") {
  CHECK(matches_pattern("layer1.0.weight", "layer1.*"));
  CHECK(matches_pattern("layer1.0.weight", "*weight"));
  CHECK(matches_pattern("layer1.0.weight", "layer?.*.we*t"));
  CHECK(matches_pattern("ab", "a*b*"));
  CHECK(matches_pattern("", "*"));
  CHECK(!matches_pattern("layer1.0.weight", "layer1"));
  CHECK(!matches_pattern("layer1.0.weight", "layer??.*"));
  CHECK(!matches_pattern("aab", "a*c"));
  CHECK(!matches_pattern("", "?"));
  auto model = read(pooled());
  model.freeze_matching("head.*");
  CHECK(model.parameter("head.weight").frozen());
  CHECK(model.parameter("head.bias").frozen());
  CHECK(!model.parameter("body.weight").frozen());
  model.freeze_matching("*.weight", false);
  CHECK(!model.parameter("head.weight").frozen());
  CHECK_THROWS_WITH(model.freeze_matching("fc*"),
                    Contains("no parameter matches 'fc*'; there are body.weight, head.weight, head.bias"));
}

namespace {

optim::Optimizer reference_optimizer(const std::string& name, onnx::Model& model) {
  if (name == "sgd_momentum") return optim::SGD(model, {.learning_rate = 0.05, .momentum = 0.9});
  if (name == "sgd_nesterov_wd")
    return optim::SGD(model, {.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  if (name == "adam") return optim::Adam(model, {.learning_rate = 2e-3});
  if (name == "adamw") return optim::AdamW(model, {.learning_rate = 2e-3, .weight_decay = 0.05});
  REQUIRE(name == "rmsprop");
  return optim::RMSprop(model, {.learning_rate = 1e-3});
}

}  // namespace

TEST_CASE("a network from a file follows PyTorch's losses with five optimizers") {
  const auto root = acceptance("trainref/cnn_a");
  if (!root) return;
  std::ifstream file(*root / "losses.json");
  const auto reference = nlohmann::json::parse(file);
  const auto batches = io::load_safetensors(*root / "batches.safetensors");
  const Folder folder;
  const auto path = folder.write("cnn_a.onnx", cnn_a_file(*root / "init.safetensors"));
  for (const auto& [name, run] : reference.at("runs").items()) {
    INFO(name);
    auto model = onnx::load(path);
    model.train();
    auto optimizer = reference_optimizer(name, model);
    const auto expected = run.at("loss_float64").get<std::vector<double>>();
    for (std::size_t step = 0; step < expected.size(); ++step) {
      const auto at = static_cast<std::int64_t>(step);
      Tensor images, labels;
      for (const auto& [key, tensor] : batches.tensors) (key == "images" ? images : labels) = slice(tensor, 0, at, at + 1);
      const auto x = reshape(cast(images, Dtype::f32) / 255.0, {64, 1, 28, 28});
      const auto loss = optimizer.step(cross_entropy(model(x), reshape(cast(labels, Dtype::i32), {64}))).item<double>();
      INFO("step " << step);
      CHECK(std::abs(loss - expected[step]) <= run.at(step < 5 ? "suggested_tol_first5" : "suggested_tol_all").get<double>());
    }
  }
}

namespace {

/// Ten steps on two random images; the last losses are below the first, and what was saved gives the same outputs.
void fine_tune(const fs::path& path, const Shape& sample, double rate, const onnx::LoadOptions& options) {
  INFO(path.string());
  manual_seed(1);
  auto model = onnx::load(path, options);
  REQUIRE(model.missing_operators().empty());
  model.train();
  const Tensor x = randn({2, sample[0], sample[1], sample[2]});
  x.eval();
  const auto classes = model(x).size(1);
  const Tensor labels = Tensor::from({std::int32_t{0}, static_cast<std::int32_t>(classes - 1)}, {2});
  optim::Adam adam(model, rate);
  std::vector<float> losses;
  for (int step = 0; step < 10; ++step) losses.push_back(adam.step(cross_entropy(model(x), labels)).item<float>());
  INFO(losses[0] << " " << losses[1] << " " << losses[4] << " " << losses[8] << " " << losses[9]);
  CHECK(std::all_of(losses.begin(), losses.end(), [](auto loss) { return std::isfinite(loss); }));
  CHECK(losses.back() < 0.9F * losses.front());
  model.inference();
  const Folder folder;
  io::save_safetensors(folder / "tuned.safetensors", model.state_dict());
  auto other = onnx::load(path, options);
  other.load_state_dict(io::load_safetensors(folder / "tuned.safetensors").tensors);
  CHECK(equal(other(x), model(x)));
}

}  // namespace

TEST_CASE("fine-tuning lowers the loss of small classifiers") {
  const auto root = acceptance("models");
  if (!root) return;
  fine_tune(*root / "burn-mnist/model.onnx", {1, 28, 28}, 5e-2, {.logits = true, .free_batch = true});
  fine_tune(*root / "mnist-cntk/model.onnx", {1, 28, 28}, 1e-3, {.free_batch = true, .train_constants = true});
  fine_tune(*root / "exported-resnet-gn/model.onnx", {1, 28, 28}, 1e-2, {});
  fine_tune(*root / "exported-mobilenetv3-tiny/model.onnx", {3, 48, 48}, 1e-3, {});
  fine_tune(*root / "exported-vit-tiny/model.onnx", {3, 32, 32}, 1e-3, {});
}

TEST_CASE("fine-tuning lowers the loss of larger classifiers", "[long]") {
  const auto root = acceptance("models");
  if (!root) return;
  fine_tune(*root / "resnet20-cifar10/model.onnx", {3, 32, 32}, 1e-4, {});
  fine_tune(*root / "resnet32-cifar10/model.onnx", {3, 32, 32}, 1e-4, {});
  fine_tune(*root / "exported-mobilenetv2-w025/model.onnx", {3, 64, 64}, 1e-4, {});
  fine_tune(*root / "exported-shufflenetv2-x05/model.onnx", {3, 64, 64}, 1e-4, {});
}
