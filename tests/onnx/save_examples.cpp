// The networks of the examples: saved, they compute the same. The programs' own classes are used, each program in a namespace.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "examples/arguments.h"
#include "examples/picture.h"
#include "examples/text.h"
#include "tests/onnx/save_checks.h"

// Warnings of the examples' own build.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
namespace clnet::test {

namespace of_char_gpt {
#define main char_gpt_main
#include "examples/char_gpt.cpp"
#undef main
}  // namespace of_char_gpt
namespace of_char_lstm {
#define main char_lstm_main
#include "examples/char_lstm.cpp"
#undef main
}  // namespace of_char_lstm
namespace of_own_module {
#define main own_module_main
#include "examples/own_module.cpp"
#undef main
}  // namespace of_own_module
namespace of_reinforcement {
#define main reinforcement_main
#include "examples/reinforcement.cpp"
#undef main
}  // namespace of_reinforcement
namespace of_segmentation {
#define main segmentation_main
#include "examples/segmentation.cpp"
#undef main
}  // namespace of_segmentation
namespace of_super_resolution {
#define main super_resolution_main
#include "examples/super_resolution.cpp"
#undef main
}  // namespace of_super_resolution
namespace of_translation {
#define main translation_main
#include "examples/translation.cpp"
#undef main
}  // namespace of_translation
namespace of_vae {
#define main vae_main
#include "examples/vae.cpp"
#undef main
}  // namespace of_vae

}  // namespace clnet::test
#pragma GCC diagnostic pop

using namespace clnet;
using namespace clnet::test;

namespace {

/// Statistics that are not those of the start.
template <class M>
M trained(M module) {
  for (auto& [name, value] : module.buffers())
    if (is_floating(value.dtype())) value.set(rand(value.value().shape()) + 0.5);
  module.inference();
  return module;
}

onnx::Function of_module(nn::Module& module) {
  return [&module](const std::vector<Tensor>& in) { return std::vector<Tensor>{module(in[0])}; };
}

}  // namespace

TEST_CASE("networks of the examples compute the same when saved", "[save]") {
  manual_seed(3);
  const Tensor characters = eval_of(randint(0, 20, {2, 16}));
  SECTION("char_gpt") {
    auto model = trained(of_char_gpt::Gpt(20));
    check_saved("example_char_gpt", of_module(model), {characters}, model, false);
  }
  SECTION("char_lstm") {
    auto model = trained(of_char_lstm::CharLstm(20));
    // Its next() cuts the state off from its graph, which makes no sense in a function without values.
    const onnx::Function next = [&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{model.head(model.lstm(model.characters(in[0])))};
    };
    check_saved("example_char_lstm", next, {characters}, model, true);
  }
  SECTION("own_module") {
    auto model =
        trained(nn::Sequential{nn::Linear(2, 32), of_own_module::Residual{32}, of_own_module::Residual{32}, nn::Linear(32, 2)});
    check_saved("example_own_module", of_module(model), {eval_of(randn({3, 2}))}, model, true);
  }
  SECTION("reinforcement") {
    auto model = trained(of_reinforcement::Policy());
    const onnx::Function both = [&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{model.actor(in[0]), model.critic(in[0])};
    };
    check_saved("example_reinforcement", both, {eval_of(randn({3, 4}))}, model, true);
  }
  SECTION("segmentation") {
    auto model = trained(of_segmentation::UNet(5, 8));
    check_saved("example_segmentation", of_module(model), {eval_of(randn({2, 3, 32, 32}))}, model, false);
  }
  SECTION("super_resolution") {
    auto model = trained(of_super_resolution::SuperResolution());
    check_saved("example_super_resolution", of_module(model), {eval_of(randn({2, 3, 16, 16}))}, model, false);
  }
  SECTION("translation") {
    auto model = trained(of_translation::Translator(30, 40));
    const onnx::Function translate = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{model(in[0], in[1])}; };
    check_saved("example_translation", translate,
                {eval_of(randint(1, 30, {2, of_translation::longest})), eval_of(randint(1, 40, {2, of_translation::longest}))},
                model, false);
  }
  SECTION("vae") {
    auto model = trained(of_vae::Autoencoder());
    const onnx::Function parts = [&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{model.encoder(in[0]), sigmoid(model.decoder(in[1]))};
    };
    check_saved("example_vae", parts, {eval_of(rand({2, of_vae::pixels})), eval_of(randn({2, of_vae::numbers}))}, model, true);
  }
  SECTION("fashion_mnist") {
    auto model = trained(nn::Sequential{nn::Conv2d(1, 32, 3, {.padding = 1}), relu, nn::MaxPool2d(2),
                                        nn::Conv2d(32, 64, 3, {.padding = 1}), relu, nn::MaxPool2d(2), nn::Flatten(),
                                        nn::Linear(64 * 7 * 7, 10)});
    check_saved("example_fashion_mnist", of_module(model), {eval_of(rand({2, 1, 28, 28}))}, model, true);
  }
  SECTION("gan") {
    const auto slope = [](const Tensor& x) { return leaky_relu(x, 0.2); };
    auto model = trained(nn::Sequential{nn::Linear(8, 64), relu, nn::Linear(64, 2), nn::Linear(2, 64), slope, nn::Linear(64, 1)});
    check_saved("example_gan", of_module(model), {eval_of(randn({2, 8}))}, model, true);
  }
  SECTION("tones") {
    auto model = trained(nn::Sequential{nn::Conv2d(1, 16, 3, {.padding = 1}), relu, nn::MaxPool2d(2),
                                        nn::Conv2d(16, 32, 3, {.padding = 1}), relu, nn::AdaptiveAvgPool2d({8, 2}), nn::Flatten(),
                                        nn::Linear(8 * 2 * 32, 4)});
    check_saved("example_tones", of_module(model), {eval_of(randn({2, 1, 64, 20}))}, model, false);
  }
  SECTION("own_images") {
    auto model = trained(nn::Sequential{nn::Conv2d(1, 16, 3, {.padding = 1}), relu, nn::MaxPool2d(2), nn::AdaptiveMaxPool2d(1),
                                        nn::Flatten(), nn::Linear(16, 10)});
    check_saved("example_own_images", of_module(model), {eval_of(randn({2, 1, 28, 28}))}, model, true);
  }
}
