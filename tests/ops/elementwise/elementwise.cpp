#include "tests/cases/elementwise/elementwise.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("unary elementwise operations with parameters, and far out") { check(unary_cases()); }
TEST_CASE("binary elementwise operations broadcast") { check(binary_cases()); }
TEST_CASE("where, and products of integers") { check(choice_cases()); }

TEST_CASE("cast converts between every pair of dtypes") {
  const std::vector<double> values{-3, -1, 0, 1, 2, 100};
  const std::vector<Dtype> signed_types{Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64};
  for (auto from : signed_types)
    for (auto to : signed_types) {
      INFO(to_string(from) << " to " << to_string(to));
      Array array({6}, values);
      CHECK(to_array(cast(to_tensor(array, from), to)).values == values);
    }
  Array array({6}, values);
  CHECK(to_array(cast(to_tensor(array, Dtype::f32), Dtype::boolean)).values == std::vector<double>{1, 1, 0, 1, 1, 1});
  Array bytes({3}, {0, 1, 255});
  CHECK(to_array(cast(to_tensor(bytes, Dtype::u8), Dtype::f32)).values == bytes.values);
}

TEST_CASE("NaN and infinities pass as in PyTorch") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({nan, inf, -inf, 1.0F});
  CHECK(std::isnan(relu(x).to_vector<float>()[0]));
  CHECK(relu(x).to_vector<float>()[1] == inf);
  CHECK(is_nan(x).to_vector<bool>() == std::vector<bool>{true, false, false, false});
  for (const auto& y : {maximum(x, zeros({4})), minimum(x, zeros({4})), maximum(zeros({4}), x), clamp(x, -1, 1)})
    CHECK(std::isnan(y.to_vector<float>()[0]));
  const auto powers = pow(x, static_cast<double>(nan)).to_vector<float>();
  CHECK((std::isnan(powers[0]) && std::isnan(powers[1]) && std::isnan(powers[2]) && powers[3] == 1.0F));
  const auto s = sigmoid(x).to_vector<float>();
  CHECK(s[1] == 1.0F);
  CHECK(s[2] == 0.0F);
}

TEST_CASE("gradients exactly at the bounds are PyTorch 2.15's") {
  using Floats = std::vector<float>;
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    INFO(to_string(dtype));
    const auto slopes = [&](const std::function<Tensor(const Tensor&)>& f, const Floats& at) {
      const Tensor x = cast(Tensor::from(at), dtype);
      return gradients(sum(f(x)), {x})[0].to_vector<float>();
    };
    const auto clamped = [](const Tensor& x) { return clamp(x, -1, 2); };
    CHECK(slopes(clamped, {-1.5F, -1, -0.5F, 1.5F, 2, 2.5F}) == Floats{0, 0, 1, 1, 0, 0});
    CHECK(slopes([](const Tensor& x) { return clamp(x, 0.5); }, {0.25F, 0.5F, 0.75F, inf}) == Floats{0, 0, 1, 1});
    CHECK(slopes([](const Tensor& x) { return clamp(x, -std::numeric_limits<double>::infinity(), 0.5); },
                 {-inf, 0.25F, 0.5F, 0.75F}) == Floats{1, 1, 0, 0});
    CHECK(slopes([](const Tensor& x) { return hardtanh(x, -1, 2); }, {-1, -0.5F, 1.5F, 2}) == Floats{0, 1, 1, 0});
    CHECK(slopes([](const Tensor& x) { return relu6(x); }, {-1, 0, 3, 6, 7}) == Floats{0, 0, 1, 0, 0});
    CHECK(slopes([](const Tensor& x) { return hardswish(x); }, {-3.5F, -3, 0, 3, 3.5F}) == Floats{0, 0, 0.5F, 1, 1});
    CHECK(slopes([](const Tensor& x) { return hardsigmoid(x); }, {-3, 3}) == Floats{0, 0});
    CHECK(slopes([](const Tensor& x) { return softshrink(x, 0.5); }, {-1, -0.5F, 0.25F, 0.5F, 1}) == Floats{1, 0, 0, 0, 1});
    // A bound that the dtype rounds: what was clamped to it is outside.
    CHECK(slopes([](const Tensor& x) { return clamp(x, 0.3, 0.7); }, {-1, 0.5F, 1}) == Floats{0, 1, 0});
    CHECK(slopes([](const Tensor& x) { return hardtanh(x, 0.3, 0.7); }, {-1, 0.5F, 1}) == Floats{0, 1, 0});
  }
}

