#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

TEST_CASE("a device without doubles refuses f64 by its name, and still reads it") {
  const Tensor x = Tensor::from({0.1, 0.2}, {2}, Dtype::f64);
  const auto info = Device::current().info();
  if (info.fp64) {
    CHECK_NOTHROW((x + x).eval());
  } else {
    CHECK_THROWS_AS((x + x).eval(), Unsupported);
    CHECK_THROWS_WITH((x + x).eval(), Contains("add") && Contains(info.name) && Contains("f64"));
    CHECK_THROWS_WITH(cast(x, Dtype::f32).eval(), Contains("cast"));
  }
}
