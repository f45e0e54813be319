// The recipes of docs/training.md: each compiles and runs as it stands there, with what it takes for granted made before it.
// <recipes/...> is made of them by tools/dev/training_recipes.sh.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/temporary.h"

using namespace clnet;

// Recipes name what they make, and use names again.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wshadow=compatible-local"
#endif
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

namespace {

struct Net : nn::Module {
  nn::Sequential body{nn::Linear{6, 8}, relu}, head{nn::Linear{8, 8}, relu};
  nn::Linear fc{8, 3};
  Net() {
    add("body", body);
    add("head", head);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(head(body(x))); }
};

Tensor some_labels(std::int64_t count) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<std::int32_t>(i % 3));
  return Tensor::from(values, Shape{count});
}

/// The working folder while a recipe runs, which may read files there; what it prints is left out.
class RecipeWorkplace {
 public:
  RecipeWorkplace() { std::filesystem::current_path(folder_.path()); }
  ~RecipeWorkplace() {
    std::cout.rdbuf(screen_);
    std::filesystem::current_path(before_);
  }
  RecipeWorkplace(const RecipeWorkplace&) = delete;
  RecipeWorkplace& operator=(const RecipeWorkplace&) = delete;
  std::string printed() const { return out_.str(); }
  const test::Folder& folder() const { return folder_; }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  test::Folder folder_;
  std::ostringstream out_;
  std::streambuf* screen_ = std::cout.rdbuf(out_.rdbuf());
};

void freezing_a_part() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/freezing_a_part_1.inc>
#include <recipes/freezing_a_part_2.inc>
  const auto before = model.body.parameters()[0].second.value().to_vector<float>();
  adam.step(cross_entropy(model(x), labels));
  CHECK(model.body.parameters()[0].second.value().to_vector<float>() == before);
  CHECK(head.parameters().size() == 2);
}

void replacing_a_head() {
  manual_seed(1);
  io::save_safetensors("resnet18.safetensors", models::make("resnet18", {3, 224, 224}, 1000)->state_dict());
  // Seven kinds of small photos, each of one colour of its own and some noise.
  std::vector<float> pixels;
  std::vector<std::int32_t> kinds;
  for (std::int32_t i = 0; i < 28; ++i) {
    kinds.push_back(i % 7);
    for (std::int32_t channel = 0; channel < 3; ++channel)
      for (std::int32_t pixel = 0; pixel < 32 * 32; ++pixel)
        pixels.push_back(((i % 7 + 1) >> channel & 1 ? 1.0F : -1.0F) + 0.2F * static_cast<float>(std::sin(i * 31 + pixel)));
  }
  const auto photos = data::from_arrays(pixels, {3, 32, 32}, kinds, 7);
  const auto saved = io::load_safetensors("resnet18.safetensors").tensors;
#include <recipes/replacing_a_head_1.inc>
  CHECK(net->parameter("fc.weight").value().shape() == Shape{7, 512});
  // The body is what it was, its running statistics and counts, too.
  const auto trained = net->state_dict();
  REQUIRE(trained.size() == saved.size());
  const auto values = [](const Tensor& x) { return x.to_vector<float>(); };
  for (std::size_t i = 0; i < saved.size(); ++i) {
    INFO(saved[i].first);
    REQUIRE(trained[i].first == saved[i].first);
    if (!saved[i].first.starts_with("fc.")) CHECK(values(trained[i].second) == values(saved[i].second));
  }
  CHECK(train::accuracy(*net, photos) == 1);
}

void parts_of_a_model() {
  const Tensor images = randn({2, 3, 64, 64}), features = randn({2, 512});
#include <recipes/parts_of_a_model_1.inc>
  CHECK(logits.shape() == Shape{2, 10});
  CHECK(late.shape() == Shape{2, 64, 32, 32});
#include <recipes/parts_of_a_model_2.inc>
  Heads several;
  CHECK(several(randn({2, 8})).shape() == Shape{2, 3});
  CHECK(several.heads["boxes"](randn({2, 8})).shape() == Shape{2, 4});
  CHECK(several.parameters()[0].first == "hidden.0.weight");
  CHECK(several.parameters().back().first == "heads.boxes.2.bias");
}

void features_of_a_layer_and_hooks() {
  const auto net = models::make("resnet18", {3, 64, 64}, 10);
  const Tensor images = randn({2, 3, 64, 64});
  net->inference();
#include <recipes/features_of_a_layer_and_hooks_1.inc>
  CHECK(maps[0].shape() == Shape{2, 64, 16, 16});
  CHECK(maps[1].shape() == Shape{2, 256, 4, 4});
  const Tensor bias = net->parameter("fc.bias");
  CHECK((logits[0].to_vector<float>() == bias.to_vector<float>()));
}

