// Values of elementwise functions that their formulas do not tell: special values as PyTorch gives them, bits, and errors.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

using Whole = std::vector<std::int32_t>;
Tensor whole(const Whole& values) { return Tensor::from(values); }
Whole read(const Tensor& x) { return x.to_vector<std::int32_t>(); }

}  // namespace

TEST_CASE("the gamma function's relatives have PyTorch's values at poles and infinities") {
  const auto psi = digamma(Tensor::from({0.0F, -0.0F, -1.0F, inf, -inf, 1.0F, 0.5F})).to_vector<float>();
  CHECK(psi[0] == -inf);
  CHECK(psi[1] == inf);
  CHECK(std::isnan(psi[2]));
  CHECK(psi[3] == inf);
  CHECK(std::isnan(psi[4]));
  CHECK(psi[5] == Approx(-0.5772156649).epsilon(1e-6));
  CHECK(psi[6] == Approx(-1.9635100260).epsilon(1e-6));
  const auto lg = lgamma(Tensor::from({0.0F, -1.0F, inf, 1.0F, 2.0F, 0.5F})).to_vector<float>();
  CHECK(lg[0] == inf);
  CHECK(lg[1] == inf);
  CHECK(lg[2] == inf);
  CHECK(lg[3] == 0);
  CHECK(lg[4] == 0);
  CHECK(lg[5] == Approx(0.5723649429).epsilon(1e-6));
  const auto trigamma = polygamma(1, Tensor::from({0.0F, inf, 1.0F, -0.5F})).to_vector<float>();
  CHECK(trigamma[0] == inf);
  CHECK(trigamma[1] == 0);
  CHECK(trigamma[2] == Approx(1.6449340668).epsilon(1e-6));
  CHECK(trigamma[3] == Approx(8.9348022005).epsilon(1e-6));
  CHECK_THROWS_WITH(polygamma(11, ones({2})), Contains("polygamma: order 11"));
}

TEST_CASE("erfinv and logit end at infinity, and their arguments at 1") {
  const auto y = erfinv(Tensor::from({1.0F, -1.0F, 1.5F, 0.0F})).to_vector<float>();
  CHECK(y[0] == inf);
  CHECK(y[1] == -inf);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
  const auto z = logit(Tensor::from({0.0F, 1.0F, 1.5F, 0.5F})).to_vector<float>();
  CHECK(z[0] == -inf);
  CHECK(z[1] == inf);
  CHECK(std::isnan(z[2]));
  CHECK(z[3] == 0);
  CHECK(logit(Tensor::from({0.0F}), 0.25).item() == Approx(-std::log(3)));
  // PyTorch: torch.logit(torch.tensor([0.1, 0.75, 0.8]), 0.75).
  const auto high = logit(Tensor::from({0.1F, 0.75F, 0.8F}), 0.75).to_vector<float>();
  CHECK(high[0] == Approx(std::log(3)));
  CHECK(high[1] == Approx(-std::log(3)));
  CHECK(high[2] == Approx(-std::log(3)));
  CHECK_THROWS_WITH(logit(ones({2}), -0.25), Contains("logit: eps -0.25"));
}

TEST_CASE("gradients of sinc and of digamma are finite at 0 and below it") {
  const Tensor x = Tensor::from({0.0F, 0.1F, -0.3F, 1.0F, 40.5F});
  const auto slopes = gradients(sum(sinc(x)), {x})[0].to_vector<double>();
  const auto want = [](double at) {
    constexpr double pi = 3.14159265358979323846;
    return at == 0 ? 0 : (std::cos(pi * at) - std::sin(pi * at) / (pi * at)) / at;
  };
  const auto at = x.to_vector<double>();
  for (std::size_t i = 0; i < at.size(); ++i) CHECK(slopes[i] == Approx(want(at[i])).epsilon(1e-5).margin(1e-7));
  const Tensor first = gradients(sum(sinc(x)), {x})[0];
  for (double value : gradients(sum(first), {x})[0].to_vector<double>()) CHECK(std::isfinite(value));
  const Tensor below = Tensor::from({-0.5F, -1.5F});
  const auto trigamma = gradients(sum(digamma(below)), {below})[0].to_vector<double>();
  CHECK(trigamma[0] == Approx(8.9348022005).epsilon(1e-6));
  CHECK(trigamma[1] == Approx(9.3792466450).epsilon(1e-6));
}

