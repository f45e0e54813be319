// The loop of fashion_mnist.cpp over several processes: mpirun -n 2 mpi [EPOCHS]. Each has its share of every batch, and all make
// the same steps. Without mpirun it is one process. Needs the data of Debian's package dataset-fashion-mnist.
#include <clnet/clnet.h>

#include <cstdlib>
#include <exception>
#include <iostream>

using namespace clnet;

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 5;
  const auto ranks = dist::init();
  const auto clothes = data::fashion_mnist(data::Split::train), test = data::fashion_mnist(data::Split::test);
  manual_seed(0);  // all ranks begin with the same weights
  auto model = nn::Sequential{nn::Conv2d(1, 32, 3, {.padding = 1}),
                              relu,
                              nn::MaxPool2d(2),
                              nn::Conv2d(32, 64, 3, {.padding = 1}),
                              relu,
                              nn::MaxPool2d(2),
                              nn::Flatten(),
                              nn::Linear(64 * 7 * 7, 10)};
  optim::Adam adam(model, 1e-3);
  train::add_gradients(adam, ranks);

  for (int epoch = 0; epoch < epochs; ++epoch) {
    const data::BatchOptions batches{.batch_size = 128,
                                     .shuffle = true,
                                     .epoch = static_cast<std::uint64_t>(epoch),
                                     .drop_last = true,
                                     .share = train::share_of(ranks)};
    for (const auto& batch : data::batches(clothes, batches))
      adam.step(batch.weight() * cross_entropy(model(batch.images), batch.labels));
    const auto result = train::evaluate(model, test, {.batch_size = 256, .group = ranks});
    if (ranks.rank() == 0) std::cout << "epoch " << epoch + 1 << ": accuracy " << result.accuracy << std::endl;
  }
  if (ranks.rank() == 0) io::save_safetensors("fashion.safetensors", model.state_dict());
} catch (const std::exception& error) {
  std::cerr << "mpi: " << error.what() << '\n';
  return 1;
}
