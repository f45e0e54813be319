#include "tests/cases/index/scatter.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("scatter, scatter_add and index_add") { check(scatter_cases(), {"index_add", "scatter_reduce", "last_picks"}); }

TEST_CASE("scatter moves whole numbers and truth values") {
  const Tensor indices = Tensor::from<std::int32_t>({2, 0});
  const Tensor big = Tensor::from<std::int64_t>({1LL << 40, 7});
  CHECK(scatter(zeros({3}, Dtype::i64), 0, indices, big).to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 0, 1LL << 40});
  CHECK(scatter(zeros({3}, Dtype::boolean), 0, indices, ones({2}, Dtype::boolean)).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{1, 0, 1});
}

TEST_CASE("scatter takes of a larger source what has an index") {
  const Tensor x = Tensor::from({1.F, 2.F, 3.F, 4.F}, {2, 2}), indices = Tensor::from<std::int64_t>({1, 0}, {1, 2});
  const Tensor source = Tensor::from({5.F, 6.F, 7.F, 8.F, 9.F, 10.F}, {2, 3}), g = Tensor::from({1.F, 2.F, 3.F, 4.F}, {2, 2});
  const auto same = [&](const Tensor& y, const std::vector<float>& want, const std::vector<float>& slopes) {
    CHECK(y.to_vector<float>() == want);
    CHECK(gradients(sum(y * g), {source})[0].to_vector<float>() == slopes);
  };
  same(scatter(x, 0, indices, source), {1, 6, 5, 4}, {3, 2, 0, 0, 0, 0});
  same(scatter_add(x, 0, indices, source), {1, 8, 8, 4}, {3, 2, 0, 0, 0, 0});
  same(scatter_reduce(x, 0, indices, source, ScatterReduction::prod), {1, 12, 15, 4}, {9, 4, 0, 0, 0, 0});
}

TEST_CASE("scatter of a number") {
  const Tensor indices = Tensor::from<std::int64_t>({2, 0, 5}), x = Tensor::from({1.F, 2.F, 3.F});
  CHECK(scatter(x, 0, indices, 7).to_vector<float>() == std::vector<float>{7, 2, 7});
  CHECK(scatter(ones({3}, Dtype::i32), 0, indices, -4).to_vector<std::int32_t>() == std::vector<std::int32_t>{-4, 1, -4});
  CHECK(gradients(sum(scatter(x, 0, indices, 7)), {x})[0].to_vector<float>() == std::vector<float>{0, 1, 0});
}

TEST_CASE("integers are added exactly, and wrap") {
  const Tensor indices = Tensor::from<std::int32_t>({1, 0, 1, 1});
  const auto big = Tensor::from<std::int64_t>({1LL << 60, 5, 3, -1});
  with_each_solver(
      "index_add",
      [&] {
        index_add(zeros({2, 2}, Dtype::i32), 0, zeros({1}, Dtype::i32), ones({1, 2}, Dtype::i32)).eval();
      },
      [&] {
        CHECK(scatter_add(full({2}, 2, Dtype::i64), 0, indices, big).to_vector<std::int64_t>() ==
              std::vector<std::int64_t>{7, (1LL << 60) + 4});
        CHECK(index_add(zeros({2}, Dtype::i64), 0, indices, big, -3).to_vector<std::int64_t>() ==
              std::vector<std::int64_t>{-15, -3 * ((1LL << 60) + 2)});
        // More picks than a block has.
        const Tensor many = zeros({5000}, Dtype::i32);
        CHECK(index_add(zeros({2}, Dtype::i32), 0, many, full({5000}, 16'777'217, Dtype::i32)).to_vector<std::int32_t>()[0] ==
              static_cast<std::int32_t>(static_cast<std::uint32_t>(5000LL * 16'777'217)));
        CHECK(scatter_add(full({2}, 250, Dtype::u8), 0, indices, full({4}, 3, Dtype::u8)).to_vector<std::int32_t>() ==
              std::vector<std::int32_t>{253, 3});
      });
  CHECK_THROWS_WITH(index_add(zeros({2}, Dtype::i64), 0, indices, big, 0.5),
                    "index_add: alpha 0.5 of i64[2] is not a whole number that fits it");
}