TEST_CASE("remainders and quotients of integers are Python's, and 0 for the divisor 0") {
  const Tensor a = whole({7, -7, 7, -7, 5, std::numeric_limits<std::int32_t>::min()}), b = whole({3, 3, -3, -3, 0, -1});
  CHECK(read(remainder(a, b)) == Whole{1, 2, -2, -1, 0, 0});
  CHECK(read(floor_divide(a, b)) == Whole{2, -3, -3, 2, 0, std::numeric_limits<std::int32_t>::min()});
  CHECK(read(floor_divide(a, 2)) == Whole{3, -4, 3, -4, 2, -1073741824});
  CHECK(remainder(whole({-7}), 2.5).dtype() == Dtype::f32);
  CHECK(remainder(whole({-7}), 2.5).item() == 0.5F);
  CHECK(remainder(Tensor::from({-1.0F}), inf).item() == inf);
  CHECK(std::isnan(remainder(Tensor::from({-1.0F}), 0).item()));
}

TEST_CASE("bits of integers and bool, and shifts beyond the width") {
  const Tensor a = whole({12, -1, 5}), b = whole({10, 6, 3});
  CHECK(read(a & b) == Whole{8, 6, 1});
  CHECK(read(a | b) == Whole{14, -1, 7});
  CHECK(read(a ^ b) == Whole{6, -7, 6});
  CHECK(read(~a) == Whole{-13, 0, -6});
  CHECK(read(a << 2) == Whole{48, -4, 20});
  CHECK(read(a >> 1) == Whole{6, -1, 2});
  CHECK(read(whole({1, -1, 1, -1}) << whole({32, 40, -1, 31})) == Whole{0, 0, 0, std::numeric_limits<std::int32_t>::min()});
  CHECK(read(whole({1, -1, 1, -9}) >> whole({32, 40, -1, 31})) == Whole{0, -1, 0, -1});
  const Tensor t = whole({1, 1, 0, 0}) == 1, u = whole({1, 0, 1, 0}) == 1;
  CHECK((t & u).dtype() == Dtype::boolean);
  CHECK((t & u).to_vector<bool>() == std::vector<bool>{true, false, false, false});
  CHECK((t | u).to_vector<bool>() == std::vector<bool>{true, true, true, false});
  CHECK((t ^ u).to_vector<bool>() == std::vector<bool>{false, true, true, false});
  CHECK((~t).to_vector<bool>() == std::vector<bool>{false, false, true, true});
  CHECK_THROWS_WITH(bitwise_and(ones({2}), ones({2})), Contains("bitwise_and: needs integers or bool"));
  CHECK_THROWS_WITH(bitwise_left_shift(t, u), Contains("bitwise_left_shift: needs integers"));
  CHECK_THROWS_WITH(bitwise_and(a, 0.5), Contains("bitwise_and: a number beside"));
}

TEST_CASE("masks of more than 53 bits are exact") {
  using Long = std::vector<std::int64_t>;
  constexpr std::int64_t mask = 0x00FFFFFFFFFFFFFF, bits = 0x5555555555555555, most = std::numeric_limits<std::int64_t>::max();
  const Tensor x = Tensor::from(Long{-1, 5});
  CHECK((x & mask).to_vector<std::int64_t>() == Long{mask, 5});
  CHECK((x ^ bits).to_vector<std::int64_t>() == Long{~bits, 5 ^ bits});
  CHECK((x | most).to_vector<std::int64_t>() == Long{-1, most});
  CHECK((Tensor::from(Long{-1}).reshape(std::vector<std::int64_t>{}) & mask).shape() == Shape{});
}

