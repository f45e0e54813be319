// The C++ of docs/guide: each block compiles and runs as it stands there, with what it takes for granted made before it.
// <recipes/...> is made of them by tools/dev/training_recipes.sh.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "tests/models/recipe_workplace.h"
#include "tests/onnx/builder.h"
#include "tests/support/second_device.h"
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

/// Small pictures of ten classes.
data::ArrayDataset some_pictures(std::int64_t count, const Shape& shape) {
  std::vector<float> pixels;
  std::vector<std::int32_t> classes;
  for (std::int64_t i = 0; i < count; ++i) {
    classes.push_back(static_cast<std::int32_t>(i % 10));
    for (std::int64_t k = 0; k < shape.numel(); ++k) pixels.push_back(static_cast<float>((i * 7 + k) % 10) / 10);
  }
  return data::from_arrays(pixels, shape, classes, 10);
}

data::ArrayDataset some_samples(std::int64_t count) {
  std::vector<float> values;
  std::vector<std::int32_t> classes;
  for (std::int64_t i = 0; i < count; ++i) {
    classes.push_back(static_cast<std::int32_t>(i % 3));
    for (std::int64_t k = 0; k < 6; ++k) values.push_back(static_cast<float>((i + k) % 3));
  }
  return data::from_arrays(values, {6}, classes, 3);
}

#include <recipes/install_use_clnet_in_a_program_1.inc>
#include <recipes/quick_start_a_complete_program_1.inc>

void first_program() {
  const RecipeWorkplace here;
  CHECK(install_use_clnet_in_a_program_1::program() == 0);
  CHECK(here.printed() == "14\n");
}

void quick_start() {
  const RecipeWorkplace here;
  CHECK(quick_start_a_complete_program_1::program() == 0);
  CHECK(here.printed().find("step 300: loss 0.0") != std::string::npos);
  CHECK(std::filesystem::exists("sine.safetensors"));
  // It wants Fashion-MNIST and trains for long.
  [[maybe_unused]] const auto compiled_only = [] {
#include <recipes/quick_start_a_loop_over_a_data_set_1.inc>
  };
  const auto training = some_pictures(20, {1, 28, 28}), test = some_pictures(10, {1, 28, 28});
#include <recipes/quick_start_one_call_1.inc>
  CHECK(result.epochs.size() == 5);
}

void tensors() {
#include <recipes/tensors_1.inc>
  CHECK(y.to_vector<float>() == std::vector<float>{15, 33});
#include <recipes/tensors_values_never_change_1.inc>
  CHECK(first.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(corner.to_vector<float>() == std::vector<float>{3, 6});
  CHECK(changed.to_vector<float>() == std::vector<float>{0, 2, 3, 0, 5, 6});
#include <recipes/tensors_long_loops_1.inc>
  CHECK(state.to_vector<float>()[0] == Approx(10).epsilon(0.001));
#include <recipes/tensors_gradients_1.inc>
  const auto slopes = second_order[0].to_vector<float>(), numbers = v.to_vector<float>();
  for (std::size_t i = 0; i < slopes.size(); ++i) CHECK(slopes[i] == Approx(2 * numbers[i] * numbers[i]));
}

void devices_and_memory() {
  const DefaultDevice kept;
#include <recipes/devices_1.inc>
#include <recipes/devices_memory_1.inc>
  CHECK(device.memory().limit == std::size_t{2} << 30);
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4), a = randn({64, 64}), b = randn({64, 64});
  const Tensor loss = cross_entropy(model(x), labels);
#include <recipes/devices_waiting_and_timing_1.inc>
#include <recipes/devices_where_memory_goes_1.inc>
  CHECK(seconds.count() > 0);
}

void dtypes() {
#include <recipes/dtypes_1.inc>
  CHECK(y.dtype() == Dtype::f16);
  CHECK(z.dtype() == Dtype::f32);
  CHECK(n.dtype() == Dtype::i32);
}

