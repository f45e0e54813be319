// DeviceScope: which device evaluations use that no value decides about.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

/// A machine with two devices, of which the first is the default.
struct Two {
  test::Variable variable{"NULL_OPENCL_DEVICES", "2"};
  Device first = Device::find("0:0"), second = Device::find("0:1");
};

}  // namespace

TEST_CASE("a scope's device is the current one of its thread") {
  const Two two;
  const Device outside = Device::current();
  {
    const DeviceScope scope(two.second);
    CHECK(scope.device() == two.second);
    CHECK(Device::current() == two.second);
    std::optional<Device> there;
    std::thread([&] { there = Device::current(); }).join();
    CHECK(*there == outside);
    {
      const DeviceScope inner(two.first);
      CHECK(Device::current() == two.first);
    }
    CHECK(Device::current() == two.second);
  }
  CHECK(Device::current() == outside);
}

TEST_CASE("scopes of devices end in any order") {
  const Two two;
  const Device outside = Device::current();
  auto one = std::make_unique<DeviceScope>(two.first), other = std::make_unique<DeviceScope>(two.second);
  one.reset();
  CHECK(Device::current() == two.second);
  other.reset();
  CHECK(Device::current() == outside);
}

TEST_CASE("values that are on no device yet come to the scope's, others stay where they are") {
  const Two two;
  const Tensor x = Tensor::from({1.0F, 2.0F}), on_first = copy_to(x, two.first);
  const DeviceScope scope(two.second);
  const Tensor made = ones({3}) * 2.0, y = on_first + 1.0;
  eval({made});
  CHECK(made.device() == two.second);
  y.eval();
  CHECK(y.device() == two.first);
  nn::Linear layer(2, 2);
  const Tensor z = layer(Tensor::from({1.0F, 2.0F}, {1, 2}));
  z.eval();
  CHECK(z.device() == two.second);
}

TEST_CASE("a compiled function has a graph for each device that is chosen") {
  const Two two;
  int calls = 0;
  const auto f = compile([&calls](const Tensor& x) {
    ++calls;
    return x * Tensor::from({2.0F, 3.0F});
  });
  const auto on = [&](const Device& device) {
    const DeviceScope scope(device);
    return f(Tensor::from({1.0F, 1.0F})).device();
  };
  CHECK(on(two.first) == two.first);
  CHECK(on(two.second) == two.second);
  CHECK(on(two.first) == two.first);
  CHECK(on(two.second) == two.second);
  CHECK(calls == 2);
  CHECK(f.graphs() == 2);
}
