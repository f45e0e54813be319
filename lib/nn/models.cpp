#include "clnet/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "clnet/error.h"

namespace clnet::models {

namespace {

using nn::Module;

/// The number of features that `features` makes of one image; its ShapeErrors say which layer the image is too small for.
std::int64_t feature_count(Module& features, const Shape& image) {
  return features(zeros({1, image[0], image[1], image[2]})).numel();
}

std::unique_ptr<Module> mlp(const Shape& image, std::int64_t classes) {
  return std::make_unique<nn::Sequential>(nn::Flatten{}, nn::Linear{image.numel(), 128}, relu, nn::Linear{128, classes});
}

std::unique_ptr<Module> keras_cnn(const Shape& image, std::int64_t classes) {
  auto net = std::make_unique<nn::Sequential>(nn::Conv2d{image[0], 32, 3}, relu, nn::MaxPool2d{2}, nn::Flatten{});
  net->append(nn::Linear{feature_count(*net, image), classes});
  return net;
}

std::unique_ptr<Module> cnn(const Shape& image, std::int64_t classes) {
  auto net = std::make_unique<nn::Sequential>(nn::Conv2d{image[0], 32, 3, {.padding = 1}}, relu, nn::MaxPool2d{2},
                                              nn::Conv2d{32, 64, 3, {.padding = 1}}, relu, nn::MaxPool2d{2}, nn::Flatten{});
  net->append(nn::Linear{feature_count(*net, image), 128});
  net->append(relu);
  net->append(nn::Linear{128, classes});
  return net;
}

std::unique_ptr<Module> lenet5(const Shape& image, std::int64_t classes) {
  auto net = std::make_unique<nn::Sequential>(nn::Conv2d{image[0], 6, 5, {.padding = 2}}, nn::Tanh(), nn::AvgPool2d{2},
                                              nn::Conv2d{6, 16, 5}, nn::Tanh(), nn::AvgPool2d{2}, nn::Flatten{});
  net->append(nn::Linear{feature_count(*net, image), 120});
  net->append(nn::Tanh());
  net->append(nn::Linear{120, 84});
  net->append(nn::Tanh());
  net->append(nn::Linear{84, classes});
  return net;
}

/// What a residual block's input goes through where the result has another shape.
nn::Sequential shortcut(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return nn::Sequential{nn::Conv2d{in, out, 1, {.stride = stride, .bias = false}}, nn::BatchNorm2d{out}};
}

/// Two 3x3 convolutions with batch normalisation around a shortcut (He et al. 2015), named as torchvision names them.
struct BasicBlock : Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential downsample;
  bool projects;

  BasicBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1{in, out, 3, {.stride = stride, .padding = 1, .bias = false}},
        conv2{out, out, 3, {.padding = 1, .bias = false}},
        bn1{out},
        bn2{out},
        projects(stride != 1 || in != out) {
    add("conv1", conv1);
    add("bn1", bn1);
    add("conv2", conv2);
    add("bn2", bn2);
    if (projects) add("downsample", downsample = shortcut(in, out, stride));
  }

  Tensor forward(const Tensor& x) override {
    const Tensor residual = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(residual + (projects ? downsample(x) : x));
  }
  std::string kind() const override { return "BasicBlock"; }
};

/// A 3x3 convolution between two of 1x1 that narrow and widen by 4, around a shortcut (He et al. 2015, with torchvision's
/// stride).
struct Bottleneck : Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm2d bn1, bn2, bn3;
  nn::Sequential downsample;
  bool projects;

  Bottleneck(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1{in, out / 4, 1, {.bias = false}},
        conv2{out / 4, out / 4, 3, {.stride = stride, .padding = 1, .bias = false}},
        conv3{out / 4, out, 1, {.bias = false}},
        bn1{out / 4},
        bn2{out / 4},
        bn3{out},
        projects(stride != 1 || in != out) {
    add("conv1", conv1);
    add("bn1", bn1);
    add("conv2", conv2);
    add("bn2", bn2);
    add("conv3", conv3);
    add("bn3", bn3);
    if (projects) add("downsample", downsample = shortcut(in, out, stride));
  }

  Tensor forward(const Tensor& x) override {
    const Tensor residual = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
    return relu(residual + (projects ? downsample(x) : x));
  }
  std::string kind() const override { return "Bottleneck"; }
};

/// He initialisation of convolutions by fan-out, as torchvision's: what these networks are trained from.
void initialise_by_fan_out(Module& module) {
  for (auto& [name, parameter] : module.parameters()) {
    const auto& shape = parameter.value().shape();
    if (shape.rank() != 4) continue;
    const auto fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
    parameter.set(nn::init::normal(shape, 0, std::sqrt(2 / fan_out)));
  }
}

/// A residual network's first layers.
struct Stem {
  std::int64_t kernel, stride;
  bool pool;
};

struct ResNet : Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<nn::Sequential> stages;
  nn::Linear fc;
  bool pool;