void samples() {
  nn::Sequential model{nn::Flatten(), nn::Linear(3 * 32 * 32, 10)};
  auto adam = optim::Adam{model};
#include <recipes/data_1.inc>
  CHECK(adam.steps() == 4);
#include <recipes/data_normalization_1.inc>
  CHECK(training.mean == std::vector<float>(3, 0.5F));
#include <recipes/data_augmentation_1.inc>
  CHECK(noisy.size() == 4);
  CHECK((*noisy.begin()).images.to_vector<float>() != std::vector<float>(std::size_t{32} * 3 * 32 * 32, 0.5F));
#include <recipes/data_batches_of_your_own_1.inc>
}

void parts_and_rare_classes() {
  const auto photos = some_pictures(20, {1, 4, 4});
  nn::Sequential model{nn::Flatten(), nn::Linear(16, 10)};
  const Tensor batch = randn({3, 1, 4, 4}), some_kinds = some_labels(3);
#include <recipes/data_parts_1.inc>
  CHECK(training.size() == 10);
  CHECK(both.size() == 13);
#include <recipes/data_rare_classes_1.inc>
  CHECK(weights.to_vector<float>() == std::vector<float>(10, 1.0F));
  CHECK(loss.item() > 0);
}

void tables() {
  const RecipeWorkplace here;
  (void)here.folder().write("houses.csv", "area,city,price\n50,Ulm,1\n60,Bonn,2\n70,Ulm,3\n80,Bonn,4\n90,Ulm,5\n");
  (void)here.folder().write("more.csv", "area,city,price\n55,Ulm,1\n");
#include <recipes/tables_csv_files_1.inc>
  CHECK(training.sample_shape == Shape{3});
  CHECK(test.size() == 1);
#include <recipes/tables_csv_files_2.inc>
  CHECK(more["city"].values[0] == 1);
#include <recipes/tables_normalization_1.inc>
  CHECK(scaled.mean.size() == 3);
  io::save_npy("x.npy", Tensor::from(std::vector<std::uint8_t>{0, 255, 51, 0}, {2, 2}));
  io::save_npy("y.npy", Tensor::from(std::vector<std::int64_t>{4, 0}, {2}));
#include <recipes/tables_numpy_1.inc>
  CHECK(loaded[0].second.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(digits.classes == 5);
}

void sounds() {
  const RecipeWorkplace here;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = i % 2 == 0 ? "birds/owl" : "birds/wren";
    std::filesystem::create_directories(folder);
    const std::vector<float> wave(10000, 0.1F * static_cast<float>(i % 2));
    data::write_wav(folder + '/' + std::to_string(i) + ".wav", {.rate = 8000, .samples = data::Array(wave, Shape{1, 10000})});
  }
  std::filesystem::copy_file("birds/owl/0.wav", "owl.wav");
  nn::Sequential model{nn::AdaptiveAvgPool2d({4, 4}), nn::Flatten(), nn::Linear(16, 2)};
#include <recipes/audio_1.inc>
  CHECK(training.size() == 6);
#include <recipes/audio_spectrograms_1.inc>
  CHECK(mel.shape == Shape{64, 51});
#include <recipes/audio_files_1.inc>
  CHECK(std::filesystem::exists("copy.wav"));
}

/// Of 1 to 15 words, with a label each.
class Sentences : public data::Dataset {
 public:
  std::int64_t size() const override { return 64; }
  std::int64_t length(std::int64_t i) const { return i % 15 + 1; }
  data::Example get(std::int64_t i, std::uint64_t) const override {
    const std::vector<std::int32_t> words(static_cast<std::size_t>(length(i)), 1);
    return {data::Array(words, Shape{length(i)}), data::Array(words, Shape{length(i)})};
  }
};

void datasets_of_ones_own() {
  Net model;
#include <recipes/own_datasets_1.inc>
#include <recipes/own_datasets_2.inc>
  CHECK(train::accuracy(model, readings) > 0.3);
  const std::uint64_t seed = 1;
#include <recipes/own_datasets_several_inputs_1.inc>
#include <recipes/own_datasets_workers_1.inc>
  const Sentences sentences;
#include <recipes/own_datasets_different_lengths_1.inc>
#include <recipes/own_datasets_streams_1.inc>
  CHECK(train::fit(model, Lines(), {.batch_size = 50, .optimizer = optim::Adam(model, 1e-3)}).steps == 4);
}

