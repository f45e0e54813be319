// The largest error of every function of the elementwise table over all of f32's exponents, and what it makes of zeros,
// infinities and NaN. docs/reference/dtypes.md shows the figures: CLNET_TEST_ERRORS=1 prints them.
#include <fmt/format.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "clnet/clnet.h"
#include "tests/cases/elementwise/catalogued.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

constexpr double least_normal = 0x1p-126, greatest = std::numeric_limits<float>::max();

struct Function {
  std::string name;
  Tensor (*call)(const Tensor&);
  std::function<double(double)> reference;
  double bound;  ///< in units in the last place of the result
  /// Where terms cancel, the error is measured against them rather than against what is left.
  double (*magnitude)(double) = nullptr;
};

double sigma(double x) { return 1 / (1 + std::exp(-x)); }
double half_of(double x) { return std::abs(x) / 2; }
double size_of(double x) { return std::abs(x); }

/// Below 0 the reflection's terms cancel near the zeros.
double of_gamma(double x) { return x < 0 ? 1 - x * std::log1p(-x) : 0; }
double of_digamma(double x) { return x < 0 ? 1 + std::abs(reference::cotangent(x)) + std::log1p(-x) : 0; }

/// Of the catalogue, and other parameters.
std::vector<Function> functions() {
  static const std::map<std::string, double (*)(double)> magnitudes{
      {"gelu", half_of}, {"tanhshrink", size_of}, {"lgamma", of_gamma}, {"digamma", of_digamma}};
  std::vector<Function> result;
  for (const auto& function : elementwise_functions()) {
    const auto& operation = *function.operation;
    if (!operation.unary || operation.takes == ops::Takes::bools) continue;
    const std::string name(operation.name);
    const auto magnitude = magnitudes.find(name);
    result.push_back(
        {name, operation.unary, function, operation.last_places, magnitude == magnitudes.end() ? nullptr : magnitude->second});
  }
  const std::vector<Function> variants{
      {"leaky_relu 0.25", [](const Tensor& x) { return leaky_relu(x, 0.25); }, [](double x) { return x > 0 ? x : 0.25 * x; },
       0.5},
      {"elu 1.5", [](const Tensor& x) { return elu(x, 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, 5},
      {"celu 0.5", [](const Tensor& x) { return celu(x, 0.5); }, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x / 0.5); },
       5},
      {"gelu (tanh)", [](const Tensor& x) { return gelu(x, Gelu::tanh); },
       [](double x) { return x < -1e4 ? -0.0 : x * sigma(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)); }, 9, half_of},
      {"clamp", [](const Tensor& x) { return clamp(x, -2, 3); }, [](double x) { return x < -2  ? -2
                                                                                       : x > 3 ? 3
                                                                                               : x; }, 0},
      {"pow 3", [](const Tensor& x) { return pow(x, 3.0); }, [](double x) { return std::pow(x, 3); }, 16},
      {"pow -0.5", [](const Tensor& x) { return pow(x, -0.5); }, [](double x) { return std::pow(x, -0.5); }, 16},
      {"pow 4", [](const Tensor& x) { return pow(x, 4.0); }, [](double x) { return std::pow(x, 4); }, 16},
      {"pow 0.5", [](const Tensor& x) { return pow(x, 0.5); }, [](double x) { return std::pow(x, 0.5); }, 16},
      {"pow 1.5", [](const Tensor& x) { return pow(x, 1.5); }, [](double x) { return std::pow(x, 1.5); }, 16},
      {"pow -1", [](const Tensor& x) { return pow(x, -1.0); }, [](double x) { return std::pow(x, -1); }, 16},
      {"pow -2", [](const Tensor& x) { return pow(x, -2.0); }, [](double x) { return std::pow(x, -2); }, 16},
      {"pow 2.7", [](const Tensor& x) { return pow(x, 2.7); }, [](double x) { return std::pow(x, double{2.7F}); }, 16},
      {"2 to the power", [](const Tensor& x) { return pow(2.0, x); }, [](double x) { return std::exp2(x); }, 16},
  };
  result.insert(result.end(), variants.begin(), variants.end());
  return result;
}

double last_place(double value) {
  const int exponent = std::max(std::ilogb(std::max(std::abs(value), least_normal)), -126);
  return std::ldexp(1.0, exponent - 23);
}

/// Every exponent and sign with fixed and random mantissas, then what is special.
std::vector<float> samples() {
  std::vector<float> result;
  std::mt19937 random(1);
  constexpr int per_exponent = 48;
  for (std::uint32_t high = 0; high < 512; ++high)
    for (int i = 0; i < per_exponent; ++i) {
      const std::uint32_t mantissa = i == 0 ? 0 : i == 1 ? 0x7fffff : random() & 0x7fffff;
      const float value = std::bit_cast<float>(high << 23 | mantissa);
      result.push_back(value);
    }
  // Where functions bend, densely.
  for (int i = -4000; i <= 4000; ++i) result.push_back(static_cast<float>(i) / 40 + 0.003F);
  for (float value : {0.0F, -0.0F, 1.0F, -1.0F, 3.0F, -3.0F, 20.0F, 88.7F, 89.0F, -88.0F, -104.0F, 1000.0F, -1000.0F})
    result.push_back(value);
  return result;
}

