// A network over two devices: whatever call fails on either, nothing has changed on both, and the same step again is right.
#include "tests/faults/failing.h"
#include "tests/support/second_device.h"

using namespace clnet;

namespace {

struct OverTwo {
  static constexpr int phases = 1;
  Device second = test::second_device();
  nn::Sequential front, back;
  optim::Adam optimizer;

  OverTwo() : front(make_front()), back(make_back()), optimizer(both(), {.learning_rate = 1e-2}) {}

  static nn::Sequential make_front() {
    manual_seed(1);
    nn::Sequential layers{nn::Linear{4, 6}, nn::BatchNorm1d{6}, tanh};
    layers.to(Device::current());
    return layers;
  }
  nn::Sequential make_back() const {
    nn::Sequential layers{nn::Linear{6, 3}};
    layers.to(second);
    return layers;
  }
  nn::Sequential both() const { return {front, back}; }

  Tensor classes_of(int number) const {
    std::vector<float> x(8);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(number) + static_cast<float>(i) / 6;
    const Tensor middle = front(Tensor::from(x, Shape{2, 4}));
    return back(copy_to(middle, second)) + copy_to(sum(middle), second);
  }
  Tensor step(int number) { return optimizer.step(cross_entropy(classes_of(number), Tensor::from({0, number % 3}))); }

  std::vector<float> inference() {
    front.inference();
    const auto result = classes_of(7).to_vector<float>();
    front.train();
    return result;
  }

  test::State state() { return test::state_of(both(), optimizer); }
};

}  // namespace

TEST_CASE("a fault in a step over two devices whose plans are known") {
  CHECK(test::fail_in_known_steps<OverTwo>(test::is_null_device() ? 40 : 8) > 20);
}

TEST_CASE("a fault in a first step over two devices") { test::fail_in_first_steps<OverTwo>(test::is_null_device() ? 12 : 2); }
