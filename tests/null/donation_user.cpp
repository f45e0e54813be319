// Threads whose evaluations make values in the memory of others, beside threads that read and evaluate what they share, for
// ThreadSanitizer.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/at_once.h"

using namespace clnet;

namespace {

Tensor some(Shape shape, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}

}  // namespace

TEST_CASE("threads grow caches, sum gradients, write slices and read what they hold") {
  auto held = some({8, 3}, 1);
  held.eval();
  const Tensor start = held * 2.0;
  const auto cached = [](int) {
    nn::MultiheadAttention layer(8, 2, {.batch_first = true});
    auto cache = layer.cache(1, 4);
    for (int i = 0; i < 4; ++i) layer.step(some({1, 1, 8}, 1), cache).to_vector<float>();
  };
  const auto train = [](int round) {
    nn::Linear layer(3, 3);
    optim::Adam adam(layer, {.learning_rate = 0.01});
    for (int i = 0; i < 3; ++i) {
      adam.accumulate(mean(square(layer(some({2, 3}, 1)))));
      adam.step(mean(square(layer(some({2, 3}, static_cast<float>(round))))));
      const auto state = adam.state_dict();
      for (const auto& [name, tensor] : state) (void)tensor.read_async();
    }
  };
  const auto slices = [&](int round) {
    Tensor x = (start + static_cast<double>(round)).detach();
    for (int i = 0; i < 4; ++i) {
      x = slice_update(x, 0, i, some({1, 3}, 2));
      auto reading = x.read_async();
      x = x.detach();
      reading.get();
    }
  };
  const auto read = [&](int) {
    held.detach().to_vector<float>();
    start.to_vector<float>();
    slice_update(held, 0, 2, some({1, 3}, 2)).to_vector<float>();
  };
  test::at_once({cached, cached, train, train, slices, slices, read, read}, 15);
}