/// A grey square.
void write_bmp(const std::filesystem::path& path, unsigned char grey) {
  std::string file(54, '\0');
  const auto set = [&](std::size_t at, int value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 255);
  };
  for (const auto& [at, value] : {std::pair<std::size_t, int>{10, 54}, {14, 40}, {18, 8}, {22, 8}, {26, 1 | 24 << 16}})
    set(at, value);
  file.replace(0, 2, "BM");
  file += std::string(std::size_t{3} * 8 * 8, static_cast<char>(grey));
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << file;
}

void image_files() {
  for (int i = 0; i < 10; ++i) {
    write_bmp(std::filesystem::path("flowers/dark") / (std::to_string(i) + ".bmp"), 20);
    write_bmp(std::filesystem::path("flowers/light") / (std::to_string(i) + ".bmp"), 220);
  }
  nn::Sequential model{nn::Flatten(), nn::Linear(3 * 64 * 64, 2)};
#include <recipes/images_in_c_1.inc>
  CHECK(training.size() == 16);
  CHECK(confusion[0][0] + confusion[0][1] == 2);
  write_bmp("./new.bmp", 220);
#include <recipes/images_predictions_1.inc>
  CHECK(kind == 1);
  std::ofstream("things.csv") << "flowers/dark/1.bmp,1,1,5,6,spot\nflowers/light/1.bmp,,,,,\n";
#include <recipes/images_mixtures_and_boxes_1.inc>
}

void onnx_files() {
  clnet::test::Builder file;
  file.initializer("mask", {2}, {1, 1}).initializer("weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  file.input("x").input("mask").output("scores").node("Mul", {"x", "mask"}, {"masked"});
  file.node("Gemm", {"masked", "weight"}, {"scores"}, {clnet::test::attribute("transB", std::int64_t{1})});
  std::ofstream("classifier.onnx", std::ios::binary) << file.model();
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}).to(Dtype::f32), mask = Tensor::from({1.0F, 0.0F});
  const Tensor labels = Tensor::from({0, 2});
#include <recipes/onnx_in_c_1.inc>
  CHECK(scores.to_vector<float>() == std::vector<float>{5, 11, 17, 11, 25, 39});
  CHECK(outputs[0].to_vector<float>() == std::vector<float>{1, 3, 5, 3, 9, 15});
#include <recipes/onnx_in_c_2.inc>
  CHECK(io::load_safetensors("tuned.safetensors").tensors.size() == model.state_dict().size());
}

void onnx_fine_tuning() {
  clnet::test::Builder file;
  file.initializer("fc1.weight", {16, 4}, std::vector<double>(64, 0.5))
      .initializer("fc2.weight", {4, 3}, std::vector<double>(12, 0.25));
  file.input("x").output("scores").node("Flatten", {"x"}, {"flat"}).node("MatMul", {"flat", "fc1.weight"}, {"a"});
  file.node("MatMul", {"a", "fc2.weight"}, {"b"}).node("Softmax", {"b"}, {"scores"});
  std::ofstream("classifier.onnx", std::ios::binary) << file.model();
  const auto images = some_pictures(20, {1, 4, 4});
#include <recipes/onnx_fine_tuning_1.inc>
  CHECK(model.parameter("fc1.weight").value().to_vector<float>() == std::vector<float>(64, 0.5F));
  CHECK(model.head() == std::vector<std::string>{"fc2.weight"});
}

void saved_onnx_files() {
  Net net;
  const Tensor x = randn({2, 6});
#include <recipes/onnx_saving_1.inc>
  net.inference();
  CHECK(equal(onnx::load("net.onnx")(x), net(x)));
  CHECK(onnx::load("both.onnx").inputs()[1].name == "b");
}

void modules() {
#include <recipes/models_1.inc>
  CHECK(model(randn({2, 1, 28, 28})).shape() == Shape{2, 10});
#include <recipes/models_a_module_of_your_own_1.inc>
  Residual residual(4);
  const Tensor x = randn({2, 4});
  CHECK(residual(x).to_vector<float>() == x.to_vector<float>());
  CHECK(residual.parameters().size() == 5);
}

