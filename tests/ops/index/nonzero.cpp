#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;

using Places = std::vector<std::int64_t>;

TEST_CASE("nonzero gives coordinates in row-major order") {
  const Tensor x = Tensor::from({0.F, 2.F, 0.F, -0.F, NAN, 1.F}, {2, 3});
  const Tensor places = nonzero(x);
  CHECK(places.shape() == Shape{3, 2});
  CHECK(places.to_vector<std::int64_t>() == Places{0, 1, 1, 1, 1, 2});
  CHECK(gather_nd(x, places).to_vector<float>()[0] == 2);
  CHECK(nonzero(ones({})).shape() == Shape{1, 0});
  CHECK(nonzero(zeros({2, 0})).shape() == Shape{0, 2});
  CHECK(nonzero(x > 1.0).to_vector<std::int64_t>() == Places{0, 1});
}

TEST_CASE("masked_select and its gradient") {
  const Tensor x = Tensor::from({1.F, 2.F, 3.F, 4.F}, {2, 2}), mask = Tensor::from(std::vector{true, false});
  const Tensor y = masked_select(x, mask);
  CHECK(y.to_vector<float>() == std::vector<float>{1, 3});
  CHECK(gradients(sum(y * y), {x})[0].to_vector<float>() == std::vector<float>{2, 0, 6, 0});
  CHECK(masked_select(full({}, 2), x > 2.0).to_vector<float>() == std::vector<float>{2, 2});
  CHECK(masked_select(x, x > 9.0).shape() == Shape{0});
  CHECK_THROWS_WITH(masked_select(x, x), "masked_select: the mask must be bool, got f32[2, 2]");
  CHECK_THROWS_AS(masked_select(x, ones({3}, Dtype::boolean)), ShapeError);
}

TEST_CASE("unique with places and counts") {
  const Tensor x = Tensor::from({5, -1, 5, 2, 2, 5}, {2, 3});
  const auto [values, inverse, counts] = unique(x);
  CHECK(values.to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, 2, 5});
  CHECK(inverse.shape() == x.shape());
  CHECK(inverse.to_vector<std::int64_t>() == Places{2, 0, 2, 1, 1, 2});
  CHECK(counts.to_vector<std::int64_t>() == Places{1, 2, 3});
  const auto runs = unique_consecutive(x);
  CHECK(runs.values.to_vector<std::int32_t>() == std::vector<std::int32_t>{5, -1, 5, 2, 5});
  CHECK(runs.inverse.to_vector<std::int64_t>() == Places{0, 1, 2, 3, 3, 4});
  CHECK(runs.counts.to_vector<std::int64_t>() == Places{1, 1, 1, 2, 1});
  CHECK(unique(Tensor::from({NAN, 1.F, NAN})).counts.to_vector<std::int64_t>() == Places{1, 1, 1});
  CHECK(unique(zeros({0, 2}, Dtype::u8)).values.dtype() == Dtype::u8);
  CHECK(unique(Tensor::from<std::int64_t>({1LL << 60, (1LL << 60) + 1})).counts.numel() == 2);
}

TEST_CASE("slices that differ, with places and counts") {
  const Tensor x = Tensor::from({3, 1, 3, 1, 2, 2, 3, 0, 3, 1, 2, 2}, {4, 3});
  const auto rows = unique(x, 0);
  CHECK(rows.values.shape() == Shape{3, 3});
  CHECK(rows.values.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 2, 3, 0, 3, 3, 1, 3});
  CHECK(rows.inverse.to_vector<std::int64_t>() == Places{2, 0, 1, 0});
  CHECK(rows.counts.to_vector<std::int64_t>() == Places{2, 1, 1});
  const auto columns = unique(transpose(x, 0, 1), -1);
  CHECK(columns.values.to_vector<std::int32_t>() == transpose(rows.values, 0, 1).to_vector<std::int32_t>());
  CHECK(columns.counts.to_vector<std::int64_t>() == Places{2, 1, 1});
  const auto runs = unique_consecutive(index_select(x, 0, Tensor::from({1, 3, 0})), 0);
  CHECK(runs.values.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 2, 3, 1, 3});
  CHECK(runs.counts.to_vector<std::int64_t>() == Places{2, 1});
  const Tensor nans = Tensor::from({NAN, 1.F, NAN, 1.F, -0.F, 2.F, 0.F, 2.F}, {4, 2});
  CHECK(unique(nans, 0).counts.to_vector<std::int64_t>() == Places{2, 1, 1});
  CHECK(unique(zeros({0, 3}), 0).values.shape() == Shape{0, 3});
  CHECK_THROWS_WITH(unique(zeros({2, 0}), 0), "unique: slices of f32[2, 0] along dimension 0 have no elements");
  CHECK_THROWS_AS(unique(x, 2), ShapeError);
}

TEST_CASE("unique of many numbers of both signs") {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(i * 7919 % 1237 - 600) * 0.37F);
  const auto [found, inverse, counts] = unique(Tensor::from(values));
  auto want = values;
  std::sort(want.begin(), want.end());
  want.erase(std::unique(want.begin(), want.end()), want.end());
  CHECK(found.to_vector<float>() == want);
  CHECK(index_select(found, 0, inverse).to_vector<float>() == values);
  CHECK(sum(counts).item<std::int64_t>() == 5000);
}

TEST_CASE("a mask takes the parts along its dimensions") {
  const Tensor x = Tensor::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {3, 2});
  const Tensor rows = x[Tensor::from(std::vector{true, false, true})];
  CHECK(rows.shape() == Shape{2, 2});
  CHECK(rows.to_vector<float>() == std::vector<float>{1, 2, 5, 6});
  CHECK(gradients(sum(rows * rows), {x})[0].to_vector<float>() == std::vector<float>{2, 4, 0, 0, 10, 12});
  CHECK(x[x > 3.0].to_vector<float>() == std::vector<float>{4, 5, 6});
  CHECK(x[Tensor::from(std::vector{false, false, false})].shape() == Shape{0, 2});
  CHECK(x[full({}, 1, Dtype::boolean)].shape() == Shape{1, 3, 2});
  CHECK(x[full({}, 0, Dtype::boolean)].shape() == Shape{0, 3, 2});
  CHECK_THROWS_WITH(x[ones({2}, Dtype::boolean)], "x[mask]: the mask bool[2] does not have the first extents of f32[3, 2]");
  CHECK_THROWS_AS(x[ones({3, 2, 1}, Dtype::boolean)], ShapeError);
  CHECK_THROWS_WITH(compile([](const Tensor& in) { return in[in > 0.0]; })(x),
                    "x[mask]: the shape depends on values; not inside compile()");
}

TEST_CASE("shapes that depend on values are refused inside compile()") {
  const Tensor x = ones({3});
  CHECK_THROWS_WITH(compile([](const Tensor& in) { return nonzero(in); })(x),
                    "nonzero: the shape depends on values; not inside compile()");
  CHECK_THROWS_WITH(compile([](const Tensor& in) { return masked_select(in, in > 0.0); })(x),
                    "masked_select: the shape depends on values; not inside compile()");
  CHECK_THROWS_WITH(compile([](const Tensor& in) { return unique(in).values; })(x),
                    "unique: the shape depends on values; not inside compile()");
}