TEST_CASE("hypot, logaddexp, xlogy and nan_to_num at zeros and infinities, as in PyTorch") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  const auto values = [](const Tensor& y) { return y.to_vector<float>(); };
  const auto slopes = [&](const Tensor& y, const Tensor& x) { return values(gradients(sum(y), {x})[0]); };
  using Floats = std::vector<float>;
  const Tensor a = Tensor::from({0.F, 3e38F, -inf, nan, 1e-30F}), b = Tensor::from({0.F, 1e38F, nan, -inf, 0.F});
  CHECK(values(hypot(a, b))[0] == 0);
  CHECK(values(hypot(a, b))[1] == Approx(3.1622777e38).epsilon(1e-6));
  CHECK(values(slice(hypot(a, b), 0, 2)) == Floats{inf, inf, 1e-30F});
  CHECK(values(hypot(Tensor::from({3.F}), 4.0)) == Floats{5});
  const Tensor c = Tensor::from({inf, -inf, -inf, 500.F}), d = Tensor::from({inf, -inf, 1.F, -500.F});
  CHECK(values(logaddexp(c, d)) == Floats{inf, -inf, 1, 500});
  const auto by_c = slopes(logaddexp(c, d), c);
  CHECK((std::isnan(by_c[0]) && std::isnan(by_c[1]) && by_c[2] == 0 && by_c[3] == 1));
  const Tensor e = Tensor::from({0.F, 0.F, 0.F, 2.F}), f = Tensor::from({0.F, nan, -1.F, 1.F});
  CHECK(values(xlogy(e, f))[0] == 0);
  CHECK(std::isnan(values(xlogy(e, f))[1]));
  CHECK(values(slice(xlogy(e, f), 0, 2)) == Floats{0, 0});
  const auto by_e = slopes(xlogy(e, f), e);
  CHECK(Floats{by_e[0], by_e[2], by_e[3]} == Floats{0, 0, 0});
  CHECK(values(xlogy(0.0, f))[0] == 0);
  const Tensor x = Tensor::from({nan, inf, -inf, 2.F});
  CHECK(values(nan_to_num(x)) == Floats{0, most, -most, 2});
  CHECK(values(nan_to_num(x, 1, 5, -6)) == Floats{1, 5, -6, 2});
  CHECK(slopes(nan_to_num(x), x) == Floats{0, 0, 0, 1});
  CHECK(values(cast(nan_to_num(cast(x, Dtype::f16)), Dtype::f32)) == Floats{0, 65504, -65504, 2});
  CHECK(std::isfinite(values(cast(nan_to_num(cast(x, Dtype::bf16)), Dtype::f32))[1]));
}

TEST_CASE("elementwise errors name the operation and both operands") {
  const Tensor a = zeros({2, 3}), b = zeros({4, 3}), i = zeros({2, 3}, Dtype::i32);
  CHECK_THROWS_WITH(a + b, Contains("add") && Contains("[2, 3]") && Contains("[4, 3]"));
  CHECK_THROWS_AS(a + b, ShapeError);
  CHECK_THROWS_WITH(a * i, Contains("mul") && Contains("f32[2, 3]") && Contains("i32[2, 3]"));
  CHECK_THROWS_AS(exp(i), DtypeError);
  CHECK_THROWS_WITH(exp(i), Contains("exp") && Contains("i32"));
  CHECK_THROWS_AS(logical_and(a, a), DtypeError);
  CHECK_THROWS_AS(where(a, a, a), DtypeError);
  CHECK_THROWS_AS(clamp(a, 2, 1), Error);
  CHECK_THROWS_WITH(hardtanh(a, 1, -1), "hardtanh: the lower bound 1 is above the upper bound -1");
  CHECK_THROWS_WITH(a + Tensor{}, Contains("undefined"));
}

TEST_CASE("second derivatives come from the same graph") {
  const Tensor x = Tensor::from({0.5F, -1.5F, 2.0F});
  const auto first = gradients(sum(x * x * x), {x})[0];
  const auto second = gradients(sum(first), {x})[0].to_vector<float>();
  for (std::size_t k = 0; k < 3; ++k) CHECK(second[k] == Approx(6 * x.to_vector<float>()[k]));
}
