// Layers of convolution, pooling, padding and normalisation: they are the functions with the layer's parameters and options.
#include <catch2/catch.hpp>
#include <cmath>
#include <type_traits>

#include "clnet/clnet.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Contains;

namespace {

void same(const std::string& what, const Tensor& got, const Tensor& want) { compare(what, to_array(got), to_array(want), 1e-6); }

Tensor parameter(const nn::Module& module, const std::string& name) {
  for (const auto& [known, value] : module.parameters())
    if (known == name) return value;
  throw Error("no parameter " + name);
}

}  // namespace

TEST_CASE("layers of convolution of lines and volumes") {
  const auto line = make_tensor({2, 4, 9}), volume = make_tensor({2, 4, 3, 5, 4});
  nn::Conv1d conv1{4, 6, 3, {.stride = 2, .padding = {1, 2}, .groups = 2}};
  CHECK(conv1.kind() == "Conv1d(4, 6, kernel_size=3, stride=2, padding=(1, 2), groups=2)");
  CHECK(parameter(conv1, "weight").shape() == Shape{6, 2, 3});
  same("Conv1d", conv1(line),
       conv1d(line, parameter(conv1, "weight"), parameter(conv1, "bias"), {.stride = 2, .padding = {1, 2}, .groups = 2}));
  nn::Conv3d conv3{4, 3, {2, 3, 3}, {.padding = {0, 1, 1}, .bias = false}};
  CHECK(conv3.kind() == "Conv3d(4, 3, kernel_size=(2, 3, 3), padding=(0, 1, 1), bias=false)");
  CHECK(conv3.parameters().size() == 1);
  same("Conv3d", conv3(volume), conv3d(volume, parameter(conv3, "weight"), {}, {.padding = {0, 1, 1}}));
  nn::ConvTranspose1d back1{4, 2, 3, {.stride = 2, .output_padding = 1}};
  same("ConvTranspose1d", back1(line),
       conv_transpose1d(line, parameter(back1, "weight"), parameter(back1, "bias"), {.stride = 2, .output_padding = 1}));
  nn::ConvTranspose3d back3{4, 2, 2, {.stride = 2, .groups = 2}};
  CHECK(parameter(back3, "weight").shape() == Shape{4, 1, 2, 2, 2});
  same("ConvTranspose3d", back3(volume),
       conv_transpose3d(volume, parameter(back3, "weight"), parameter(back3, "bias"), {.stride = 2, .groups = 2}));
  CHECK_THROWS_WITH((nn::Conv3d{4, 3, 1, {.groups = 2}}), Contains("must be divisible by groups 2"));
}

TEST_CASE("layers cannot be made without their sizes, and name a size that is none") {
  static_assert(!std::is_default_constructible_v<nn::Conv2d> && !std::is_constructible_v<nn::Conv2d, int, int>);
  static_assert(!std::is_default_constructible_v<nn::LSTM> && !std::is_constructible_v<nn::LSTM, int>);
  CHECK_THROWS_WITH(nn::LayerNorm({}), Contains("LayerNorm: normalized_shape [0] must have extents of at least 1"));
  CHECK_THROWS_WITH(nn::RMSNorm(0), Contains("RMSNorm: normalized_shape [0] must have"));
  CHECK_THROWS_WITH((nn::Conv2d{3, 4, 0}), "Conv2d: kernel_size must be at least 1, not 0");
  CHECK_THROWS_WITH((nn::Conv3d{3, 0, 2}), "Conv3d: out_channels must be at least 1, not 0");
  CHECK_THROWS_WITH((nn::Conv1d{-1, 4, 3}), "Conv1d: in_channels must be at least 1, not -1");
  CHECK_THROWS_WITH((nn::ConvTranspose1d{3, 4, 0}), "ConvTranspose1d: kernel_size must be at least 1, not 0");
  CHECK_THROWS_WITH((nn::ConvTranspose2d{0, 0, 0}), "ConvTranspose2d: in_channels must be at least 1, not 0");
  CHECK_THROWS_WITH((nn::ConvTranspose3d{3, 4, {1, 0, 1}}), "ConvTranspose3d: kernel_size must be at least 1, not 0");
  CHECK_THROWS_WITH((nn::Conv2d{3, 4, {3, -1}}), "Conv2d: kernel_size must be at least 1, not -1");
}

