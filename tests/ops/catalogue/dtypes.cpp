// Every operation in every dtype against the double-precision reference of the rounded inputs, or its refusal. What may be
// missing is the rounding to the result's dtype, and what f32 arithmetic of so many steps loses, as the catalogue says.
// CLNET_TEST_ERRORS=1 CLNET_TEST_ALL=1 prints which part of it was used.
#include "tests/ops/catalogue/dtypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

constexpr Dtype all_dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32,
                                Dtype::i64, Dtype::i8,  Dtype::u8,   Dtype::boolean};

/// What an integer dtype makes of a number.
double stored(double value, Dtype dtype) {
  const auto wrapped = [&](double range, double least) {
    const double rest = std::fmod(std::trunc(value) - least, range);
    return rest + least + (rest < 0 ? range : 0);
  };
  switch (dtype) {
    case Dtype::i8: return wrapped(256, -128);
    case Dtype::u8: return wrapped(256, 0);
    case Dtype::i32: return wrapped(0x1p32, -0x1p31);
    case Dtype::i64: return std::trunc(value);
    case Dtype::boolean: return value != 0;
    default: return value;
  }
}

double least_step(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-25 : 0x1p-133; }

struct Run {
  Tensor result;
  Array want;
};

Run run(const Example& entry, Dtype dtype) {
  Arrays arrays;
  std::vector<Tensor> tensors;
  const auto inputs = drawn_inputs(entry);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto input = inputs[i];
    if (input.dtype == Dtype::f32 && !is_floating(dtype)) {
      input.dtype = dtype;
      input.low = 1;
      input.high = dtype == Dtype::boolean ? 1 : 5;
    }
    auto values = make_values(input, i + 1);
    tensors.push_back(to_tensor(values, inputs[i].dtype == Dtype::f32 ? dtype : input.dtype));
    arrays.push_back(std::move(values));
  }
  const Tensor result = entry.run(tensors);
  return {result, (dtype == Dtype::boolean && entry.of_bools ? entry.of_bools : entry.reference)(arrays)};
}

/// The largest error as a part of what is allowed.
double largest_share(const Run& run, const ops::Operation& entry) {
  const auto dtype = run.result.dtype();
  const auto got = run.result.to_vector<double>();
  double most = 0, share = 0;
  for (double value : run.want.values) most = std::max(most, std::abs(value));
  for (std::int64_t i = 0; i < run.want.numel(); ++i) {
    const double want = is_floating(dtype) ? run.want[i] : stored(run.want[i], dtype);
    const double allowed = is_floating(dtype)
                               ? entry.dtype_roundings * unit_roundoff(dtype) * std::abs(want) + least_step(dtype) +
                                     (entry.cut_off ? unit_roundoff(dtype) : 0) + entry.roundings * 0x1p-24 * most
                               : 0;
    const double error = std::abs(got[static_cast<std::size_t>(i)] - want);
    INFO("element " << i << ": got " << got[static_cast<std::size_t>(i)] << ", want " << want << ", allowed " << allowed);
    if (!(error <= allowed)) {
      CHECK(error <= allowed);
      return error / allowed;
    }
    if (allowed > 0) share = std::max(share, error / allowed);
  }
  return share;
}

}  // namespace

TEST_CASE("every operation in every dtype is right within its storage format, or is refused by name") {
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  const auto& entries = examples();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const auto& entry = entries[index];
    const auto& operation = ops::catalogued(entry.operation);
    const auto sampled = sampled_dtypes(index);
    // One of the integers, in turn.
    std::vector<Dtype> whole;
    for (auto dtype : all_dtypes)
      if (!is_floating(dtype) && takes(operation.takes, dtype)) whole.push_back(dtype);
    const auto is_sampled = [&](Dtype dtype) {
      if (all_wanted() || dtype == Dtype::f32) return true;
      if (is_floating(dtype)) return std::find(sampled.begin(), sampled.end(), dtype) != sampled.end();
      return dtype == whole[index % whole.size()];
    };
    double share = 0;
    for (auto dtype : all_dtypes) {
      INFO(entry.operation << " in " << to_string(dtype));
      if (!takes(operation.takes, dtype)) {
        CHECK_THROWS_AS(run(entry, dtype), DtypeError);
        CHECK_THROWS_WITH(run(entry, dtype), Contains(entry.operation));
        continue;
      }
      if (!is_sampled(dtype)) continue;
      const auto outcome = run(entry, dtype);
      CHECK(outcome.result.dtype() == result_dtype(entry.gives.value_or(operation.gives), dtype));
      REQUIRE(outcome.result.shape() == outcome.want.shape);
      share = std::max(share, largest_share(outcome, operation));
    }
    if (print) fmt::print("{} {:.2f} |\n", dtype_row(entry), share);
  }
}

TEST_CASE("gradients in f16 and bf16 are those in f32 of the same values, but for roundings to the dtype") {
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  const auto& entries = examples();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const auto& entry = entries[index];
    const auto& operation = ops::catalogued(entry.operation);
    if (!takes(operation.takes, Dtype::f16)) continue;
    // Not those in which the forward pass is.
    for (auto dtype : sampled_dtypes(index + 1)) {
      INFO(entry.operation << entry.note << " in " << to_string(dtype));
      std::vector<Tensor> narrow, wide, narrow_inputs, wide_inputs;
      const auto inputs = drawn_inputs(entry);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& input = inputs[i];
        const bool floating = input.dtype == Dtype::f32;
        auto values = make_values(input, i + 1);
        narrow.push_back(to_tensor(values, floating ? dtype : input.dtype));
        // The values are rounded now.
        wide.push_back(to_tensor(values, input.dtype));
        if (!floating) continue;
        narrow_inputs.push_back(narrow.back());
        wide_inputs.push_back(wide.back());
      }
      const Tensor y = entry.run(narrow), wide_y = entry.run(wide);
      if (!is_floating(y.dtype())) continue;
      auto weights = make_values({y.shape(), 0.5, 1}, 100);
      const Tensor g = to_tensor(weights, y.dtype()), wide_g = to_tensor(weights, wide_y.dtype());
      const auto got = gradients({&y, 1}, {&g, 1}, narrow_inputs), want = gradients({&wide_y, 1}, {&wide_g, 1}, wide_inputs);
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].dtype() == dtype);
        const auto near = to_array(got[i]), exact = to_array(want[i]);
        double most = 0;
        for (double value : exact.values) most = std::max(most, std::abs(value));
        for (std::int64_t k = 0; k < exact.numel(); ++k) {
          const double error = std::abs(near[k] - exact[k]);
          worst = std::max(worst, (error - 2 * least_step(dtype)) / (unit_roundoff(dtype) * most + 1e-300));
          REQUIRE_FALSE(std::isnan(error));
        }
      }
      CHECK(worst <= 4);
      if (print) fmt::print("gradient of {}{} in {}: {:.2f}\n", entry.operation, entry.note, to_string(dtype), worst);
    }
  }
}
