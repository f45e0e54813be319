// Every operation in f64: against its reference in double precision, with gradients by finite differences, or its refusal.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string_view>

#include "clnet/debug.h"
#include "tests/ops/catalogue/dtypes.h"
#include "tests/ops/check.h"
#include "tests/support/skip.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

const std::set<std::string_view> refusing{"nms"};
/// Their references compute places in f32, as PyTorch does for f32: tests/ops/f64.cpp has others.
const std::set<std::string_view> referred_in_f32{"quantile", "nanquantile"};
/// Several elements go to one place, and the gradient does not ask which stays, as in PyTorch.
const std::set<std::string_view> not_differentiable{"max_unpool1d"};

bool is_there() {
  if (Device::current().info().fp64) return true;
  clnet::test::skip("the device has no doubles");
  return false;
}

struct InF64 {
  std::vector<Tensor> tensors;
  Arrays arrays;
  explicit InF64(const Example& entry) {
    const auto inputs = drawn_inputs(entry);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      auto values = make_values(inputs[i], i + 1);
      tensors.push_back(to_tensor(values, inputs[i].dtype == Dtype::f32 ? Dtype::f64 : inputs[i].dtype));
      arrays.push_back(std::move(values));
    }
  }
};

bool takes_f64(const Example& entry) {
  return takes(ops::catalogued(entry.operation).takes, Dtype::f64) && !refusing.contains(entry.operation);
}

}  // namespace

TEST_CASE("every operation computes f64 in double, or refuses it by name") {
  if (!is_there()) return;
  for (const auto& entry : examples()) {
    INFO(entry.operation << entry.note);
    const InF64 in(entry);
    if (!takes_f64(entry)) {
      CHECK_THROWS_AS(entry.run(in.tensors), DtypeError);
      CHECK_THROWS_WITH(entry.run(in.tensors), Contains(entry.operation));
      continue;
    }
    try {
      const Tensor result = entry.run(in.tensors);
      // The norm of tensors of any dtypes, and sums of weights, are f32, but of f64.
      const auto dtype = result_dtype(entry.gives.value_or(ops::catalogued(entry.operation).gives), Dtype::f64);
      const bool is_f64 = entry.operation == "global_norm" || entry.operation == "bincount";
      CHECK(result.dtype() == (is_f64 ? Dtype::f64 : dtype));
      // Its reference takes f32's neighbour: tests/ops/f64.cpp has f64's.
      if (entry.operation == "nextafter") continue;
      const auto want = entry.reference(in.arrays);
      REQUIRE(result.shape() == want.shape);
      const auto got = result.to_vector<double>();
      double most = 0, worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        most = std::max(most, std::abs(want.values[i]));
        if (!(got[i] == want.values[i])) worst = std::max(worst, std::abs(got[i] - want.values[i]));
        CHECK(std::isnan(got[i]) == std::isnan(want.values[i]));
      }
      const bool narrow = result.dtype() == Dtype::f32 || referred_in_f32.contains(entry.operation);
      CHECK(worst <= (narrow ? 1e-7 : 1e-12) * most);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("gradients in f64 agree with finite differences to 1e-6") {
  if (!is_there()) return;
  for (const auto& entry : examples()) {
    const auto& operation = ops::catalogued(entry.operation);
    if (!takes_f64(entry) || operation.gradient == ops::Gradient::none || not_differentiable.contains(entry.operation)) continue;
    INFO(entry.operation << entry.note);
    try {
      const InF64 in(entry);
      if (entry.run(in.tensors).dtype() != Dtype::f64) continue;
      const auto check = check_gradients([&](const std::vector<Tensor>& x) { return entry.run(x); }, in.tensors, {.elements = 3});
      INFO(check.worst);
      CHECK(check.largest_error <= 1e-6);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}
