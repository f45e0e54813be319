// Two devices in two threads: the same bits as alone.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/parallel/lane.h"
#include "tests/support/second_device.h"

using namespace clnet;

namespace {

/// A small network with its optimizer and batches of its own.
class LaneTraining {
 public:
  explicit LaneTraining(unsigned seed) : seed_(seed), net_(network(seed)), adam_(net_, {.learning_rate = 1e-2}) {}

  /// Losses and the last parameters, as bits.
  std::vector<float> run() {
    std::vector<float> numbers;
    for (int step = 0; step < 12; ++step) {
      const Tensor logits = net_(images(step)), loss = adam_.step(cross_entropy(logits, labels(step)));
      if (step % 2 == 0) numbers.push_back(loss.item<float>());
    }
    for (const auto& [name, tensor] : net_.state_dict()) {
      const auto values = cast(tensor, Dtype::f32).to_vector<float>();
      numbers.insert(numbers.end(), values.begin(), values.end());
    }
    return numbers;
  }

 private:
  static nn::Sequential network(unsigned seed) {
    manual_seed(seed);
    return nn::Sequential{nn::Conv2d{2, 6, 3, {.padding = 1}},
                          nn::BatchNorm2d{6},
                          relu,
                          nn::MaxPool2d{2},
                          nn::Flatten{},
                          nn::Linear{6 * 16, 16},
                          gelu,
                          nn::Linear{16, 4}};
  }
  Tensor images(int step) const {
    std::vector<float> values(8 * 2 * 64);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(step) * 5 + seed_) % 23) / 11 - 1;
    return Tensor::from(values, {8, 2, 8, 8});
  }
  static Tensor labels(int step) {
    std::vector<std::int32_t> values(8);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int32_t>((i + static_cast<std::size_t>(step)) % 4);
    return Tensor::from(values, {8});
  }

  unsigned seed_;
  nn::Sequential net_;
  optim::Adam adam_;
};

}  // namespace

TEST_CASE("two models train in two lanes, with the bits that each has alone, and neither waits for the other") {
  const std::array<Device, 2> devices{Device::current(), test::second_device()};
  std::array<std::vector<float>, 2> alone;
  for (std::size_t i = 0; i < 2; ++i) {
    const DeviceScope here(devices[i]);
    alone[i] = LaneTraining(static_cast<unsigned>(i)).run();
  }
  CHECK(alone[0] != alone[1]);
  parallel::Lanes lanes(devices);
  for (int round = 0; round < 3; ++round) {
    std::array<LaneTraining, 2> trainings{LaneTraining(0), LaneTraining(1)};
    std::array<std::vector<float>, 2> together;
    const auto before = exec::statistics().waited;
    lanes.run([&](std::size_t i) { together[i] = trainings[i].run(); });
    CHECK(exec::statistics().waited == before);
    CHECK(together == alone);
  }
}
