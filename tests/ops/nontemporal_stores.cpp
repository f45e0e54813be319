// Results larger than the last cache, which kernels for CPUs store past it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

/// Whole numbers, so that sums and products are exact.
std::vector<float> whole_numbers(std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<float>(static_cast<int>(i * 7 % 1001) - 500);
  return result;
}

}  // namespace

TEST_CASE("elementwise results larger than the caches are all there, wherever rows and views begin") {
  constexpr std::int64_t rows = 3001, width = 3003;  // 34 MiB, and rows that begin at no multiple of a vector
  const auto values = whole_numbers(rows * width), shifts = whole_numbers(rows);
  const Tensor x = Tensor::from(values, {rows, width}), shift = Tensor::from(shifts, {rows, 1});
  x.eval();
  std::size_t wrong = 0;
  SECTION("one loop") {
    const auto got = (relu(x) * 3).to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) wrong += got[i] != std::max(values[i], 0.f) * 3 ? 1 : 0;
  }
  SECTION("rows, and two results") {
    const Tensor sum = x + shift, product = x * shift;
    eval({sum, product});
    const auto sums = sum.to_vector<float>(), products = product.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float other = shifts[i / width];
      wrong += sums[i] != values[i] + other || products[i] != values[i] * other ? 1 : 0;
    }
  }
  SECTION("a part, from an odd element on, which a sum reads at once") {
    const auto got = sum(slice(x, 0, 1, rows) - 1, {1}).to_vector<float>();
    for (std::size_t row = 0; row + 1 < rows; ++row) {
      double expected = 0;
      for (std::size_t i = 0; i < width; ++i) expected += values[(row + 1) * width + i] - 1;
      wrong += got[row] != static_cast<float>(expected) ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("an optimizer's results that are larger than the caches are those of small ones") {
  constexpr std::int64_t rows = 1100, width = 2731;  // three results of 11.5 MiB
  const auto step = [](const Tensor& start, const Tensor& gradient) {
    nn::Parameter parameter(start);
    optim::Adam adam(nn::NamedParameters{{"p", parameter}});
    for (int i = 0; i < 2; ++i) adam.apply({gradient});
    return parameter.value().to_vector<float>();
  };
  const auto values = whole_numbers(rows * width);
  const Tensor start = Tensor::from(values, {rows, width}) / 100.0, gradient = flip(start, {0});
  eval({start, gradient});
  const auto all = step(start, gradient);
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{517}, rows - 1}) {
    const auto few = step(slice(start, 0, row, row + 1), slice(gradient, 0, row, row + 1));
    CHECK(std::equal(few.begin(), few.end(), all.begin() + row * width));
  }
}
