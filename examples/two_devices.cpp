// Two devices train one model, each with its share of every batch: two_devices [DEVICE [DEVICE]], as clnet-info lists them.
// Without arguments both are the current device. Needs the data of Debian's package dataset-fashion-mnist.
#include <clnet/clnet.h>

#include <exception>
#include <iostream>
#include <string>

using namespace clnet;

int main(int argc, char** argv) try {
  const auto device = [&](int at) { return argc > at ? Device::find(argv[at]) : Device::current(); };
  const std::vector<Device> devices{device(1), device(2)};
  const auto clothes = data::fashion_mnist(data::Split::train), test = data::fashion_mnist(data::Split::test);
  auto model = nn::Sequential{nn::Flatten(), nn::Linear(28 * 28, 128), relu, nn::Linear(128, 10)};
  parallel::Replicas replicas(model, devices);
  optim::Adam adam(model, 1e-3);

  auto parts = replicas.batches(clothes, {.batch_size = 128, .shuffle = true});
  double loss = 0;
  while (parts.next())
    loss = replicas.step(adam, parts.now(), [](nn::Module& net, const data::Batch& batch) -> train::Step {
      return cross_entropy(net(batch.images), batch.labels);
    });
  std::cout << devices[0].info().name << " and " << devices[1].info().name << ": loss " << loss << ", accuracy "
            << train::accuracy(model, test) << std::endl;
} catch (const std::exception& error) {
  std::cerr << "two_devices: " << error.what() << '\n';
  return 1;
}