void tying_weights() {
#include <recipes/tying_weights_1.inc>
  Tied tied;
  CHECK(tied.parameters().size() == 1);
  CHECK(tied(Tensor::from(std::vector<std::int32_t>{1, 2}, Shape{2})).shape() == Shape{2, 1000});
}

void mixed_precision() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/mixed_precision_1.inc>
  CHECK(adam.steps_made().item<std::int64_t>() == 1);
}

void averages_of_weights() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
  auto adam = optim::Adam{model};
  const Tensor loss = cross_entropy(model(x), labels);
#include <recipes/averages_of_weights_1.inc>
}

void accumulating_gradients() {
  Net model;
  const Tensor features = randn({4, 6}), classes = some_labels(4);
  auto adam = optim::Adam{model};
  const std::vector<std::pair<Tensor, Tensor>> micro_batches(4, {features, classes});
#include <recipes/accumulating_gradients_1.inc>
  CHECK(adam.steps() == 1);
}

void numbers_and_pixels() {
  const std::vector<float> features(16, 0.5F), prices{1, 2}, images(std::size_t{2} * 3 * 96 * 96, 0.5F);
  const std::vector<std::int32_t> classes(std::size_t{2} * 96 * 96, 20);
  nn::Sequential model{nn::Conv2d{3, 21, 1}};
#include <recipes/numbers_pixels_more_samples_than_there_are_1.inc>
  CHECK(houses.size() == 2);
}

void losses_as_layers() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4), per_class = Tensor::from({1.0F, 2.0F, 0.5F});
  auto adam = optim::Adam{model};
  const std::vector<float> features(48, 0.5F), targets(24, 1.0F);
  const auto dataset = data::from_arrays(features, {6}, targets, Shape{3});
#include <recipes/losses_as_layers_1.inc>
  CHECK(adam.steps() > 1);
  CHECK(own(Tensor::from({2.0F, 0.5F}), Tensor::from({1.0F, -1.0F})).item() == Approx(0.75));
}

void states_that_are_carried_on() {
  nn::LSTM lstm{5, 4, {.batch_first = true}};
  nn::Linear classes{4, 3};
  const auto head = [&](const Tensor& y) { return permute(classes(y), {0, 2, 1}); };
  auto adam = optim::Adam{lstm};
  const std::vector<std::pair<Tensor, Tensor>> pieces(3, {randn({2, 7, 5}), reshape(some_labels(14), {2, 7})});
#include <recipes/states_that_are_carried_on_1.inc>
  CHECK(adam.steps() == 3);
}

void two_optimizers() {
  nn::Sequential generator{nn::Linear{2, 6}}, critic{nn::Linear{6, 1}};
  const Tensor noise = randn({4, 2}), real = randn({4, 6}), ones = clnet::ones({4, 1}), zeros = clnet::zeros({4, 1});
  auto d_adam = optim::Adam{critic}, g_adam = optim::Adam{generator};
#include <recipes/two_optimizers_several_losses_1.inc>
  CHECK((d_adam.steps() == 1 && g_adam.steps() == 1));
  CHECK(of_real.shape() == of_fake.shape());
}

void groups() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/groups_schedules_clipping_1.inc>
  CHECK(adam.groups() == 2);
  CHECK(adam.learning_rate(1) == Approx(10 * adam.learning_rate(0)));
  adam.step(cross_entropy(model(x), labels));
}

void cycles_of_momenta() {
  Net model;
  const std::vector<std::pair<Tensor, Tensor>> batches(3, {randn({4, 6}), some_labels(4)});
#include <recipes/groups_schedules_clipping_2.inc>
  CHECK(sgd.momentum() == momentum(2));
}

void a_model_over_several_devices() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/a_model_over_several_devices_1.inc>
  CHECK(logits.device() == second);
  CHECK(std::isfinite(sum(logits).item()));
}

void an_optimizer_of_your_own() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/an_optimizer_of_your_own_1.inc>
  optimizer.step(cross_entropy(model(x), labels));
}

