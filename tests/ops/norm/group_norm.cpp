#include "tests/cases/norm/group_norm.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("group, instance, mean square and local response normalisation") { check(group_norm_cases()); }

TEST_CASE("normalisations of nothing give nothing") {
  CHECK(group_norm(zeros({0, 4, 3}), 2, {}, {}).numel() == 0);
  CHECK(instance_norm(zeros({2, 0, 3}), {}, {}).numel() == 0);
  CHECK(rms_norm(zeros({0, 3}), 1, {}).to_vector<float>().empty());
  CHECK(local_response_norm(zeros({0, 3, 2}), 2).to_vector<float>().empty());
}

TEST_CASE("normalisations refuse wrong inputs") {
  CHECK_THROWS_WITH(group_norm(zeros({2, 6, 3}), 4, {}, {}), "group_norm: 6 channels of f32[2, 6, 3] do not make 4 groups");
  CHECK_THROWS_WITH(group_norm(zeros({2, 6, 3}), 3, zeros({3}), {}),
                    "group_norm: weight f32[3] is not one value for each channel of f32[2, 6, 3]");
  CHECK_THROWS_AS(group_norm(zeros({6}), 3, {}, {}), ShapeError);
  CHECK_THROWS_AS(instance_norm(zeros({2, 6}), {}, {}), ShapeError);
  CHECK_THROWS_WITH(rms_norm(zeros({2, 6}), 3, {}), "rms_norm: f32[2, 6] has no 3 last dimensions");
  CHECK_THROWS_WITH(rms_norm(zeros({2, 6}), 1, zeros({5})), Contains("rms_norm: weight f32[5] is not of the last dimensions"));
  CHECK_THROWS_WITH(local_response_norm(zeros({2, 6}), 0), "local_response_norm: size 0 is not positive");
  CHECK_THROWS_AS(local_response_norm(zeros({6}), 2), ShapeError);
  CHECK_THROWS_AS(group_norm(zeros({2, 6}, Dtype::i32), 3, {}, {}), DtypeError);
}
