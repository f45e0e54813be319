#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

TEST_CASE("custom_gradient: the result is the function's, the derivative its own") {
  const Tensor x = Tensor::from({-1.4F, 0.3F, 2.6F});
  const auto straight = [&] {
    return custom_gradient(
        x, [](const Tensor& v) { return round(v) * 2.0; }, [](const Tensor&, const Tensor&, const Tensor& g) { return g * 3.0; });
  };
  CHECK(straight().to_vector<float>() == std::vector<float>{-2, 0, 6});
  // Whether or not the value was computed before.
  const auto y = straight();
  for (bool known : {false, true}) {
    if (known) y.eval();
    CHECK(gradients(sum(y * Tensor::from({1.0F, 2.0F, 3.0F})), {x})[0].to_vector<float>() == std::vector<float>{3, 6, 9});
  }
}

TEST_CASE("custom_gradient of several inputs and results, and its second derivative") {
  const Tensor x = Tensor::from({0.5F, 2.0F}), w = Tensor::from({3.0F, -1.0F});
  const auto results = custom_gradient(
      {x, w},
      [](std::span<const Tensor> in) {
        return std::vector{in[0] * in[1], exp(in[0])};
      },
      [](std::span<const Tensor> in, std::span<const Tensor> out, std::span<const Tensor> g) {
        // As if the first result were x^2 w, and the second had no gradient but its value times 10.
        return std::vector{2.0 * in[0] * in[1] * g[0] + 10.0 * out[1] * g[1], Tensor{}};
      });
  REQUIRE(results.size() == 2);
  CHECK(results[0].to_vector<float>() == std::vector<float>{1.5F, -2.0F});
  const auto first = gradients(sum(results[0]), {x, w});
  CHECK(first[0].to_vector<float>() == std::vector<float>{3, -4});
  CHECK(first[1].to_vector<float>() == std::vector<float>{0, 0});
  const auto second = gradients(sum(first[0]), {x, w});
  CHECK(second[0].to_vector<float>() == std::vector<float>{6, -2});
  CHECK(second[1].to_vector<float>() == std::vector<float>{1, 4});
  const auto both = gradients(sum(results[0] + results[1]), {x})[0].to_vector<float>();
  CHECK(both[0] == Approx(3 + 10 * std::exp(0.5)));
  CHECK(both[1] == Approx(-4 + 10 * std::exp(2.0)));
}

TEST_CASE("custom_gradient trains within a module, compiled, checkpointed and among other operations") {
  manual_seed(1);
  const Tensor x = randn({4, 3}).detach(), w = randn({3, 2}).detach();
  const auto clipped = [](const Tensor& v) {
    return custom_gradient(
        v, [](const Tensor& u) { return tanh(u); },
        [](const Tensor&, const Tensor& y, const Tensor& g) { return clamp(g * (1.0 - y * y), -0.1, 0.1); });
  };
  const auto loss = [&](const Tensor& v) { return sum(square(clipped(matmul(x, v)) + 1.0)); };
  const auto y = tanh(matmul(x, w));
  const auto expected = matmul(transpose(x, 0, 1), clamp(2.0 * (y + 1.0) * (1.0 - y * y), -0.1, 0.1)).to_vector<float>();
  const auto same = [&](const Tensor& got) {
    const auto values = got.to_vector<float>();
    REQUIRE(values.size() == expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-6));
  };
  same(gradients(loss(w), {w})[0]);
  same(gradients(checkpoint([&] { return loss(w); }), {w})[0]);
  const auto compiled = compile([&](const Tensor& v) { return gradients(loss(v), {v})[0]; });
  for (int i = 0; i < 2; ++i) same(compiled(w));
}

TEST_CASE("custom_gradient says what is wrong") {
  const Tensor x = ones({2});
  const auto same = [](const Tensor& v) { return v; };
  CHECK_THROWS_WITH(custom_gradient(Tensor{}, same, [](auto&, auto&, auto& g) { return g; }),
                    Contains("custom_gradient: input 0 is undefined"));
  CHECK_THROWS_WITH(custom_gradient(
                        x, [](const Tensor&) { return Tensor{}; }, [](auto&, auto&, auto& g) { return g; }),
                    Contains("custom_gradient: result 0 is undefined"));
  CHECK_THROWS_WITH(custom_gradient(x, nullptr, nullptr), Contains("custom_gradient: a function is missing"));
  const auto wrong = custom_gradient(x, same, [](auto&, auto&, auto& g) { return sum(g); });
  CHECK_THROWS_WITH(gradients(sum(wrong), {x}), Contains("custom_gradient gives a gradient") && Contains("for a value"));
  const auto none = custom_gradient(
      {x}, [](std::span<const Tensor> in) { return std::vector{in[0]}; }, [](auto, auto, auto) { return std::vector<Tensor>{}; });
  CHECK_THROWS_WITH(gradients(sum(none[0]), {x}),
                    Contains("custom_gradient: the backward function gives 0 gradients for 1 inputs"));
}