void training_by_one_call() {
  const RecipeWorkplace here;
  {
    const auto training = some_pictures(20, {1, 28, 28}), test = some_pictures(10, {1, 28, 28});
#include <recipes/training_1.inc>
    CHECK_FALSE(result.epochs.empty());
  }
  Net model;
  const auto dataset = some_samples(30);
#include <recipes/training_evaluation_1.inc>
  CHECK(std::isfinite(scores.loss));
  train::FitOptions options{.epochs = 6, .batch_size = 8, .optimizer = optim::Adam(model, 1e-3), .validation = dataset};
  options.metrics = {metrics::F1(3)};
#include <recipes/training_hooks_1.inc>
#include <recipes/training_hooks_2.inc>
  CHECK(train::fit(model, dataset, options).steps > 0);
  CHECK(std::filesystem::exists("run.csv"));

  struct TwoHeads : nn::Module {
    nn::Linear left{3, 8}, right{3, 8}, kind{8, 3}, size{8, 1};
    TwoHeads() {
      add("left", left);
      add("right", right);
      add("kind", kind);
      add("size", size);
    }
    std::pair<Tensor, Tensor> operator()(const Tensor& a, const Tensor& b) const {
      const Tensor hidden = relu(left(a) + right(b));
      return {kind(hidden), size(hidden)};
    }
  };
  TwoHeads two_heads;
  options = {.epochs = 1, .batch_size = 8, .optimizer = optim::Adam(two_heads, 1e-3), .validation = dataset};
#include <recipes/training_several_inputs_and_outputs_1.inc>
  CHECK(train::fit(two_heads, dataset, options).epochs[0].validation->loss > 0);
}

void measuring() {
  Net model;
  const auto training = some_samples(70), test = some_samples(20);
  auto adam = optim::Adam{model};
#include <recipes/metrics_1.inc>
  CHECK(result.epochs.size() == 3);
#include <recipes/metrics_in_loops_of_your_own_1.inc>
  CHECK(adam.steps() == 3);
#include <recipes/metrics_evaluation_1.inc>
  CHECK(matrix.size() == 9);
#include <recipes/metrics_metrics_of_your_own_1.inc>
#include <recipes/metrics_metrics_of_your_own_2.inc>
  eval(largest.update(Tensor::from({1.0, 3.0}), some_labels(2)));
  CHECK(largest.value() == 3);
  CHECK(error.name() == "mean_error");
  CHECK(counted.name() == "masked_error");
}

void loops() {
  Net model;
  const auto dataset = some_samples(70);
  auto adam = optim::Adam{model};
#include <recipes/training_loops_1.inc>
  CHECK(adam.steps() == 3);
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/training_loops_a_second_network_that_follows_1.inc>
  CHECK_FALSE(target.fc.parameter("weight").same(model.fc.parameter("weight")));
  CHECK(equal(target(x), model(x)));
#include <recipes/training_loops_gradients_by_hand_1.inc>
  CHECK(adam.steps() == 4);
#include <recipes/training_loops_schedules_1.inc>
  CHECK(scheduler.steps() == 1);
#include <recipes/training_loops_more_values_with_the_step_1.inc>
  CHECK(reading.item() >= 0);
}

void saving() {
  const RecipeWorkplace here;
  Net model;
  const auto dataset = some_samples(20);
#include <recipes/saving_1.inc>
  const auto net = std::make_unique<Net>();
  net->replace("fc", nn::Linear(8, 4));
  const auto state = model.state_dict();
  {
#include <recipes/saving_pytorch_s_own_files_1.inc>
    CHECK(part.size() == 1);
    CHECK(part[0].first == "weight");
  }
#include <recipes/saving_names_that_differ_1.inc>
  CHECK(left.unfitting == std::vector<std::string>{"fc.weight", "fc.bias"});
#include <recipes/saving_checkpoints_1.inc>
  CHECK(std::filesystem::exists("run1/checkpoint.safetensors"));
  auto adam = optim::Adam{model};
  optim::EMA average(model, 0.9);
  optim::Scheduler scheduler(adam, optim::cosine(1e-3, 10));
  std::int64_t step = 5;
#include <recipes/saving_your_own_checkpoints_1.inc>
  CHECK(step == 5);
}

void first_runs() {
#include <recipes/speed_first_runs_1.inc>
  on_compile({});
}