TEST_CASE("scatter_reduce is PyTorch's where there are zeros and equals, with its gradients") {
  const Tensor x = Tensor::from({2.F, 0.F, 3.F, -1.F, 5.F}), source = Tensor::from({4.F, 0.F, 3.F, -2.F, 0.5F, 3.F, 0.F});
  const Tensor indices = Tensor::from<std::int64_t>({0, 0, 2, 1, 1, 2, 3}), g = Tensor::from({1.F, 2.F, 3.F, 4.F, 5.F});
  using R = ScatterReduction;
  const auto same = [&](ScatterReduction reduction, bool own, const std::vector<double>& y, const std::vector<double>& by_x,
                        const std::vector<double>& by_source) {
    INFO("reduction " << static_cast<int>(reduction) << ", own " << own);
    const Tensor got = scatter_reduce(x, 0, indices, source, reduction, own);
    compare("values", to_array(got), {{5}, y}, 1e-6);
    const auto slopes = gradients(sum(got * g), {x, source});
    compare("by x", to_array(slopes[0]), {{5}, by_x}, 1e-6);
    compare("by source", to_array(slopes[1]), {{7}, by_source}, 1e-6);
  };
  same(R::sum, true, {6, -1.5, 9, -1, 5}, {1, 2, 3, 4, 5}, {1, 1, 3, 2, 2, 3, 4});
  same(R::sum, false, {4, -1.5, 6, 0, 5}, {0, 0, 0, 0, 5}, {1, 1, 3, 2, 2, 3, 4});
  same(R::prod, true, {0, 0, 27, 0, 5}, {0, -2, 27, 0, 5}, {0, 8, 27, 0, 0, 27, -4});
  same(R::prod, false, {0, -1, 9, 0, 5}, {0, 0, 0, 0, 5}, {0, 4, 9, 1, -4, 9, 4});
  same(R::mean, true, {2, -0.5, 3, -0.5, 5}, {1 / 3.0, 2 / 3.0, 1, 2, 5}, {1 / 3.0, 1 / 3.0, 1, 2 / 3.0, 2 / 3.0, 1, 2});
  same(R::mean, false, {2, -0.75, 3, 0, 5}, {0, 0, 0, 0, 5}, {0.5, 0.5, 1.5, 1, 1, 1.5, 4});
  same(R::amax, true, {4, 0.5, 3, 0, 5}, {0, 0, 1, 0, 5}, {1, 0, 1, 0, 2, 1, 4});
  same(R::amax, false, {4, 0.5, 3, 0, 5}, {0, 0, 0, 0, 5}, {1, 0, 1.5, 0, 2, 1.5, 4});
  same(R::amin, true, {0, -2, 3, -1, 5}, {0, 0, 1, 4, 5}, {0, 1, 1, 2, 0, 1, 0});
  same(R::amin, false, {0, -2, 3, 0, 5}, {0, 0, 0, 0, 5}, {0, 1, 1.5, 2, 0, 1.5, 4});
}

