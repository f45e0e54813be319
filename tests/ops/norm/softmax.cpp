#include "tests/cases/norm/softmax.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"
#include "tests/support/skip.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("softmax") { check(softmax_cases(), {"softmax"}); }

TEST_CASE("softmax of infinities and NaN") {
  const std::string solver = GENERATE("cpu", "gpu", "direct");
  if (solver == "cpu" && !Device::current().info().prefers_vector_kernels) return test::skip("a solver for CPUs");
  const exec::ForceSolver force("softmax", solver);
  const auto y = softmax(Tensor::from({0.f, -INFINITY, 0.f}), 0).to_vector<float>();
  CHECK(y == std::vector<float>{0.5f, 0, 0.5f});
  for (float value : softmax(Tensor::from({0.f, std::nanf(""), 1.f}), 0).to_vector<float>()) CHECK(std::isnan(value));
  for (float value : softmax(full({3}, -INFINITY), 0).to_vector<float>()) CHECK(std::isnan(value));
  CHECK(softmax(zeros({0, 3}), 1).to_vector<float>().empty());
  CHECK(softmax(zeros({3, 0}), 0).to_vector<float>().empty());

  // Along columns longer than a block, and along such rows: -inf only at first, everywhere, NaN or +inf somewhere, and none of
  // them.
  constexpr std::int64_t length = 21, columns = 5;
  std::vector<float> values(length * columns, 0.f);
  for (std::size_t i = 0; i < length; ++i) {
    if (i < 17) values[i * columns] = -INFINITY;
    values[i * columns + 1] = -INFINITY;
  }
  values[9 * columns + 2] = std::nanf("");
  values[9 * columns + 3] = INFINITY;
  const auto x = Tensor::from(values, {length, columns}), rows = transpose(x, 0, 1).detach();
  for (const bool by_rows : {false, true}) {
    const auto in_columns = [&](const Tensor& result) { return (by_rows ? transpose(result, 0, 1) : result).to_vector<float>(); };
    const auto p = in_columns(by_rows ? softmax(rows, 1) : softmax(x, 0));
    const auto logarithms = in_columns(by_rows ? log_softmax(rows, 1) : log_softmax(x, 0));
    for (std::size_t i = 0; i < length; ++i) {
      CHECK(p[i * columns] == (i < 17 ? 0.f : 0.25f));
      CHECK(std::exp(logarithms[i * columns]) == Approx(i < 17 ? 0.f : 0.25f));
      for (std::size_t k = 1; k < 4; ++k) CHECK((std::isnan(p[i * columns + k]) && std::isnan(logarithms[i * columns + k])));
      CHECK(p[i * columns + 4] == Approx(1.f / 21));
    }
  }
}

TEST_CASE("softmax refuses wrong inputs") {
  CHECK_THROWS_WITH(softmax(zeros({2, 3}), 2), Contains("softmax: dimension 2 is out of range for shape [2, 3]"));
  CHECK_THROWS_AS(log_softmax(zeros({2, 3}, Dtype::i32), 1), DtypeError);
}