  /// Stage s is `blocks[s]` of them, `widths[s]` wide at their ends, behind a stem of `first` channels.
  template <class Block>
  ResNet(std::type_identity<Block>, const Shape& image, std::int64_t classes, const Stem& stem, std::int64_t first,
         const std::vector<std::int64_t>& widths, const std::vector<int>& blocks)
      : conv1{image[0], first, stem.kernel, {.stride = stem.stride, .padding = stem.kernel / 2, .bias = false}},
        bn1{first},
        fc{widths.back(), classes},
        pool(stem.pool) {
    add("conv1", conv1);
    add("bn1", bn1);
    std::int64_t in = first;
    for (std::size_t s = 0; s < widths.size(); ++s) {
      auto& stage = stages.emplace_back();
      for (int b = 0; b < blocks[s]; ++b) {
        stage.append(Block{in, widths[s], s > 0 && b == 0 ? 2 : 1});
        in = widths[s];
      }
      add(fmt::format("layer{}", s + 1), stage);
    }
    add("fc", fc);
    initialise_by_fan_out(*this);
  }

  Tensor forward(const Tensor& x) override {
    Tensor y = relu(bn1(conv1(x)));
    if (pool) y = max_pool2d(y, 3, {.stride = 2, .padding = 1});
    for (auto& stage : stages) y = stage(y);
    return fc(flatten(adaptive_avg_pool2d(y, 1)));
  }
  std::string kind() const override { return "ResNet"; }
};

constexpr Stem small_images{3, 1, false}, large_images{7, 2, true};

std::unique_ptr<Module> resnet20(const Shape& image, std::int64_t classes) {
  return std::make_unique<ResNet>(std::type_identity<BasicBlock>{}, image, classes, small_images, 16,
                                  std::vector<std::int64_t>{16, 32, 64}, std::vector{3, 3, 3});
}

std::unique_ptr<Module> resnet18(const Shape& image, std::int64_t classes) {
  return std::make_unique<ResNet>(std::type_identity<BasicBlock>{}, image, classes, large_images, 64,
                                  std::vector<std::int64_t>{64, 128, 256, 512}, std::vector{2, 2, 2, 2});
}

std::unique_ptr<Module> resnet50(const Shape& image, std::int64_t classes) {
  return std::make_unique<ResNet>(std::type_identity<Bottleneck>{}, image, classes, large_images, 64,
                                  std::vector<std::int64_t>{256, 512, 1024, 2048}, std::vector{3, 4, 6, 3});
}

/// Simonyan and Zisserman 2014.
std::unique_ptr<Module> vgg16(const Shape& image, std::int64_t classes) {
  struct Vgg : Module {
    nn::Sequential features, classifier;
    Tensor forward(const Tensor& x) override { return classifier(flatten(adaptive_avg_pool2d(features(x), 7))); }
    std::string kind() const override { return "VGG"; }
    using Module::add;
  };
  auto net = std::make_unique<Vgg>();
  std::int64_t in = image[0];
  for (const auto& stage : {std::vector<std::int64_t>{64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}}) {
    for (const auto out : stage) {
      net->features.append(nn::Conv2d{in, out, 3, {.padding = 1}});
      net->features.append(relu);
      in = out;
    }
    net->features.append(nn::MaxPool2d{2});
  }
  (void)feature_count(net->features, image);
  constexpr std::int64_t wide = 4096;
  for (const auto features : {in * 49, wide}) {
    net->classifier.append(nn::Linear{features, wide});
    net->classifier.append(relu);
    net->classifier.append(nn::Dropout{});
  }
  net->classifier.append(nn::Linear{wide, classes});
  net->add("features", net->features);
  net->add("classifier", net->classifier);
  initialise_by_fan_out(*net);
  return net;
}

/// Conv, batch norm, relu6: what MobileNet is made of.
nn::Sequential conv_norm(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  return nn::Sequential{nn::Conv2d{in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}},
                        nn::BatchNorm2d{out}, relu6};
}

struct InvertedResidual : Module {
  nn::Sequential conv;
  bool residual;

