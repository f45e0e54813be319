// Several threads on one device, for ThreadSanitizer, which can see into the null driver: all that
// docs/developer/guarantees.md allows, at once. What they compute is checked on devices that compute (tests/ops/threads.cpp).
#include <catch2/catch.hpp>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/upload.h"
#include "tests/support/at_once.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

nn::Sequential small_model() {
  return nn::Sequential{nn::Conv2d{1, 4, 3}, nn::BatchNorm2d{4}, relu, nn::Flatten{}, nn::Linear{64, 3}};
}

Tensor batch(int round) { return Tensor::from(std::vector<float>(4 * 36, static_cast<float>(round)), Shape{4, 1, 6, 6}); }

}  // namespace

TEST_CASE("threads train, infer, upload, read, trim and trace on one device") {
  const clnet::test::Folder folder;
  Device device = Device::current();
  auto shared = small_model();
  shared.inference();
  const Tensor leaf = Tensor::from({1.0F, 2.0F, 3.0F}), common = exp(leaf) * 2.0;

  const auto train = [](int rounds) {
    auto model = std::make_shared<nn::Sequential>(small_model());
    auto adam = std::make_shared<optim::Adam>(*model, optim::AdamOptions{});
    return [model, adam, rounds](int round) {
      for (int i = 0; i < rounds; ++i)
        adam->step(cross_entropy((*model)(batch(round)), Tensor::from({0, 1, 2, 0}))).to_vector<float>();
    };
  };
  const auto infer = [&](int round) { shared(batch(round)).to_vector<float>(); };
  const auto share_nodes = [&](int round) {
    (common + static_cast<double>(round)).eval();
    common.to_vector<float>();
    // A structure that no thread has planned yet.
    Tensor fresh = leaf;
    for (int bit = 0; bit < 5; ++bit) fresh = (round >> bit & 1) ? sin(fresh) : cos(fresh);
    fresh.to_vector<float>();
  };
  const auto upload = [&](int round) {
    const Tensor copied = exec::copy_now(batch(round), device);
    sum(copied).item<float>();
  };
  const auto trim = [&](int) {
    device.trim();
    (void)device.memory();
    device.finish();
  };
  const auto trace = [&](int round) {
    device.start_trace(folder / ("trace" + std::to_string(round)));
    leaf.to_vector<float>();
    device.stop_trace();
  };
  test::at_once({train(2), train(2), infer, infer, share_nodes, share_nodes, upload, upload, trim, trace}, 20);
}

TEST_CASE("threads find and open devices at the same time") {
  const auto open = [](int) {
    const Device device = Device::find("");
    sum(Tensor::from({1.0F, 2.0F})).to_vector<float>();
    (void)Device::list();
  };
  test::at_once({open, open, open}, 10);
}