struct Worst {
  double error = 0;
  float at = 0;
};

Worst largest_error(const Function& f, const std::vector<float>& x, const std::vector<float>& got) {
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = f.reference(x[i]), value = got[i];
    INFO(f.name << " of " << x[i] << ": got " << value << ", want " << want);
    if (std::isnan(want)) {
      if (!std::isnan(value)) FAIL_CHECK("a number instead of NaN");
      continue;
    }
    // At the end of the range either the largest number or infinity.
    if (std::abs(want) > greatest * (1 - 1e-5)) {
      if (!(std::abs(value) > greatest * (1 - 1e-4) && std::signbit(value) == std::signbit(want))) FAIL_CHECK("not the limit");
      continue;
    }
    if (std::isnan(value) || std::isinf(value)) {
      // Devices may take denormal numbers for 0.
      const bool flushed = std::abs(x[i]) < least_normal && std::isinf(f.reference(std::copysign(0.0, x[i])));
      if (!flushed) FAIL_CHECK("no finite number");
      continue;
    }
    // Denormal numbers, on the way too (x e^x), have fewer digits, and none where devices take them for 0.
    constexpr double small = 128 * least_normal;
    if (std::abs(want) < small || std::abs(x[i]) < least_normal) {
      const double zero = f.reference(std::copysign(0.0, x[i]));
      const double error = std::min(std::abs(value - want), std::abs(value - zero));
      if (!(error <= std::max(small, f.bound * last_place(want)))) FAIL_CHECK("not a small number");
      continue;
    }
    const double scale = f.magnitude ? std::max(std::abs(want), f.magnitude(x[i])) : std::abs(want);
    const double error = std::abs(value - want) / last_place(scale);
    if (error > worst.error) worst = {error, x[i]};
  }
  return worst;
}

}  // namespace

TEST_CASE("elementwise functions keep their error over all exponents, and limits, infinities and NaN") {
  const auto x = samples();
  const Tensor input = Tensor::from(x, {static_cast<std::int64_t>(x.size())});
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  for (const auto& f : functions()) {
    INFO(f.name);
    const auto worst = largest_error(f, x, f.call(input).to_vector<float>());
    if (print) fmt::print("| `{}` | {:.2f} | {} |\n", f.name, worst.error, f.bound);
    INFO("largest error " << worst.error << " at " << worst.at);
    CHECK(worst.error <= f.bound);
  }
}

TEST_CASE("functions of two tensors keep their error, and what is special of zeros, infinities, NaN and whole numbers") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> special{0.0F,  -0.0F, 1,          -1,     2,        -2,        3,        -3,         0.5F,
                                   -0.5F, inf,   -inf,       NAN,    1e10F,    -1e10F,    16777215, 8388607.5F, 3e38F,
                                   4.5F,  -4.5F, 1.0000001F, -1e30F, 16777216, -16777215, 2e-38F,   -2e-38F};
  std::vector<float> a, b;
  for (float x : special)
    for (float y : special) {
      a.push_back(x);
      b.push_back(y);
    }
  std::mt19937 random(2);
  std::uniform_real_distribution<float> exponent(-40, 40), near_one(-1e-3F, 1e-3F);
  for (int i = 0; i < 20000; ++i) {
    const bool near = i % 2 == 0;
    a.push_back(near ? 1 + near_one(random) : std::exp2(exponent(random)));
    b.push_back(near ? exponent(random) * 2000 : exponent(random) / 10);
  }
  // Of any size.
  std::uniform_int_distribution<std::uint32_t> normal(0x00800000, 0x7f7fffff);
  for (int i = 0; i < 20000; ++i) {
    a.push_back(std::bit_cast<float>(normal(random)));
    b.push_back(std::bit_cast<float>(normal(random)));
  }
  const auto count = static_cast<std::int64_t>(a.size());
  const Tensor x = Tensor::from(a, {count}), y = Tensor::from(b, {count});
  const auto check = [&](const std::string& name, const Tensor& result, const auto& reference, double bound) {
    const auto got = result.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double want = reference(a[i], b[i]);
      const auto nearest = static_cast<float>(want);
      INFO(name << " of " << a[i] << " and " << b[i] << ": got " << got[i] << ", want " << want);
      if (std::isnan(want)) {
        if (!std::isnan(got[i])) FAIL_CHECK("a number instead of NaN");
      } else if (nearest == 0 || std::isinf(nearest)) {
        if (got[i] != nearest || std::signbit(got[i]) != std::signbit(nearest)) FAIL_CHECK("not the limit");
      } else if (std::abs(want) < least_normal) {
        if (!(std::abs(got[i] - want) <= least_normal)) FAIL_CHECK("not a small number");
      } else if (!(std::abs(got[i] - want) <= bound * last_place(want))) {
        FAIL_CHECK("an error of " << std::abs(got[i] - want) / last_place(want));
      }
    }
  };
  for (const auto& function : elementwise_functions()) {
    const auto& operation = *function.operation;
    if (!operation.binary || operation.takes != ops::Takes::floats) continue;
    check(
        std::string(operation.name), operation.binary(x, y),
        [&](double first, double second) {
          const double operands[] = {first, second};
          return function.formula->of(operands, function.parameters.data());
        },
        operation.last_places);
  }
}