void freezing_a_part() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/finetuning_freezing_a_part_1.inc>
#include <recipes/finetuning_freezing_a_part_2.inc>
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
#include <recipes/finetuning_1.inc>
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
#include <recipes/models_parts_of_a_model_1.inc>
  CHECK(logits.shape() == Shape{2, 10});
  CHECK(late.shape() == Shape{2, 64, 32, 32});
#include <recipes/models_lists_and_dictionaries_1.inc>
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
#include <recipes/finetuning_features_of_a_layer_and_hooks_1.inc>
  CHECK(maps[0].shape() == Shape{2, 64, 16, 16});
  CHECK(maps[1].shape() == Shape{2, 256, 4, 4});
  const Tensor bias = net->parameter("fc.bias");
  CHECK((logits[0].to_vector<float>() == bias.to_vector<float>()));
}

void tying_weights() {
#include <recipes/models_shared_weights_1.inc>
  Tied tied;
  CHECK(tied.parameters().size() == 1);
  CHECK(tied(Tensor::from(std::vector<std::int32_t>{1, 2}, Shape{2})).shape() == Shape{2, 1000});
}

void mixed_precision() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/dtypes_mixed_precision_1.inc>
  CHECK(adam.steps_made().item<std::int64_t>() == 1);
}

void doubles() {
  if (!Device::current().info().fp64) return;
#include <recipes/dtypes_f64_1.inc>
  CHECK(twice.dtype() == Dtype::f64);
}

void averages_of_weights() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
  auto adam = optim::Adam{model};
  const Tensor loss = cross_entropy(model(x), labels);
#include <recipes/training_loops_averages_of_weights_1.inc>
}

void accumulating_gradients() {
  Net model;
  const Tensor features = randn({4, 6}), classes = some_labels(4);
  auto adam = optim::Adam{model};
  const std::vector<std::pair<Tensor, Tensor>> micro_batches(4, {features, classes});
#include <recipes/training_loops_accumulating_gradients_1.inc>
  CHECK(adam.steps() == 1);
}

void numbers_and_pixels() {
  const std::vector<float> features(16, 0.5F), prices{1, 2}, images(std::size_t{2} * 3 * 96 * 96, 0.5F);
  const std::vector<std::int32_t> classes(std::size_t{2} * 96 * 96, 20);
  nn::Sequential model{nn::Conv2d{3, 21, 1}};
#include <recipes/data_labels_and_targets_1.inc>
  CHECK(houses.size() == 2);
}

void losses_as_layers() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4), per_class = Tensor::from({1.0F, 2.0F, 0.5F});
  auto adam = optim::Adam{model};
  const std::vector<float> features(48, 0.5F), targets(24, 1.0F);
  const auto dataset = data::from_arrays(features, {6}, targets, Shape{3});
#include <recipes/training_losses_1.inc>
  CHECK(adam.steps() > 1);
  CHECK(own(Tensor::from({2.0F, 0.5F}), Tensor::from({1.0F, -1.0F})).item() == Approx(0.75));
}

void states_that_are_carried_on() {
  nn::LSTM lstm{5, 4, {.batch_first = true}};
  nn::Linear classes{4, 3};
  const auto head = [&](const Tensor& y) { return permute(classes(y), {0, 2, 1}); };
  auto adam = optim::Adam{lstm};
  const std::vector<std::pair<Tensor, Tensor>> pieces(3, {randn({2, 7, 5}), reshape(some_labels(14), {2, 7})});
#include <recipes/training_loops_states_between_steps_1.inc>
  CHECK(adam.steps() == 3);
}

void two_optimizers() {
  nn::Sequential generator{nn::Linear{2, 6}}, critic{nn::Linear{6, 1}};
  const Tensor noise = randn({4, 2}), real = randn({4, 6}), ones = clnet::ones({4, 1}), zeros = clnet::zeros({4, 1});
  auto d_adam = optim::Adam{critic}, g_adam = optim::Adam{generator};
#include <recipes/training_loops_two_optimizers_several_losses_1.inc>
  CHECK((d_adam.steps() == 1 && g_adam.steps() == 1));
  CHECK(of_real.shape() == of_fake.shape());
}