TEST_CASE("a stride may stand behind the kernel's size, and {} is no number") {
  const auto line = make_tensor({2, 4, 9}), image = make_tensor({2, 3, 7, 8}), volume = make_tensor({1, 2, 4, 5, 6});
  same("1d", nn::MaxPool1d(3, 2)(line), max_pool1d(line, 3, {.stride = 2}));
  same("1d, none", nn::MaxPool1d(3, {})(line), max_pool1d(line, 3));
  same("2d", nn::MaxPool2d(3, 2, {.padding = 1})(image), max_pool2d(image, 3, {.stride = 2, .padding = 1}));
  same("2d by axis", nn::MaxPool2d({3, 2}, {2, 1})(image), max_pool2d(image, {3, 2}, {.stride = Pair{2, 1}}));
  same("2d, none", nn::AvgPool2d(3, {})(image), avg_pool2d(image, 3));
  same("2d, one in braces", nn::AvgPool2d(3, {2})(image), avg_pool2d(image, 3, {.stride = 2}));
  same("3d by axis", nn::AvgPool3d(2, {1, 2, 2})(volume), avg_pool3d(volume, 2, {.stride = Triple{1, 2, 2}}));
  CHECK_THROWS_WITH(nn::MaxPool2d(3, {1, 2, 3}), "MaxPool2d: stride has 3 numbers, and needs 1 or 2");
  CHECK_THROWS_WITH(nn::MaxPool2d(3, 2, {.stride = 2}), Contains("MaxPool2d: stride is given twice"));
  CHECK(nn::LSTM(8, 16, {}).kind() == nn::LSTM(8, 16).kind());
  // Default options, and no rate of 0.
  const nn::Linear layer(2, 2);
  CHECK(optim::Adam(layer, {}).learning_rate() == optim::AdamOptions{}.learning_rate);
  CHECK(optim::SGD(layer, {}).learning_rate() == optim::SGDOptions{}.learning_rate);
  CHECK(optim::SGD(layer, 1).learning_rate() == 1);
}

TEST_CASE("initial values of convolutions are within 1 / sqrt(fan_in)") {
  manual_seed(3);
  const nn::Conv3d conv{6, 8, 3, {.groups = 2}};
  const auto bound = 1 / std::sqrt(81.0);
  for (const auto* name : {"weight", "bias"}) {
    double largest = 0;
    for (float value : parameter(conv, name).to_vector<float>()) largest = std::max<double>(largest, std::abs(value));
    CHECK(largest <= bound);
    CHECK(largest > bound / 2);
  }
}

TEST_CASE("padding modes of convolutions pad before they convolve") {
  const auto image = make_tensor({1, 2, 5, 6});
  const std::pair<PadMode, const char*> modes[] = {
      {PadMode::reflect, "reflect"}, {PadMode::edge, "replicate"}, {PadMode::circular, "circular"}};
  for (const auto& [mode, name] : modes) {
    nn::Conv2d conv{2, 3, 3, {.padding = {1, 2}, .padding_mode = mode}};
    CHECK_THAT(conv.kind(), Contains(std::string("padding_mode=") + name));
    same(name, conv(image),
         conv2d(pad(image, {0, 0, 1, 2}, {0, 0, 1, 2}, 0, mode), parameter(conv, "weight"), parameter(conv, "bias")));
  }
  nn::Conv1d line{2, 1, 3, {.padding = 1, .padding_mode = PadMode::circular}};
  CHECK(line(make_tensor({1, 2, 4})).shape() == Shape{1, 1, 4});
  nn::Conv3d volume{2, 1, 3, {.padding = 1, .padding_mode = PadMode::reflect}};
  CHECK(volume(make_tensor({1, 2, 3, 4, 5})).shape() == Shape{1, 1, 3, 4, 5});
}

