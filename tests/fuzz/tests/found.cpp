// Faults that random programs have found, each as small as the shrinker left it.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"

namespace clnet {
namespace {

// A division of integers by the number of rows.
TEST_CASE("second gradients of layer_norm without rows") {
  const Tensor x = zeros({0, 3});
  const auto first = gradients(sum(square(layer_norm(x, 1, {}, {}))), {x})[0];
  const auto second = gradients(sum(square(first)), {x})[0];
  CHECK(second.shape() == Shape{0, 3});
  CHECK(second.to_vector<float>().empty());
}

}  // namespace
}  // namespace clnet