void a_gradient_of_your_own() {
  const Tensor x = Tensor::from({0.4F, 1.6F});
#include <recipes/a_gradient_of_your_own_1.inc>
  CHECK(rounded.to_vector<float>() == std::vector<float>{0, 2});
  CHECK(gradients(sum(rounded * rounded), {x})[0].to_vector<float>() == std::vector<float>{0, 4});

#include <recipes/a_gradient_of_your_own_2.inc>
  CHECK(doubled({x}).to_vector<float>() == std::vector<float>{0.8F, 3.2F});
  CHECK(check_gradients([&](const std::vector<Tensor>& in) { return doubled(in); }, {x}).passed);
}

void generating_text() {
  std::string text;
  for (int k = 0; k < 100; ++k) text += "ROMEO: But soft " + std::to_string(k) + '\n';
  const RecipeWorkplace here;
  (void)here.folder().write("shakespeare.txt", text);
#include <recipes/generating_text_1.inc>
  CHECK(here.printed().size() >= 500);
}

Tensor my_operation(const Tensor& a, const Tensor& b) { return a * b; }

void looking_for_a_fault() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
  {
    auto optimizer = optim::Adam{model};
    const auto loss = [](const Tensor& y) { return sum(log(y - y)) * 0.0; };
    const auto recipe = [&] {
#include <recipes/looking_for_a_fault_1.inc>
    };
    CHECK_THROWS_WITH(recipe(), Catch::StartsWith("detect_anomaly: "));
  }
  const Tensor loss = cross_entropy(model(x), labels), w = randn({4, 6});
  const RecipeWorkplace here;
#include <recipes/looking_for_a_fault_2.inc>
  CHECK(check.passed);
  CHECK_FALSE(here.printed().empty());
}

void what_is_computed_once() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
  auto optimizer = optim::Adam{model};
  for (int k = 0; k < 2; ++k) {
#include <recipes/what_is_computed_once_1.inc>
  }
  CHECK(optimizer.steps() == 2);
  for (int k = 0; k < 2; ++k) {
#include <recipes/what_is_computed_once_2.inc>
  }
  CHECK(optimizer.steps() == 4);
}

void a_graph_that_is_built_once() {
  Net model;
  const Tensor images = randn({4, 6}), labels = some_labels(4);
  auto optimizer = optim::Adam{model};
#include <recipes/a_graph_that_is_built_once_1.inc>
  CHECK(loss > 0);
  CHECK(infer(images).shape() == Shape{4, 3});
}

}  // namespace

TEST_CASE("the recipes of docs/training.md work as they stand there") {
  const std::vector<std::pair<std::set<std::string>, void (*)()>> all{
      {{"freezing_a_part_1", "freezing_a_part_2"}, freezing_a_part},
      {{"replacing_a_head_1"}, replacing_a_head},
      {{"parts_of_a_model_1", "parts_of_a_model_2"}, parts_of_a_model},
      {{"features_of_a_layer_and_hooks_1"}, features_of_a_layer_and_hooks},
      {{"tying_weights_1"}, tying_weights},
      {{"mixed_precision_1"}, mixed_precision},
      {{"averages_of_weights_1"}, averages_of_weights},
      {{"accumulating_gradients_1"}, accumulating_gradients},
      {{"numbers_pixels_more_samples_than_there_are_1"}, numbers_and_pixels},
      {{"losses_as_layers_1"}, losses_as_layers},
      {{"states_that_are_carried_on_1"}, states_that_are_carried_on},
      {{"two_optimizers_several_losses_1"}, two_optimizers},
      {{"groups_schedules_clipping_1"}, groups},
      {{"groups_schedules_clipping_2"}, cycles_of_momenta},
      {{"a_model_over_several_devices_1"}, a_model_over_several_devices},
      {{"an_optimizer_of_your_own_1"}, an_optimizer_of_your_own},
      {{"a_gradient_of_your_own_1", "a_gradient_of_your_own_2"}, a_gradient_of_your_own},
      {{"generating_text_1"}, generating_text},
      {{"looking_for_a_fault_1", "looking_for_a_fault_2"}, looking_for_a_fault},
      {{"what_is_computed_once_1", "what_is_computed_once_2"}, what_is_computed_once},
      {{"a_graph_that_is_built_once_1"}, a_graph_that_is_built_once}};
  std::set<std::string> here;
  for (const auto& [names, run] : all) {
    here.insert(names.begin(), names.end());
    INFO(*names.begin());
    const RecipeWorkplace folder;
    CHECK_NOTHROW(run());
  }
  const std::set<std::string> there{
#include <recipes/recipes.inc>
  };
  CHECK(here == there);
}

#pragma GCC diagnostic pop