  InvertedResidual(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t expansion)
      : residual(stride == 1 && in == out) {
    const auto wide = in * expansion;
    if (expansion != 1) conv.append(conv_norm(in, wide, 1, 1, 1));
    conv.append(conv_norm(wide, wide, 3, stride, wide));
    conv.append(nn::Conv2d{wide, out, 1, {.bias = false}});
    conv.append(nn::BatchNorm2d{out});
    add("conv", conv);
  }
  Tensor forward(const Tensor& x) override { return residual ? x + conv(x) : conv(x); }
  std::string kind() const override { return "InvertedResidual"; }
};

/// Sandler et al. 2018.
std::unique_ptr<Module> mobilenetv2(const Shape& image, std::int64_t classes) {
  struct Stage {
    std::int64_t expansion, width, blocks, stride;
  };
  struct MobileNet : Module {
    nn::Sequential features, classifier;
    Tensor forward(const Tensor& x) override { return classifier(flatten(adaptive_avg_pool2d(features(x), 1))); }
    std::string kind() const override { return "MobileNetV2"; }
    using Module::add;
  };
  auto net = std::make_unique<MobileNet>();
  std::int64_t in = 32;
  net->features.append(conv_norm(image[0], in, 3, 2, 1));
  for (const auto& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2}, Stage{6, 96, 3, 1},
                            Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      net->features.append(InvertedResidual{in, stage.width, block == 0 ? stage.stride : 1, stage.expansion});
      in = stage.width;
    }
  net->features.append(conv_norm(in, 1280, 1, 1, 1));
  net->classifier.append(nn::Dropout{0.2});
  net->classifier.append(nn::Linear{1280, classes});
  net->add("features", net->features);
  net->add("classifier", net->classifier);
  initialise_by_fan_out(*net);
  return net;
}

struct NamedModel {
  const char* name;
  std::unique_ptr<Module> (*make)(const Shape& image, std::int64_t classes);
};
constexpr NamedModel table[] = {{"mlp", mlp},           {"keras-cnn", keras_cnn}, {"cnn", cnn},
                                {"lenet5", lenet5},     {"resnet20", resnet20},   {"resnet18", resnet18},
                                {"resnet50", resnet50}, {"vgg16", vgg16},         {"mobilenetv2", mobilenetv2}};

struct NamedLanguageModel {
  const char* name;
  std::unique_ptr<LanguageModel> (*make)(std::int64_t length, std::int64_t classes);
};
constexpr NamedLanguageModel language_table[] = {
    {"char-lstm",
     [](std::int64_t, std::int64_t classes) -> std::unique_ptr<LanguageModel> { return std::make_unique<CharLstm>(classes); }},
    {"char-gpt", [](std::int64_t length, std::int64_t classes) -> std::unique_ptr<LanguageModel> {
       return std::make_unique<CharGpt>(classes, CharGptOptions{.context = length});
     }}};

[[noreturn]] void fail_unknown(std::string_view name) {
  throw Error(fmt::format("there is no model named '{}'; there are: {}", name, fmt::join(names(), ", ")));
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& entry : table) result.emplace_back(entry.name);
  for (const auto& entry : language_table) result.emplace_back(entry.name);
  return result;
}

bool is_language_model(std::string_view name) {
  return std::any_of(std::begin(language_table), std::end(language_table), [&](const auto& entry) { return name == entry.name; });
}

std::unique_ptr<LanguageModel> make_language_model(std::string_view name, std::int64_t length, std::int64_t classes) {
  for (const auto& entry : language_table)
    if (name == entry.name) return entry.make(length, classes);
  fail_unknown(name);
}

std::unique_ptr<nn::Module> make(std::string_view name, const Shape& sample, std::int64_t classes) {
  if (is_language_model(name)) {
    if (sample.rank() != 1)
      throw ShapeError(fmt::format("model {}: needs a text, samples of {{length}}, got {}", name, to_string(sample)));
    return make_language_model(name, sample[0], classes);
  }
  if (sample.rank() != 3)
    throw ShapeError(fmt::format("model {}: needs images {{channels, height, width}}, got {}", name, to_string(sample)));
  for (const auto& entry : table) {
    if (entry.name != name) continue;
    try {
      return entry.make(sample, classes);
    } catch (const ShapeError& error) {
      throw Error(fmt::format("model {} cannot take images of {}: {}", name, to_string(sample), error.what()));
    }
  }
  fail_unknown(name);
}

}  // namespace clnet::models