TEST_CASE("scatter_reduce of NaN, integers and more picks than a launch takes") {
  using R = ScatterReduction;
  const Tensor indices = Tensor::from<std::int32_t>({0, 0, 1}), source = Tensor::from({1.F, NAN, 2.F});
  for (auto reduction : {R::amax, R::amin, R::prod}) {
    const auto y = scatter_reduce(ones({2}), 0, indices, source, reduction).to_vector<float>();
    CHECK(std::isnan(y[0]));
    CHECK_FALSE(std::isnan(y[1]));
  }
  const auto whole = Tensor::from<std::int64_t>({-3, 1LL << 40, 5});
  CHECK(scatter_reduce(zeros({2}, Dtype::i64), 0, indices, whole, R::amax).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1LL << 40, 5});
  CHECK(scatter_reduce(zeros({2}, Dtype::i64), 0, indices, whole, R::prod, false).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{-3 * (1LL << 40), 5});
  CHECK(scatter_reduce(ones({2}, Dtype::i64), 0, indices, whole, R::sum, false).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{(1LL << 40) - 3, 5});
  constexpr std::int64_t count = 120'000;
  const Tensor numbers = arange(count, 0, 1, Dtype::i32);
  for (bool own : {true, false}) {
    CHECK(scatter_reduce(ones({2}, Dtype::i32), 0, numbers - numbers, numbers, R::amax, own).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{count - 1, 1});
    CHECK(scatter_reduce(ones({2}, Dtype::i32), 0, numbers - numbers, numbers, R::amin, own).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{0, 1});
  }
  CHECK_THROWS_WITH(scatter_reduce(zeros({2}, Dtype::i64), 0, indices, whole, R::mean), Contains("scatter_reduce"));
  CHECK_THROWS_AS(scatter_reduce(zeros({2}, Dtype::boolean), 0, indices, zeros({3}, Dtype::boolean), R::amax), DtypeError);
  CHECK_THROWS_AS(scatter_reduce(zeros({2}), 0, indices, ones({2}), R::amax), ShapeError);
}

TEST_CASE("scatter of more picks than a launch takes") {
  constexpr std::int64_t count = 120'000;
  const Tensor numbers = arange(count, 0, 1, Dtype::i32), source = cast(numbers, Dtype::f32);
  CHECK(sum(abs(scatter(zeros({count}), 0, flip(numbers, {0}), flip(source, {0})) - source)).item<float>() == 0);
  CHECK(scatter(zeros({2}), 0, numbers - numbers, source).to_vector<float>() == std::vector<float>{count - 1, 0});
  CHECK(scatter(zeros({2, 0}), 1, zeros({2, 3}, Dtype::i32), ones({2, 3})).shape() == Shape{2, 0});
  CHECK(scatter(zeros({2, 0}), 1, zeros({2, 3}, Dtype::i32), ones({2, 3})).to_vector<float>().empty());
}

TEST_CASE("each solver reduces and places NaN, the ends of types, and picks for two rounds of merging") {
  using R = ScatterReduction;
  const Tensor indices = Tensor::from<std::int32_t>({0, 0, 1}), source = Tensor::from({1.F, NAN, 2.F});
  constexpr std::int64_t count = 5000;
  const Tensor numbers = arange(count, 0, 1, Dtype::i32), many = cast(numbers, Dtype::f32);
  const auto probe = [&] { scatter_reduce(ones({2}), 0, indices, source, R::amax).eval(); };
  with_each_solver("scatter_reduce", probe, [&] {
    for (auto reduction : {R::amax, R::amin, R::prod}) {
      const auto y = scatter_reduce(ones({2}), 0, indices, source, reduction).to_vector<float>();
      CHECK(std::isnan(y[0]));
      CHECK_FALSE(std::isnan(y[1]));
    }
    const auto whole = Tensor::from<std::int64_t>({-3, 1LL << 40, 5}),
               ends = Tensor::from<std::int64_t>({INT64_MIN, INT64_MIN, 7});
    CHECK(scatter_reduce(zeros({2}, Dtype::i64), 0, indices, whole, R::prod, false).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{-3 * (1LL << 40), 5});
    CHECK(scatter_reduce(ones({2}, Dtype::i64), 0, indices, ends, R::amax, false).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{INT64_MIN, 7});
    CHECK(scatter_reduce(zeros({2}), 0, indices, full({3}, INFINITY), R::amin, false).to_vector<float>() ==
          std::vector<float>{INFINITY, INFINITY});
    for (bool own : {true, false}) {
      CHECK(scatter_reduce(ones({2}, Dtype::i32), 0, numbers - numbers, numbers, R::amax, own).to_vector<std::int32_t>() ==
            std::vector<std::int32_t>{count - 1, 1});
      CHECK(scatter_reduce(ones({2}, Dtype::i32), 0, numbers - numbers, numbers, R::amin, own).to_vector<std::int32_t>() ==
            std::vector<std::int32_t>{0, 1});
    }
  });
  with_each_solver(
      "last_picks", [&] { scatter(zeros({2}), 0, zeros({1}, Dtype::i32), ones({1})).eval(); },
      [&] {
        CHECK(sum(abs(scatter(zeros({count}), 0, flip(numbers, {0}), flip(many, {0})) - many)).item<float>() == 0);
        CHECK(scatter(zeros({2}), 0, numbers - numbers, many).to_vector<float>() == std::vector<float>{count - 1, 0});
      });
}