void groups() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/optimizers_1.inc>
  CHECK(adam.groups() == 2);
  CHECK(adam.learning_rate(1) == Approx(10 * adam.learning_rate(0)));
  adam.step(cross_entropy(model(x), labels));
#include <recipes/optimizers_which_optimizers_there_are_1.inc>
  CHECK(lion.learning_rate() == Approx(1e-4));
#include <recipes/optimizers_clipping_1.inc>
  CHECK(adam.clipping().norm == 1);
  adam.set_learning_rate(1e-3);
#include <recipes/optimizers_find_a_learning_rate_1.inc>
  CHECK_FALSE(curve.losses.empty());
}

void cycles_of_momenta() {
  Net model;
  const std::vector<std::pair<Tensor, Tensor>> batches(3, {randn({4, 6}), some_labels(4)});
#include <recipes/optimizers_schedules_1.inc>
  CHECK(sgd.momentum() == momentum(2));
}

void several_models() {
#include <recipes/several_devices_several_models_1.inc>
}

void shares_of_batches() {
  const auto dataset = some_samples(40);
  nn::Sequential model{nn::Linear{6, 3}};
  {
    optim::Adam adam(model, 1e-3);
#include <recipes/several_devices_a_share_of_each_batch_per_device_1.inc>
    CHECK(adam.steps() == 4);
  }
#include <recipes/several_devices_a_share_of_each_batch_per_device_2.inc>
  CHECK(adam.steps() == 2);
  {
    nn::Sequential model{nn::Linear{6, 4}, nn::BatchNorm1d{4}, nn::Linear{4, 3}};
    optim::Adam adam(model, 1e-3);
    const Device first = Device::current(), second = test::second_device();
#include <recipes/several_devices_a_share_of_each_batch_per_device_3.inc>
    CHECK(adam.steps() == 2);
  }
}

void a_model_over_several_devices() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/several_devices_1.inc>
  CHECK(logits.device() == second);
  CHECK(std::isfinite(sum(logits).item()));
  several_models();
  shares_of_batches();
}

void ranks_of_a_job() {
  const auto images = some_samples(256);
  nn::Sequential model{nn::Linear{6, 3}};
  optim::Adam adam(model, 1e-3);
  {
#include <recipes/clusters_a_loop_of_your_own_1.inc>
    CHECK(ranks.size() == 1);
    CHECK(adam.steps() == 10);
  }
#include <recipes/clusters_a_loop_of_your_own_2.inc>
  CHECK(adam.steps() == 12);
}

void data_of_one_rank() {
  nn::Sequential model{nn::Linear{6, 3}};
  optim::Adam adam(model, 1e-3);
  const auto read_images = [] { return some_samples(256); };
#include <recipes/clusters_data_on_one_host_1.inc>
  CHECK(adam.steps() == 10);
}

void an_optimizer_of_your_own() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
#include <recipes/optimizers_a_rule_of_your_own_1.inc>
  optimizer.step(cross_entropy(model(x), labels));
}

void own_kernels() {
#include <recipes/own_kernels_1.inc>
  CHECK(add(ones({2}), ones({2})).to_vector<float>() == std::vector<float>{2, 2});
  const Tensor x = Tensor::from({0.4F, 1.6F});
#include <recipes/own_kernels_a_gradient_of_your_own_1.inc>
  CHECK(doubled({x}).to_vector<float>() == std::vector<float>{0.8F, 3.2F});
#include <recipes/own_kernels_a_gradient_of_your_own_2.inc>
  CHECK(rounded.to_vector<float>() == std::vector<float>{0, 2});
  CHECK(gradients(sum(rounded * rounded), {x})[0].to_vector<float>() == std::vector<float>{0, 4});
#include <recipes/own_kernels_a_gradient_of_your_own_3.inc>
  CHECK(check.passed);
}

void own_opencl_objects() {
  const DefaultDevice kept;
  const Device here = Device::current();
  const auto context = opencl::context(here);
  const auto device_id = opencl::device_id(here);
  const auto queue = opencl::queue(here);
  const Tensor values = ones({1, 6});
  const auto buffer = opencl::buffer(values);
  here.finish();
  const auto memory = buffer.memory;
  REQUIRE(buffer.offset == 0);
  nn::Sequential model{nn::Linear(6, 3)};
#include <recipes/own_kernels_a_program_s_own_opencl_objects_1.inc>
  CHECK(result.memory != nullptr);
  CHECK(input.to_vector<float>() == std::vector<float>(6, 1.0F));
  device.finish();
}