TEST_CASE("layers of pooling") {
  const auto line = make_tensor({2, 3, 9}), image = make_tensor({2, 3, 6, 7}), volume = make_tensor({2, 3, 4, 5, 6});
  same("MaxPool1d", nn::MaxPool1d{3, {.stride = 2, .padding = 1}}(line), max_pool1d(line, 3, {.stride = 2, .padding = 1}));
  same("MaxPool3d", nn::MaxPool3d{2, {.ceil_mode = true}}(volume), max_pool3d(volume, 2, {.ceil_mode = true}));
  same("AvgPool1d", nn::AvgPool1d{2}(line), avg_pool1d(line, 2));
  same("AvgPool3d", nn::AvgPool3d{{2, 1, 3}}(volume), avg_pool3d(volume, {2, 1, 3}));
  same("LPPool1d", nn::LPPool1d{2, 3, 1}(line), lp_pool1d(line, 2, 3, 1));
  same("LPPool2d", nn::LPPool2d{2, {2, 3}}(image), lp_pool2d(image, 2, {2, 3}));
  same("LPPool3d", nn::LPPool3d{1, 2}(volume), lp_pool3d(volume, 1, 2));
  same("AdaptiveAvgPool1d", nn::AdaptiveAvgPool1d{4}(line), adaptive_avg_pool1d(line, 4));
  same("AdaptiveAvgPool3d", nn::AdaptiveAvgPool3d{2}(volume), adaptive_avg_pool3d(volume, 2));
  same("AdaptiveMaxPool1d", nn::AdaptiveMaxPool1d{4}(line), adaptive_max_pool1d(line, 4));
  same("AdaptiveMaxPool3d", nn::AdaptiveMaxPool3d{{1, 2, 3}}(volume), adaptive_max_pool3d(volume, {1, 2, 3}));
  CHECK(nn::MaxPool1d{3}.kind() == "MaxPool1d(kernel_size=3, stride=3, padding=0)");
  CHECK(nn::MaxPool2d{2}.kind() == "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))");
  CHECK(nn::AvgPool3d{2}.kind() == "AvgPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0))");
}

TEST_CASE("layers of padding and pixels") {
  const auto line = make_tensor({2, 3, 4}), image = make_tensor({2, 4, 4, 5}), volume = make_tensor({2, 1, 3, 4, 5});
  same("ZeroPad1d", nn::ZeroPad1d({1, 2})(line), pad(line, {0, 0, 1}, {0, 0, 2}));
  same("ZeroPad2d", nn::ZeroPad2d({1, -1, 2, 0})(image), pad(image, {0, 0, 1, -1}, {0, 0, 2, 0}));
  same("ConstantPad3d", nn::ConstantPad3d(1, 7)(volume), pad(volume, {0, 0, 1, 1, 1}, {0, 0, 1, 1, 1}, 7));
  same("ReflectionPad2d", nn::ReflectionPad2d({1, 2})(image), pad(image, {0, 0, 1, 2}, {0, 0, 1, 2}, 0, PadMode::reflect));
  same("ReplicationPad3d", nn::ReplicationPad3d(2)(volume), pad(volume, {0, 0, 2, 2, 2}, {0, 0, 2, 2, 2}, 0, PadMode::edge));
  same("CircularPad1d", nn::CircularPad1d({4, 1})(line), pad(line, {0, 0, 4}, {0, 0, 1}, 0, PadMode::circular));
  // A sample without a batch.
  CHECK(nn::CircularPad2d(1)(make_tensor({3, 4, 5})).shape() == Shape{3, 6, 7});
  CHECK_THROWS_AS(nn::ReflectionPad1d(4)(line), ShapeError);
  CHECK_THROWS_WITH(nn::ZeroPad3d(1)(ones({2, 2})), "pad: f32[2, 2] has fewer dimensions than the padding (1, 1, 1)");
  CHECK(nn::ZeroPad2d({1, 2}).kind() == "ZeroPad2d((1, 2))");
  same("PixelShuffle", nn::PixelShuffle(2)(image), pixel_shuffle(image, 2));
  same("PixelUnshuffle", nn::PixelUnshuffle(2)(make_tensor({1, 2, 4, 6})), pixel_unshuffle(make_tensor({1, 2, 4, 6}), 2));
}

