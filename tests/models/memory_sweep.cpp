// Training under a memory limit that goes down step by step: each time it works or ends in one clear error, and the process goes
// on. CLNET_SWEEP_STEPS says how many steps there are from 1 GiB to 1 MiB.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

int steps() {
  const char* text = std::getenv("CLNET_SWEEP_STEPS");
  return text ? std::atoi(text) : 11;
}

class Limit {
 public:
  explicit Limit(std::size_t bytes) {
    auto device = Device::current();
    device.trim();
    device.set_memory_limit(bytes);
  }
  ~Limit() { Device::current().set_memory_limit(0); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
};

void sweep(std::string_view name, const Shape& sample, std::int64_t batch, std::int64_t classes = 10) {
  manual_seed(1);
  const auto model = models::make(name, sample, classes);
  model->train();
  optim::Optimizer optimizer = optim::SGD(*model, {.learning_rate = 1e-3});
  auto extents = sample.extents();
  extents.insert(extents.begin(), batch);
  const bool text = models::is_language_model(name);
  const auto samples = text ? zeros(Shape(extents), Dtype::i32).detach() : randn(Shape(extents)).detach();
  const auto labels = zeros({text ? samples.numel() : batch}, Dtype::i32).detach();
  const auto train = [&] {
    const Tensor output = (*model)(samples);
    return optimizer.step(cross_entropy(text ? flatten(output, 0, 1) : output, labels)).item<float>();
  };
  const auto before = train();
  REQUIRE(std::isfinite(before));
  int worked = 0, refused = 0;
  for (int i = 0; i < steps(); ++i) {
    const auto bytes = static_cast<std::size_t>(std::exp2(30 - 10.0 * i / (steps() - 1)));
    INFO(name << " in " << bytes << " bytes");
    const auto made = optimizer.steps();
    try {
      const Limit limit(bytes);
      const auto loss = train();
      CHECK(std::isfinite(loss));
      CHECK(optimizer.steps() == made + 1);
      ++worked;
    } catch (const Error& error) {
      ++refused;
      CHECK(optimizer.steps() == made);
      CHECK(std::string_view(error.what()).find("memory") != std::string_view::npos);
      CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
    CHECK(std::isfinite(train()));  // with memory enough
  }
  CHECK(worked > 0);
  CHECK(refused > 0);
}

}  // namespace

TEST_CASE("less and less memory: cnn") { sweep("cnn", {1, 28, 28}, 64); }
TEST_CASE("less and less memory: resnet18") { sweep("resnet18", {3, 64, 64}, 4); }
TEST_CASE("less and less memory: char-lstm") { sweep("char-lstm", {32}, 16, 65); }
TEST_CASE("less and less memory: char-gpt") { sweep("char-gpt", {32}, 16, 65); }
