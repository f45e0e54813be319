// A variational autoencoder (D. P. Kingma and M. Welling, 2013) of Fashion-MNIST: it learns to draw clothes from eight numbers,
// and writes some that it made up to vae.pgm.
#include <clnet/clnet.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <vector>

using namespace clnet;

constexpr std::int64_t pixels = 28 * 28, numbers = 8, hidden = 256;

struct Autoencoder : nn::Module {
  nn::Sequential encoder{nn::Linear(pixels, hidden), relu, nn::Linear(hidden, 2 * numbers)},
      decoder{nn::Linear(numbers, hidden), relu, nn::Linear(hidden, pixels)};
  Autoencoder() {
    add("encoder", encoder);
    add("decoder", decoder);
  }
  /// The negative evidence lower bound, in nats per image.
  Tensor loss(const Tensor& x) {
    const auto code = split(encoder(x), {numbers, numbers}, 1);
    const auto &mean_of_code = code[0], &log_variance = code[1];
    const auto z = mean_of_code + exp(0.5 * log_variance) * randn(mean_of_code.shape());
    const auto drawn = binary_cross_entropy_with_logits(decoder(z), x, Reduction::sum);
    const auto distance = -0.5 * sum(1 + log_variance - square(mean_of_code) - exp(log_variance));
    return (drawn + distance) / static_cast<double>(x.size(0));
  }
};

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? std::stoi(argv[1]) : 10;
  auto images = data::fashion_mnist(data::Split::train);
  manual_seed(1);
  Autoencoder model;
  optim::Adam optimizer(model, 2e-3);
  double first = 0, last = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Tensor sum_of_losses = zeros({});
    int batches = 0;
    for (const auto& [x, labels] :
         data::batches(images, {.batch_size = 100, .shuffle = true, .epoch = static_cast<std::uint64_t>(epoch)})) {
      sum_of_losses = sum_of_losses + optimizer.step(model.loss(flatten(x)));
      ++batches;
    }
    last = sum_of_losses.item() / batches;
    if (epoch == 0) first = last;
    std::cout << "epoch " << epoch + 1 << ": " << last << " nats per image\n";
  }

  constexpr std::int64_t rows = 4, columns = 8;
  const auto drawn = sigmoid(model.decoder(randn({rows * columns, numbers})));
  const auto sheet = cast(flatten(permute(reshape(drawn, {rows, columns, 28, 28}), {0, 2, 1, 3})) * 255.0, Dtype::u8);
  const auto bytes = sheet.to_vector<std::uint8_t>();
  std::ofstream file("vae.pgm", std::ios::binary);
  file << "P5\n" << columns * 28 << ' ' << rows * 28 << "\n255\n";
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::cout << "vae.pgm: " << rows * columns << " images that it made up\n";
  return file && (epochs < 2 || last < first - 20) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "vae: " << error.what() << '\n';
  return 1;
}