TEST_CASE("layers of normalisation of lines, images and volumes") {
  const auto line = make_tensor({2, 4, 9}), image = make_tensor({2, 4, 3, 5}), volume = make_tensor({2, 4, 3, 2, 5});
  nn::BatchNorm3d batch{4};
  const auto statistics = batch_norm_training(volume, parameter(batch, "weight"), parameter(batch, "bias"));
  same("BatchNorm3d", batch(volume), statistics.y);
  batch.inference();
  same("BatchNorm3d, running", batch(volume),
       batch_norm_inference(volume, statistics.mean * 0.1, statistics.var * 0.1 + 0.9, parameter(batch, "weight"),
                            parameter(batch, "bias")));
  CHECK_THROWS_WITH(batch(image), "BatchNorm3d: a layer for 4 channels got f32[2, 4, 3, 5]");
  same("InstanceNorm1d", nn::InstanceNorm1d{4}(line), instance_norm(line, {}, {}));
  same("InstanceNorm3d", nn::InstanceNorm3d{4, {.eps = 0.1}}(volume), instance_norm(volume, {}, {}, 0.1));
  nn::InstanceNorm2d instance{4, {.affine = true}};
  CHECK(instance.parameters().size() == 2);
  same("InstanceNorm2d", instance(image), instance_norm(image, ones({4}), zeros({4})));
  CHECK_THROWS_AS(instance(line), ShapeError);
  CHECK_THROWS_AS(instance(ones({2, 4, 1, 1})), ShapeError);
  same("InstanceNorm2d of one sample", instance(squeeze(slice(image, 0, 1), 0)),
       squeeze(instance_norm(slice(image, 0, 1), ones({4}), zeros({4})), 0));
  // Running statistics: torch.nn.InstanceNorm1d(2, affine=True, momentum=0.3, track_running_stats=True).
  const auto pairs = Tensor::from({1.F, 2.F, 3.F, 6.F, -1.F, 0.F, 1.F, 0.F, 4.F, 0.F, 2.F, 2.F}, {2, 2, 3});
  nn::InstanceNorm1d tracking{2, {.momentum = 0.3, .affine = true, .track_running_stats = true}};
  tracking.parameter("weight").set(Tensor::from({2.F, 3.F}));
  tracking.parameter("bias").set(Tensor::from({0.5F, -1.F}));
  same("InstanceNorm1d in training", tracking(pairs), instance_norm(pairs, Tensor::from({2.F, 3.F}), Tensor::from({0.5F, -1.F})));
  const auto buffer = [&](const char* name) { return tracking.parameter(name).value().to_vector<float>(); };
  const auto mean = buffer("running_mean"), var = buffer("running_var");
  CHECK(mean[0] == Approx(0.55));
  CHECK(mean[1] == Approx(0.45));
  CHECK(var[0] == Approx(1.5));
  CHECK(var[1] == Approx(3.05));
  CHECK(tracking.state_dict().size() == 5);
  tracking.inference();
  same("InstanceNorm1d, running", tracking(pairs),
       batch_norm_inference(pairs, Tensor::from(mean), Tensor::from(var), Tensor::from({2.F, 3.F}), Tensor::from({0.5F, -1.F})));
  CHECK(tracking(zeros({0, 2, 3})).shape() == Shape{0, 2, 3});
  CHECK(nn::LayerNorm{5, {.bias = false}}.parameters().size() == 1);
  nn::GroupNorm group{2, 4, {.eps = 1e-3}};
  CHECK(group.kind() == "GroupNorm(2, 4)");
  same("GroupNorm", group(line), group_norm(line, 2, ones({4}), zeros({4}), 1e-3));
  CHECK_THROWS_AS((nn::GroupNorm{3, 4}), Error);
  CHECK_THROWS_AS(group(ones({2, 6, 3})), ShapeError);
  nn::RMSNorm rms{5, {.eps = 1e-4}};
  CHECK(rms.parameters().size() == 1);
  same("RMSNorm", rms(image), rms_norm(image, 1, ones({5}), 1e-4));
  CHECK_THROWS_AS(rms(line), ShapeError);
  same("RMSNorm without eps", nn::RMSNorm{5, {.elementwise_affine = false}}(image), rms_norm(image, 1, {}, 0x1p-23));
  same("LocalResponseNorm", nn::LocalResponseNorm{3, {.alpha = 0.5}}(image), local_response_norm(image, 3, 0.5));
}
