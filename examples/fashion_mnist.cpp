// Learns to tell clothes apart: the loop written out. Needs the data of Debian's package dataset-fashion-mnist.
// Usage: fashion_mnist [EPOCHS]
#include <clnet/clnet.h>

#include <cstdlib>
#include <exception>
#include <iostream>

using namespace clnet;

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 5;
  const auto train = data::fashion_mnist(data::Split::train), test = data::fashion_mnist(data::Split::test);
  auto model = nn::Sequential{nn::Conv2d(1, 32, 3, {.padding = 1}),
                              relu,
                              nn::MaxPool2d(2),
                              nn::Conv2d(32, 64, 3, {.padding = 1}),
                              relu,
                              nn::MaxPool2d(2),
                              nn::Flatten(),
                              nn::Linear(64 * 7 * 7, 10)};
  optim::Adam adam(model, 1e-3);

  for (int epoch = 0; epoch < epochs; ++epoch) {
    const data::BatchOptions batches{.batch_size = 128, .shuffle = true, .epoch = static_cast<std::uint64_t>(epoch)};
    for (const auto& [images, labels] : data::batches(train, batches)) adam.step(cross_entropy(model(images), labels));
    std::cout << "epoch " << epoch + 1 << ": accuracy " << train::accuracy(model, test) << std::endl;
  }
  io::save_safetensors("fashion.safetensors", model.state_dict());
} catch (const std::exception& error) {
  std::cerr << "fashion_mnist: " << error.what() << '\n';
  return 1;
}
