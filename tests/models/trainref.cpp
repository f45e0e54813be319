// The loss curves that PyTorch computed in double precision: twenty steps of two networks with each optimizer.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "clnet/clnet.h"
#include "tests/acceptance.h"

using namespace clnet;
namespace fs = std::filesystem;

namespace {

struct CnnA : nn::Module {
  nn::Conv2d conv1{{.in_channels = 1, .out_channels = 8, .kernel_size = 3, .padding = 1}};
  nn::Conv2d conv2{{.in_channels = 8, .out_channels = 16, .kernel_size = 3, .padding = 1}};
  nn::Linear fc{784, 10};
  CnnA() {
    add("conv1", conv1);
    add("conv2", conv2);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(flatten(max_pool2d(relu(conv2(max_pool2d(relu(conv1(x)), 2))), 2))); }
};

struct Mlp : nn::Module {
  nn::Linear fc1{784, 32}, fc2{32, 16}, fc3{16, 10};
  Mlp() {
    add("fc1", fc1);
    add("fc2", fc2);
    add("fc3", fc3);
  }
  Tensor forward(const Tensor& x) override { return fc3(tanh(fc2(gelu(fc1(flatten(x)))))); }
};

const std::map<std::string, std::function<optim::Optimizer(const nn::Module&)>> optimizers{
    {"sgd_momentum", [](const auto& m) { return optim::SGD(m, {.learning_rate = 0.05, .momentum = 0.9}); }},
    {"sgd_nesterov_wd",
     [](const auto& m) {
       return optim::SGD(m, {.learning_rate = 0.02, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
     }},
    {"adam", [](const auto& m) { return optim::Adam(m, {.learning_rate = 2e-3}); }},
    {"adamw", [](const auto& m) { return optim::AdamW(m, {.learning_rate = 2e-3, .weight_decay = 0.05}); }},
    {"rmsprop", [](const auto& m) { return optim::RMSprop(m, {.learning_rate = 1e-3}); }}};

std::unique_ptr<nn::Module> make(const std::string& name) {
  if (name == "cnn_a") return std::make_unique<CnnA>();
  return std::make_unique<Mlp>();
}

Tensor find(const io::StateDict& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  FAIL("no tensor " << name);
  return {};
}

struct Reference {
  io::StateDict init, gradients, batches;
  nlohmann::json runs;

  explicit Reference(const fs::path& folder)
      : init(io::load_safetensors(folder / "init.safetensors").tensors),
        gradients(io::load_safetensors(folder / "grads_step0.safetensors").tensors),
        batches(io::load_safetensors(folder / "batches.safetensors").tensors) {
    std::ifstream in(folder / "losses.json");
    runs = nlohmann::json::parse(in)["runs"];
  }
  Tensor images(std::int64_t step) const {
    const auto all = find(batches, "images");
    return cast(reshape(slice(all, 0, step, step + 1), {all.size(1), 1, 28, 28}), Dtype::f32) / 255.0;
  }
  Tensor labels(std::int64_t step) const {
    const auto all = find(batches, "labels");
    return reshape(slice(all, 0, step, step + 1), {all.size(1)});
  }
};

}  // namespace

TEST_CASE("trainref: the first step's gradients are PyTorch's") {
  for (const std::string name : {"cnn_a", "mlp"}) {
    const auto folder = test::acceptance("trainref/" + name);
    if (!folder) return;
    const Reference reference(*folder);
    const auto model = make(name);
    model->load_state(reference.init);
    std::vector<Tensor> parameters;
    for (const auto& [key, parameter] : model->parameters()) parameters.push_back(parameter);
    const auto computed = gradients(cross_entropy((*model)(reference.images(0)), reference.labels(0)), parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto key = model->parameters()[i].first;
      const auto expected = find(reference.gradients, key).to_vector<float>(), got = computed[i].to_vector<float>();
      REQUIRE(got.size() == expected.size());
      double worst = 0, largest = 0;
      for (std::size_t k = 0; k < got.size(); ++k) {
        worst = std::max(worst, std::abs(static_cast<double>(got[k]) - expected[k]));
        largest = std::max(largest, std::abs(static_cast<double>(expected[k])));
      }
      INFO(name << " " << key << ": off by " << worst << " of " << largest);
      CHECK(worst <= 2e-5 * largest);
    }
  }
}

TEST_CASE("trainref: losses and final weights are PyTorch's with every optimizer") {
  for (const std::string name : {"cnn_a", "mlp"}) {
    const auto folder = test::acceptance("trainref/" + name);
    if (!folder) return;
    const Reference reference(*folder);
    for (const auto& [optimizer_name, make_optimizer] : optimizers) {
      INFO(name << ", " << optimizer_name);
      const auto& run = reference.runs.at(optimizer_name);
      const std::vector<double> expected = run.at("loss_float64");
      const double first_five = run.at("suggested_tol_first5"), all = run.at("suggested_tol_all");
      const auto model = make(name);
      model->load_state(reference.init);
      auto optimizer = make_optimizer(*model);
      REQUIRE(expected.size() == 20);
      for (std::size_t step = 0; step < expected.size(); ++step) {
        const auto at = static_cast<std::int64_t>(step);
        const double loss = optimizer.step(cross_entropy((*model)(reference.images(at)), reference.labels(at))).item<double>();
        INFO("step " << step << ": " << loss << ", expected " << expected[step]);
        CHECK(std::abs(loss - expected[step]) <= (step < 5 ? first_five : all));
      }
      const auto final_weights = io::load_safetensors(*folder / ("final_" + optimizer_name + ".safetensors")).tensors;
      for (const auto& [key, tensor] : model->state()) {
        const auto got = tensor.to_vector<float>(), want = find(final_weights, key).to_vector<float>();
        double squares = 0, difference = 0;
        for (std::size_t k = 0; k < got.size(); ++k) {
          squares += static_cast<double>(want[k]) * want[k];
          difference += (static_cast<double>(got[k]) - want[k]) * (static_cast<double>(got[k]) - want[k]);
        }
        INFO(key << ": relative distance " << std::sqrt(difference / squares));
        CHECK(std::sqrt(difference / squares) <= 1e-3);
      }
    }
  }
}