TEST_CASE("logit with bounds has a slope at them, and none beyond") {
  const Tensor x = Tensor::from({0.25F, 0.75F, 0.2F, 0.8F, -1.0F});
  const auto slopes = gradients(sum(logit(x, 0.25)), {x})[0].to_vector<float>();
  CHECK(slopes == std::vector<float>{1 / (0.25F * 0.75F), 1 / (0.75F * 0.25F), 0, 0, 0});
}

TEST_CASE("numbers that are none: is_finite, is_inf, signbit, fmax, heaviside") {
  const Tensor x = Tensor::from({1.0F, -inf, inf, NAN, -0.0F});
  CHECK(is_finite(x).to_vector<bool>() == std::vector<bool>{true, false, false, false, true});
  CHECK(is_inf(x).to_vector<bool>() == std::vector<bool>{false, true, true, false, false});
  CHECK(signbit(x).to_vector<bool>()[4]);
  CHECK(fmax(x, 0).to_vector<float>() == std::vector<float>{1, 0, inf, 0, 0});
  CHECK(fmin(x, 0).to_vector<float>() == std::vector<float>{0, -inf, 0, 0, 0});
  CHECK(heaviside(x, 0.5).to_vector<float>() == std::vector<float>{1, 0, 1, 0, 0.5F});
}

TEST_CASE("nextafter steps among the numbers of each dtype") {
  const auto next = [](Dtype dtype, float from, float to) {
    return nextafter(cast(Tensor::from({from}), dtype), cast(Tensor::from({to}), dtype)).item<float>();
  };
  for (const float from : {1.0F, -1.0F, 0.0F, 3.5e-40F, 1e30F, inf, -inf, 0x1p-126F})
    for (const float to : {0.0F, inf, -inf, 2.0F, -2.0F}) {
      INFO(from << " to " << to);
      CHECK(next(Dtype::f32, from, to) == std::nextafter(from, to));
    }
  CHECK(next(Dtype::f16, 1, 2) == 1 + 0x1p-10F);
  CHECK(next(Dtype::f16, 1, 0) == 1 - 0x1p-11F);
  CHECK(next(Dtype::f16, 0, -1) == -0x1p-24F);
  CHECK(next(Dtype::f16, 0x1p-14F, 0) == 0x1p-14F - 0x1p-24F);
  CHECK(next(Dtype::f16, 65504, inf) == inf);
  CHECK(next(Dtype::f16, inf, 0) == 65504);
  CHECK(next(Dtype::bf16, 1, 2) == 1 + 0x1p-7F);
  CHECK(next(Dtype::bf16, -1, 0) == -1 + 0x1p-8F);
  CHECK(std::isnan(next(Dtype::f32, NAN, 1)));
  CHECK(std::isnan(next(Dtype::f32, 1, NAN)));
  CHECK_THROWS_AS(nextafter(ones({2}), ones({2}, Dtype::f16)), DtypeError);
}

TEST_CASE("modified Bessel functions at their ends, and the slope of i1 at 0") {
  const Tensor x = Tensor::from({0.0F, 90.0F, inf, -inf, 100.0F});
  const auto even = i0(x).to_vector<float>(), odd = i1(x).to_vector<float>();
  CHECK(even[0] == 1);
  CHECK(even[1] == Approx(std::cyl_bessel_i(0.0, 90.0)).epsilon(1e-5));
  CHECK(even[2] == inf);
  CHECK(even[3] == inf);
  CHECK(even[4] == inf);
  CHECK(odd[0] == 0);
  CHECK(odd[2] == inf);
  CHECK(odd[3] == -inf);
  const Tensor zero = Tensor::from({0.0F});
  CHECK(gradients(sum(i1(zero)), {zero})[0].item() == 0.5);
}
