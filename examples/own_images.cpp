// Own images by fine-tuning: own_images [FOLDER [EPOCHS [WEIGHTS]]]. FOLDER has a folder of PNG, JPEG or BMP files for each
// class. A network that was trained on other images is frozen and gets a new head, which alone learns the classes. WEIGHTS is a
// file of torchvision's resnet18; without it a small network learns Fashion-MNIST first. Without a folder it draws shapes and
// checks that it knows them apart.
#include <clnet/clnet.h>

#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "arguments.h"
#include "picture.h"

using namespace clnet;

struct Pretrained {
  std::unique_ptr<nn::Module> model;
  std::string body, head;   ///< the names of its last layers
  std::int64_t features;    ///< the inputs of the head
  data::ImageOptions size;  ///< of its images
};

Pretrained resnet(const std::filesystem::path& weights) {
  auto model = models::make("resnet18", {3, 224, 224}, 1000);
  model->load_state_dict(io::load_safetensors(weights).tensors);
  return {std::move(model), "layer4", "fc", 512, {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}}};
}

Pretrained small_network() {
  auto model = std::make_unique<nn::Sequential>(nn::Conv2d(1, 16, 3, {.padding = 1}), relu, nn::MaxPool2d(2),  //
                                                nn::Conv2d(16, 32, 3, {.padding = 1}), relu, nn::MaxPool2d(2),
                                                nn::Conv2d(32, 64, 3, {.padding = 1}), relu, nn::AdaptiveMaxPool2d(1),
                                                nn::Flatten(), nn::Linear(64, 10));
  const auto clothes = data::fashion_mnist(data::Split::train);
  train::fit(*model, clothes, {.steps = 150, .batch_size = 64, .optimizer = optim::Adam(*model, 2e-3)});
  return {std::move(model), "6", "10", 64, {.height = 28, .width = 28, .channels = 1}};
}

/// A folder of drawings, which are the same each time.
std::filesystem::path draw_shapes() {
  std::mt19937 random(1);
  const std::filesystem::path folder = "own_images.shapes";
  for (std::size_t shape = 0; shape < Drawing::shapes.size(); ++shape) {
    const auto files = folder / Drawing::shapes[shape];
    std::filesystem::create_directories(files);
    for (int i = 0; i < 100; ++i) {
      Drawing drawing(28, random);
      drawing.add(shape, 0.25, 0.45, random);
      write_bmp(files / (std::to_string(i) + ".bmp"), drawing.image);
    }
  }
  return folder;
}

int main(int argc, char** argv) try {
  const auto epochs = number_argument(argc, argv, 2, "EPOCHS", 40);
  const auto folder = argc > 1 ? std::filesystem::path(argv[1]) : draw_shapes();
  manual_seed(1);
  // The files are looked at before anything is trained.
  data::image_folder(folder);
  auto [model, body, head, features, size] = argc > 3 ? resnet(argv[3]) : small_network();

  const auto [rest, test] = data::image_folder(folder, size).split(0.25);
  auto changes = size;
  changes.flip = true;
  changes.rotate = 20;
  const auto training = rest.with(changes);
  const auto& names = test.class_names();
  model->freeze();
  model->replace(head, nn::Linear(features, static_cast<std::int64_t>(names.size())));
  model->inference();
  train::fit(*model, training,
             {.epochs = epochs,
              .batch_size = 16,
              .optimizer = optim::Adam(*model, 2e-3),
              .workers = 2,
              .hooks = {train::unfreezing({{epochs / 2 + 1, body}})}});

  const auto confusion = train::confusion_matrix(*model, test);
  std::cout << "rows: the true class, columns: what it was taken for\n";
  std::int64_t all = 0, right = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::int64_t of_class = 0;
    std::cout << std::setw(12) << names[i];
    for (auto count : confusion[i]) {
      std::cout << std::setw(5) << count;
      of_class += count;
    }
    std::cout << "   accuracy " << static_cast<double>(confusion[i][i]) / static_cast<double>(of_class) << '\n';
    all += of_class;
    right += confusion[i][i];
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(all);
  std::cout << "accuracy " << accuracy << " of " << all << " test images\n";
  return argc > 1 || accuracy > 0.85 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "own_images: " << error.what() << '\n';
  return 1;
}
