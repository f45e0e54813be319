// Faults that random programs have found, each as small as the shrinker left it.
#include <catch2/catch.hpp>
#include <cmath>

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

// They took an epilogue or a prologue where integers have none.
TEST_CASE("reductions of integers between elementwise operations") {
  const Tensor x = Tensor::from<std::int32_t>({1, -2, 3, 4}, {2, 2});
  CHECK((sum(x + x) * 3.0).item<std::int64_t>() == 36);
  CHECK(minimum(prod(x), 5.0).item<std::int64_t>() == -24);
  CHECK((max(-x, {1}) + 1.0).to_vector<std::int32_t>() == std::vector<std::int32_t>{3, -2});
}

// The kernel's name alone was longer than a line.
TEST_CASE("a kernel of operations with long names") {
  const Tensor x = Tensor::from({0.5F});
  const Tensor y = binary_cross_entropy_with_logits(x, x, Reduction::none, x);
  const double entropy = 0.5 * std::log1p(std::exp(-0.5)) + 0.5 * std::log1p(std::exp(0.5));
  CHECK(y.item<float>() == Approx(0.5 * entropy));
  const float focal = sigmoid_focal_loss(y, y, Reduction::sum).item<float>();
  const float known = y.item<float>();
  CHECK(focal == Approx(sigmoid_focal_loss(Tensor::from({known}), Tensor::from({known}), Reduction::sum).item<float>()));
}

}  // namespace
}  // namespace clnet