void generating_text() {
  std::string text;
  for (int k = 0; k < 100; ++k) text += "ROMEO: But soft " + std::to_string(k) + '\n';
  const RecipeWorkplace here;
  (void)here.folder().write("shakespeare.txt", text);
#include <recipes/text_in_c_1.inc>
  CHECK(here.printed().size() >= 500);
#include <recipes/text_tokens_1.inc>
  CHECK(here.printed().ends_with("But soft\n"));
  CHECK(pieces.classes == tokenizer.size());
}

void decoding_a_transformer() {
  constexpr std::int64_t width = 8, words = 10, longest = 6, beams = 3, begin = 1, end = 2;
  nn::Transformer model{width, 2, 1, 1, {.dim_feedforward = 16, .batch_first = true}};
  nn::Embedding source{words, width}, target{words, width};
  nn::PositionalEncoding positions{width, {.dropout = 0}};
  nn::Linear head{width, words};
  const Tensor from = Tensor::from(std::vector<std::int64_t>{3, 4, 5, 6, 7, 8}, {2, 3});
  const RecipeWorkplace here;
#include <recipes/text_decoding_a_transformer_1.inc>
  CHECK(best.tokens.size(0) == 2);
  CHECK(caches.front().target.length >= 1);
}

Tensor my_operation(const Tensor& a, const Tensor& b) { return a * b; }

void looking_for_a_fault() {
  Net model;
  const Tensor x = randn({4, 6}), labels = some_labels(4);
  {
    auto optimizer = optim::Adam{model};
    const auto loss = [](const Tensor& y) { return sum(log(y - y)) * 0.0; };
    const auto recipe = [&] {
#include <recipes/debugging_1.inc>
    };
    CHECK_THROWS_WITH(recipe(), Catch::StartsWith("detect_anomaly: "));
  }
  const Tensor loss = cross_entropy(model(x), labels), w = randn({4, 6});
  const RecipeWorkplace here;
#include <recipes/debugging_names_1.inc>
  CHECK(check.passed);
  CHECK_FALSE(here.printed().empty());
}

void what_is_computed_once() {
  Net model;
  const Tensor images = randn({4, 6}), labels = some_labels(4);
  auto optimizer = optim::Adam{model};
  for (int k = 0; k < 2; ++k) {
#include <recipes/tensors_what_is_computed_once_1.inc>
  }
  CHECK(optimizer.steps() == 2);
  for (int k = 0; k < 2; ++k) {
    const Tensor& x = images;
#include <recipes/tensors_what_is_computed_once_2.inc>
  }
  CHECK(optimizer.steps() == 4);
}

void a_graph_that_is_built_once() {
  Net model;
  const Tensor images = randn({4, 6}), labels = some_labels(4);
  auto optimizer = optim::Adam{model};
#include <recipes/compile_1.inc>
  CHECK(loss > 0);
  CHECK(infer(images).shape() == Shape{4, 3});
}

}  // namespace

