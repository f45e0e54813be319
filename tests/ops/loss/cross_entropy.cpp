#include "tests/cases/loss/cross_entropy.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("cross_entropy") { check(cross_entropy_cases(), {"cross_entropy", "cross_entropy_backward"}); }

TEST_CASE("cross_entropy of targets out of range, and of none") {
  const Tensor logits = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  const auto probe = [&] { cross_entropy(logits, zeros({2}, Dtype::i64)).item<float>(); };
  with_each_solver("cross_entropy", probe, [&] {
    for (std::int64_t wrong : {-1, 3, 1 << 20}) {
      const auto losses = cross_entropy(logits, Tensor::from({std::int64_t{0}, wrong}), {.reduction = Reduction::none});
      CHECK(std::isfinite(losses.to_vector<float>()[0]));
      CHECK(std::isnan(losses.to_vector<float>()[1]));
      CHECK(std::isnan(cross_entropy(logits, Tensor::from({std::int64_t{0}, wrong})).item<float>()));
    }
    const Tensor ignored = Tensor::from({std::int64_t{-100}, std::int64_t{-100}});
    CHECK(std::isnan(cross_entropy(logits, ignored).item<float>()));
    CHECK(cross_entropy(logits, ignored, {.reduction = Reduction::sum}).item<float>() == 0);
    const Tensor large = logits * 1e4, targets = Tensor::from({std::int64_t{1}, std::int64_t{2}});
    CHECK(cross_entropy(large, targets, {.reduction = Reduction::none}).to_vector<float>() == std::vector<float>{1e4f, 0});
  });
  with_each_solver(
      "cross_entropy_backward", [&] { gradients(cross_entropy(logits, zeros({2}, Dtype::i64)), {logits})[0].to_vector<float>(); },
      [&] {
        const Tensor targets = Tensor::from({std::int64_t{7}, std::int64_t{-100}});
        const auto loss = cross_entropy(logits, targets, {.reduction = Reduction::sum});
        const auto gradient = gradients(loss, {logits})[0].to_vector<float>();
        for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(gradient[i]));
        for (std::size_t i = 3; i < 6; ++i) CHECK(gradient[i] == 0);
      });
}

TEST_CASE("cross_entropy refuses wrong inputs") {
  const Tensor logits = zeros({2, 3});
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({3}, Dtype::i64)),
                    Contains("cross_entropy: logits f32[2, 3] need targets of shape [2], got [3]"));
  CHECK_THROWS_AS(cross_entropy(logits, zeros({2}, Dtype::u8)), DtypeError);
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2})), Contains("[2]") && Contains("f32[2, 3]"));
  CHECK_THROWS_AS(cross_entropy(zeros({3}), zeros({1}, Dtype::i64)), ShapeError);
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2}, Dtype::i64), {.weight = zeros({2})}),
                    Contains("weight of shape [3], got [2]"));
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2}, Dtype::i64), {.label_smoothing = 1.5}), Contains("label_smoothing"));
}
