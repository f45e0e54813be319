// A machine with two devices of one name: errors say which is meant.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/second_device.h"
#include "tests/support/temporary.h"

using namespace clnet;

TEST_CASE("values of two equal devices in one operation: the error tells the devices apart") {
  const test::Variable two("NULL_OPENCL_DEVICES", "2");
  const auto list = Device::list();
  REQUIRE(list.size() == 2);
  REQUIRE(list[0].name == list[1].name);
  const Device first = Device::find("0:0"), second = Device::find("0:1");
  CHECK_FALSE(first == second);
  CHECK(Device::find("0:1") == second);
  const auto name = first.info().name;
  const auto refused = [](const Tensor& x, const std::string& here, const std::string& there) {
    const auto text =
        "eval: a value lives on " + here + ", another (or the evaluation) on " + there + "; copy_to() copies values";
    CHECK_THROWS_AS(x.eval(), DeviceError);
    CHECK_THROWS_WITH(x.eval(), text);
  };
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F}), a = copy_to(x, first), b = copy_to(x, second);
  refused(a + b, name + " (0:1)", name + " (0:0)");
  refused(b + a, name + " (0:0)", name + " (0:1)");
  const auto add = compile([](const Tensor& left, const Tensor& right) { return left + right; });
  CHECK_THROWS_WITH(add(a, b), Catch::Contains(name + " (0:0)") && Catch::Contains(name + " (0:1)"));

  const Device again = test::in_own_context(second);
  const Tensor c = copy_to(x, again);
  refused(b + c, name + " (0:1)", "the same device in another context");
  refused(a + c, name + " (0:1)", name + " (0:0)");

  CHECK((copy_to(a, second) + b).to_vector<float>().size() == 3);
  CHECK((a * 2.0).to_vector<float>().size() == 3);
}

TEST_CASE("a tensor knows the device where it is, or would be computed") {
  const test::Variable two("NULL_OPENCL_DEVICES", "2");
  REQUIRE(Device::list().size() == 2);
  const Device first = Device::current(), second = Device::find(first == Device::find("0:0") ? "0:1" : "0:0");
  const Tensor x = Tensor::from({1.0F, 2.0F}), there = copy_to(x, second);
  CHECK(x.device() == first);
  CHECK(there.device() == second);
  CHECK((exp(there) * 2.0 + x).device() == second);
  const Tensor y = exp(there);
  y.eval();
  CHECK(y.device() == second);
  nn::Linear layer(2, 2);
  layer.to(second);
  CHECK(layer(reshape(x, {1, 2})).device() == second);
  CHECK_THROWS_WITH(Tensor{}.device(), "device: the tensor is undefined");
}

TEST_CASE("a cache of attention is where the layer is, on whatever device others are made") {
  const test::Variable two("NULL_OPENCL_DEVICES", "2");
  REQUIRE(Device::list().size() == 2);
  const Device second = Device::find("0:1");
  REQUIRE_FALSE(Device::current() == second);
  nn::MultiheadAttention layer(8, 2, {.batch_first = true});
  layer.inference();
  layer.to(second);
  const Tensor x = copy_to(Tensor::from(std::vector<float>(8, 1), {1, 1, 8}), second);
  auto cache = layer.cache(1, 4);
  for (int i = 0; i < 2; ++i) CHECK_NOTHROW(layer.step(x, cache).eval());

  models::CharGpt model(3, {.layers = 1, .width = 8, .heads = 2, .context = 4});
  model.to(second);
  CHECK_NOTHROW(model.reader()(std::vector<std::int32_t>{0, 1}).eval());
}