TEST_CASE("the C++ of docs/guide works as it stands there") {
  const std::vector<std::pair<std::set<std::string>, void (*)()>> all{
      {{"install_use_clnet_in_a_program_1"}, first_program},
      {{"quick_start_a_complete_program_1", "quick_start_a_loop_over_a_data_set_1", "quick_start_one_call_1"}, quick_start},
      {{"tensors_1", "tensors_values_never_change_1", "tensors_long_loops_1", "tensors_gradients_1"}, tensors},
      {{"devices_1", "devices_memory_1", "devices_where_memory_goes_1", "devices_waiting_and_timing_1"}, devices_and_memory},
      {{"dtypes_1"}, dtypes},
      {{"dtypes_f64_1"}, doubles},
      {{"data_1", "data_normalization_1", "data_augmentation_1", "data_batches_of_your_own_1"}, samples},
      {{"data_parts_1", "data_rare_classes_1"}, parts_and_rare_classes},
      {{"tables_csv_files_1", "tables_csv_files_2", "tables_normalization_1", "tables_numpy_1"}, tables},
      {{"audio_1", "audio_spectrograms_1", "audio_files_1"}, sounds},
      {{"own_datasets_1", "own_datasets_2", "own_datasets_workers_1", "own_datasets_several_inputs_1",
        "own_datasets_different_lengths_1", "own_datasets_streams_1"},
       datasets_of_ones_own},
      {{"images_in_c_1", "images_predictions_1", "images_mixtures_and_boxes_1"}, image_files},
      {{"onnx_in_c_1", "onnx_in_c_2"}, onnx_files},
      {{"onnx_fine_tuning_1"}, onnx_fine_tuning},
      {{"onnx_saving_1"}, saved_onnx_files},
      {{"models_1", "models_a_module_of_your_own_1"}, modules},
      {{"training_1", "training_evaluation_1", "training_hooks_1", "training_hooks_2", "training_several_inputs_and_outputs_1"},
       training_by_one_call},
      {{"metrics_1", "metrics_in_loops_of_your_own_1", "metrics_evaluation_1", "metrics_metrics_of_your_own_1",
        "metrics_metrics_of_your_own_2"},
       measuring},
      {{"training_loops_1", "training_loops_a_second_network_that_follows_1", "training_loops_gradients_by_hand_1",
        "training_loops_schedules_1", "training_loops_more_values_with_the_step_1"},
       loops},
      {{"saving_1", "saving_pytorch_s_own_files_1", "saving_names_that_differ_1", "saving_checkpoints_1",
        "saving_your_own_checkpoints_1"},
       saving},
      {{"speed_first_runs_1"}, first_runs},
      {{"finetuning_freezing_a_part_1", "finetuning_freezing_a_part_2"}, freezing_a_part},
      {{"finetuning_1"}, replacing_a_head},
      {{"models_parts_of_a_model_1", "models_lists_and_dictionaries_1"}, parts_of_a_model},
      {{"finetuning_features_of_a_layer_and_hooks_1"}, features_of_a_layer_and_hooks},
      {{"models_shared_weights_1"}, tying_weights},
      {{"dtypes_mixed_precision_1"}, mixed_precision},
      {{"training_loops_averages_of_weights_1"}, averages_of_weights},
      {{"training_loops_accumulating_gradients_1"}, accumulating_gradients},
      {{"data_labels_and_targets_1"}, numbers_and_pixels},
      {{"training_losses_1"}, losses_as_layers},
      {{"training_loops_states_between_steps_1"}, states_that_are_carried_on},
      {{"training_loops_two_optimizers_several_losses_1"}, two_optimizers},
      {{"optimizers_1", "optimizers_which_optimizers_there_are_1", "optimizers_clipping_1", "optimizers_find_a_learning_rate_1"},
       groups},
      {{"optimizers_schedules_1"}, cycles_of_momenta},
      {{"several_devices_1", "several_devices_several_models_1", "several_devices_a_share_of_each_batch_per_device_1",
        "several_devices_a_share_of_each_batch_per_device_2", "several_devices_a_share_of_each_batch_per_device_3"},
       a_model_over_several_devices},
      {{"clusters_a_loop_of_your_own_1", "clusters_a_loop_of_your_own_2"}, ranks_of_a_job},
      {{"clusters_data_on_one_host_1"}, data_of_one_rank},
      {{"optimizers_a_rule_of_your_own_1"}, an_optimizer_of_your_own},
      {{"own_kernels_1", "own_kernels_a_gradient_of_your_own_1", "own_kernels_a_gradient_of_your_own_2",
        "own_kernels_a_gradient_of_your_own_3"},
       own_kernels},
      {{"own_kernels_a_program_s_own_opencl_objects_1"}, own_opencl_objects},
      {{"text_in_c_1", "text_tokens_1"}, generating_text},
      {{"text_decoding_a_transformer_1"}, decoding_a_transformer},
      {{"debugging_1", "debugging_names_1"}, looking_for_a_fault},
      {{"tensors_what_is_computed_once_1", "tensors_what_is_computed_once_2"}, what_is_computed_once},
      {{"compile_1"}, a_graph_that_is_built_once}};
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