TEST_CASE("adding at many indices, most of them the same, some out of range") {
  // Whole numbers, whose sums are exact; picks for two rounds of merging, rows for many more groups than there are picks' rows.
  constexpr std::int64_t picks = 5000, width = 3;
  const auto row_of = [](std::int64_t pick, std::int64_t rows) {
    return pick % 3 == 0 ? pick * 7919 % (rows + 2) - 1 : rows / 2;
  };
  for (const std::int64_t rows : {2, 700, 20'000}) {
    INFO(rows << " rows");
    std::vector<std::int64_t> indices, places;
    std::vector<float> source, expected(static_cast<std::size_t>(rows * width), 0.0F);
    for (std::int64_t j = 0; j < picks; ++j) {
      const auto row = row_of(j, rows), at = row < 0 ? row + rows : row;
      indices.push_back(row);
      for (std::int64_t i = 0; i < width; ++i) {
        source.push_back(static_cast<float>(j % 11 - 4 + i));
        places.push_back(row);
        if (at < rows) expected[static_cast<std::size_t>(at * width + i)] += source.back();
      }
    }
    const Tensor x = zeros({rows, width}), added = Tensor::from(source, {picks, width});
    const Tensor shared = Tensor::from(indices), own = Tensor::from(places, {picks, width});
    with_each_solver(
        "index_add",
        [&] {
          index_add(zeros({2, 2}), 0, zeros({1}, Dtype::i32), ones({1, 2})).eval();
        },
        [&] {
          CHECK(index_add(x, 0, shared, added).to_vector<float>() == expected);
          CHECK(scatter_add(x, 0, own, added).to_vector<float>() == expected);
        });
  }
}

TEST_CASE("What is overwritten takes no gradient") {
  const Tensor x = ones({3}), source = ones({3}), indices = Tensor::from<std::int32_t>({1, 1, 5});
  const auto g = gradients(sum(scatter(x, 0, indices, source)), {x, source});
  CHECK(g[0].to_vector<float>() == std::vector<float>{1, 0, 1});
  CHECK(g[1].to_vector<float>() == std::vector<float>{0, 1, 0});
}

TEST_CASE("scatter refuses what does not fit") {
  const Tensor x = zeros({3, 4}), indices = zeros({2, 4}, Dtype::i32), source = zeros({2, 4});
  CHECK_THROWS_WITH(scatter(x, 2, indices, source), "scatter: dimension 2 is out of range for shape [3, 4]");
  CHECK_THROWS_AS(scatter(x, 0, source, source), DtypeError);
  CHECK_THROWS_WITH(scatter(zeros({3, 4}, Dtype::u8), 0, indices, 300), "scatter: 300 does not fit in u8");
  CHECK_THROWS_AS(scatter(x, 0, indices, cast(source, Dtype::f16)), DtypeError);
  CHECK_THROWS_WITH(scatter(x, 0, indices, zeros({2, 3})),
                    Contains("scatter: indices [2, 4] must be no larger than source [2, 3]"));
  CHECK_THROWS_AS(scatter_add(zeros({3, 3}), 0, indices, source), ShapeError);
  CHECK_THROWS_AS(scatter_add(zeros({3, 4}, Dtype::boolean), 0, indices, zeros({2, 4}, Dtype::boolean)), DtypeError);
  CHECK_THROWS_WITH(index_add(x, 0, indices, source), Contains("index_add: source [2, 4]"));
  CHECK_THROWS_AS(index_add(x, 0, zeros({3}, Dtype::i32), source), ShapeError);
}
