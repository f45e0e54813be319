// Pieces, axes and products: errors, and what the cases do not show.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

TEST_CASE("pieces name the operation in their errors, and share the values of tensors without elements") {
  const Tensor x = ones({2, 3});
  CHECK_THROWS_WITH(chunk(x, 0), Contains("chunk: 0 pieces"));
  CHECK_THROWS_WITH(split(x, 0, 1), Contains("split: the length 0"));
  CHECK_THROWS_WITH(tensor_split(x, 0), Contains("tensor_split: 0 pieces"));
  CHECK_THROWS_WITH(select(x, 1, 3), Contains("select: there is no element 3"));
  CHECK_THROWS_WITH(movedim(x, {0, 1}, {0}), Contains("movedim: 2 dimensions for 1 places"));
  CHECK_THROWS_WITH(movedim(x, {0, 0}, {0, 1}), Contains("movedim: dimension 0 is given twice"));
  CHECK_THROWS_WITH(unflatten(x, 1, {2, 2}), Contains("unflatten: extents [2, 2]"));
  CHECK_THROWS_WITH(unflatten(x, 1, {-1, -1}), Contains("unflatten: extents [-1, -1]"));
  CHECK_THROWS_WITH(rot90(x, 1, {0}), Contains("rot90: needs two dimensions"));
  CHECK_THROWS_WITH(fliplr(ones({3})), Contains("fliplr"));
  CHECK_THROWS_WITH(diag_embed(Tensor::scalar(1)), Contains("diag_embed"));
  CHECK_THROWS_WITH(hstack({}), Contains("hstack: no tensors"));
  CHECK_THROWS_WITH(vstack({x, ones({2, 4})}), Contains("vstack: [2, 3] and [2, 4]"));
  CHECK_THROWS_WITH(meshgrid({x}), Contains("meshgrid"));
  CHECK_THROWS_WITH(broadcast_tensors({x, ones({4})}), Contains("broadcast_tensors"));
  CHECK(unbind(ones({0, 3})).empty());
  CHECK(squeeze(ones({1, 1})).shape() == Shape{});
  CHECK(unflatten(ones({0}), 0, {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("chunks of an empty dimension are as many empty pieces") {
  const auto pieces = chunk(zeros({0, 3}), 3);
  REQUIRE(pieces.size() == 3);
  for (const auto& piece : pieces) CHECK(piece.shape() == Shape{0, 3});
}

TEST_CASE("a tensor of indices takes lines of the first dimension") {
  const Tensor x = reshape(arange(6), Shape{3, 2});
  const Tensor indices = Tensor::from(std::vector<std::int64_t>{2, 0, -1});
  CHECK(x[indices].to_vector<std::int64_t>() == std::vector<std::int64_t>{4, 5, 0, 1, 4, 5});
  CHECK(x[reshape(indices, Shape{3, 1})].shape() == Shape{3, 1, 2});
  CHECK_THROWS_AS(x[ones({2})], DtypeError);
}

TEST_CASE("products of fixed ranks refuse others by name") {
  const Tensor m = ones({2, 3}), v = ones({3});
  CHECK_THROWS_WITH(mm(m, m), Contains("mm: [2, 3] x [2, 3] are not {M, K} x {K, N}"));
  CHECK_THROWS_WITH(bmm(m, m), Contains("bmm"));
  CHECK_THROWS_WITH(mv(m, ones({2})), Contains("mv"));
  CHECK_THROWS_WITH(dot(m, v), Contains("dot"));
  CHECK_THROWS_WITH(inner(m, ones({2})), Contains("inner"));
  CHECK_THROWS_WITH(addmv(ones({3}), m, v), Contains("addmv: shapes [3] and [2]"));
  CHECK_THROWS_WITH(addr(m, m, v), Contains("addr"));
  CHECK_THROWS_WITH(tensordot(m, v, 2), Contains("tensordot"));
  CHECK_THROWS_WITH(tensordot(m, v, {0}, {0}), Contains("tensordot: dimension 0 of [2, 3] and 0 of [3] differ"));
  CHECK_THROWS_WITH(tensordot(m, m, {0, 0}, {0, 1}), Contains("come twice"));
  CHECK_THROWS_WITH(cross(m, ones({2, 2})), Contains("cross"));
  CHECK_THROWS_WITH(cross(ones({2}), ones({2})), Contains("is not 3"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(addmv(full({2}, nan), m, v, 0).to_vector<float>() == std::vector<float>{3, 3});
  CHECK(mm(ones({2, 0}), ones({0, 3})).to_vector<float>() == std::vector<float>(6, 0));
}

TEST_CASE("sums without NaN, and what is close") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({1.0F, nan, 3.0F, nan}, {2, 2});
  CHECK(nansum(x, {0}).to_vector<float>() == std::vector<float>{4, 0});
  const auto means = nanmean(x, {0}).to_vector<float>();
  CHECK(means[0] == 2);
  CHECK(std::isnan(means[1]));
  CHECK(gradients(nansum(x), {x})[0].to_vector<float>() == std::vector<float>{1, 0, 1, 0});
  const Tensor y = Tensor::from({inf, -inf, nan, 1.0F}), z = Tensor::from({inf, inf, nan, 1.000001F});
  CHECK(is_close(y, z).to_vector<bool>() == std::vector<bool>{true, false, false, true});
  CHECK(is_close(y, z, 0, 0, true).to_vector<bool>() == std::vector<bool>{true, false, true, false});
  CHECK(all_close(ones({3}), ones({3}) + 1e-7));
  CHECK_FALSE(all_close(ones({3}), ones({4})));
  CHECK_THROWS_WITH(is_close(ones({3}), ones({3}), -1), Contains("is_close: tolerances"));
  CHECK_THROWS_WITH(diff(ones({3}), -1), Contains("diff: the order -1"));
  CHECK(diff(ones({3}), 5).numel() == 0);
  CHECK_THROWS_WITH(cdist(ones({3}), ones({3})), Contains("cdist"));
  CHECK_THROWS_WITH(pairwise_distance(Tensor::scalar(1), Tensor::scalar(2)), Contains("pairwise_distance"));
  CHECK(normalize(zeros({1, 3})).to_vector<float>() == std::vector<float>(3, 0));
}
