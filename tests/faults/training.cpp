// Every call of OpenCL that a training step makes fails once. What must hold: one clnet::Error with OpenCL's code by name, or
// none where the library has another way; parameters, optimizer and statistics as before; the same step again right to the bit,
// and plans made before as good as ever.
#include "lib/exec/upload.h"
#include "tests/faults/failing.h"

using namespace clnet;

namespace {

/// Convolution, normalisation, dropout and Adam, on a batch that comes through the uploader.
struct Training {
  static constexpr int phases = 1;
  nn::Sequential model;
  optim::Adam optimizer;

  Training() : model(make()), optimizer(model, {.learning_rate = 1e-2}) {}

  static nn::Sequential make() {
    manual_seed(1);
    return nn::Sequential{nn::Conv2d{1, 4, 3}, nn::BatchNorm2d{4}, relu, nn::Flatten{}, nn::Dropout{0.25}, nn::Linear{64, 3}};
  }

  static Tensor images(int number) {
    std::vector<float> pixels(4 * 36);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(number) * 101) % 97) / 97.0F;
    }
    return exec::copy_now(Tensor::from(pixels, Shape{4, 1, 6, 6}), Device::current());
  }

  Tensor step(int number) {
    manual_seed(1000 + static_cast<std::uint64_t>(number));
    const std::vector<std::int32_t> classes{number % 3, 1, 2, 0};
    return optimizer.step(cross_entropy(model(images(number)), Tensor::from(classes, Shape{4})));
  }

  std::vector<float> inference() {
    model.inference();
    const auto result = model(images(7)).to_vector<float>();
    model.train();
    return result;
  }

  test::State state() { return test::state_of(model, optimizer); }
};

}  // namespace

TEST_CASE("a fault in a step whose plan is known") { CHECK(test::fail_in_known_steps<Training>() > 50); }

TEST_CASE("a fault in a step that makes its plan and programs") {
  // Building takes its time on a device that builds.
  test::fail_in_first_steps<Training>(test::is_null_device() ? std::numeric_limits<long>::max() : 3);
}
