// Segmentation by a U-Net (O. Ronneberger et al., 2015): segmentation [FOLDER CLASSES [EPOCHS]]. FOLDER/images has pictures and
// FOLDER/masks their masks, of the same names. It learns the class of each pixel and writes a picture, its mask and the
// prediction side by side to segmentation.bmp. Without a folder it draws shapes and checks that it finds them.
#include <clnet/clnet.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include "arguments.h"
#include "picture.h"

using namespace clnet;

nn::Sequential two_convolutions(std::int64_t in, std::int64_t out) {
  return nn::Sequential{nn::Conv2d(in, out, 3, {.padding = 1, .bias = false}),  nn::BatchNorm2d(out), relu,
                        nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out), relu};
}

/// Three levels. What a level has on the way down joins what comes up to it.
struct UNet : nn::Module {
  nn::Sequential down0, down1, bottom, up1, up0;
  nn::ConvTranspose2d larger1, larger0;
  nn::MaxPool2d pool{2};
  nn::Conv2d head;

  UNet(std::int64_t classes, std::int64_t width)
      : down0(two_convolutions(3, width)),
        down1(two_convolutions(width, width)),
        bottom(two_convolutions(width, width)),
        up1(two_convolutions(2 * width, width)),
        up0(two_convolutions(2 * width, width)),
        larger1(width, width, 2, {.stride = 2}),
        larger0(width, width, 2, {.stride = 2}),
        head(width, classes, 1) {
    add("down0", down0);
    add("down1", down1);
    add("bottom", bottom);
    add("larger1", larger1);
    add("up1", up1);
    add("larger0", larger0);
    add("up0", up0);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override {
    const auto level0 = down0(x), level1 = down1(pool(level0)), level2 = bottom(pool(level1));
    const auto back1 = up1(concat({level1, larger1(level2)}, 1));
    return head(up0(concat({level0, larger0(back1)}, 1)));
  }
};

/// Cross-entropy and the Dice loss: 1 - 2 |A and B| / (|A| + |B|), with probabilities as parts of a pixel, mean over classes.
/// Labels of -100, where a turned picture has no pixels, count in neither.
Tensor loss(const Tensor& logits, const Tensor& labels) {
  const auto counted = unsqueeze(labels >= 0.0, 1).to(Dtype::f32);
  const auto p = softmax(logits, 1) * counted, t = movedim(one_hot(labels, logits.size(1)), -1, 1);
  const auto dice = (2.0 * sum(p * t, {0, 2, 3}) + 1.0) / (sum(p + t, {0, 2, 3}) + 1.0);
  return cross_entropy(logits, labels) + 1.0 - mean(dice);
}

/// Folders of drawings and their masks, which are the same each time.
std::filesystem::path draw_shapes() {
  std::mt19937 random(1);
  const std::filesystem::path folder = "segmentation.shapes";
  std::filesystem::create_directories(folder / "images");
  std::filesystem::create_directories(folder / "masks");
  for (int i = 0; i < 160; ++i) {
    Drawing drawing(48, random);
    for (int shape = 0; shape < 2; ++shape) drawing.add(random() % 3, 0.2, 0.35, random);
    write_bmp(folder / "images" / (std::to_string(i) + ".bmp"), drawing.image);
    write_bmp(folder / "masks" / (std::to_string(i) + ".bmp"), drawing.mask);
  }
  return folder;
}

int main(int argc, char** argv) try {
  const bool own = argc > 1;
  const auto classes = own ? number_argument(argc, argv, 2, "CLASSES", 2) : 4;
  const auto epochs = number_argument(argc, argv, 3, "EPOCHS", own ? 50 : 16);
  const auto folder = own ? std::filesystem::path(argv[1]) : draw_shapes();
  const data::ImageOptions size{.height = own ? 128 : 48, .width = own ? 128 : 48};
  auto changes = size;
  changes.flip = true;
  changes.rotate = 15;
  const auto [rest, test] = data::image_pairs(folder / "images", folder / "masks", classes, size).split(0.2);
  const auto training = rest.with(changes);

  manual_seed(1);
  UNet model(classes, own ? 32 : 16);
  train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::Adam(model, 5e-3), .loss = loss};
  options.validation = test;
  options.metrics = {metrics::MeanIoU(classes)};
  options.workers = 2;
  options.hooks = {train::reduce_on_plateau({"miou", true}, {.factor = 0.5, .patience = 3}),
                   train::early_stopping({.monitor = {"miou", true}, .patience = 10})};  // ends with the best weights
  train::fit(model, training, options);

  const auto scores = train::evaluate(model, test, {.loss = loss, .metrics = {metrics::MeanIoU(classes)}});
  const auto& miou = scores.metrics[0];
  for (std::size_t i = 0; i < miou.parts.size(); ++i) std::cout << "class " << i << ": IoU " << miou.parts[i] << '\n';
  std::cout << "mean IoU " << miou.value << " of " << test.size() << " test pictures\n";

  const auto picture = test.get(0, 0);
  const auto x = picture[0].tensor(), mask = picture[1].tensor();
  model.inference();
  const auto drawn = [&](const Tensor& of_class) {
    return (unsqueeze(of_class, 0).to(Dtype::f32) / static_cast<double>(classes - 1)).expand(x.shape());
  };
  write_bmp("segmentation.bmp", concat({x, drawn(mask), drawn(model(unsqueeze(x, 0)).argmax(1)[0])}, 2));
  return own || miou.value > 0.7 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "segmentation: " << error.what() << '\n';
  return 1;
}
