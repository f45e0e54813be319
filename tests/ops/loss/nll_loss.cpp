#include "tests/cases/loss/nll_loss.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/device.h"
#include "lib/exec/upload.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("nll_loss") { check(nll_loss_cases()); }

TEST_CASE("nll_loss of log_softmax is cross_entropy") {
  manual_seed(1);
  const Tensor x = randn({6, 5}), t = Tensor::from<std::int64_t>({0, 4, 2, 2, 1, 3});
  const auto a = nll_loss(log_softmax(x, 1), t), b = cross_entropy(x, t);
  CHECK(a.item<float>() == Approx(b.item<float>()).epsilon(1e-6));
  const auto da = gradients(a, {x})[0].to_vector<float>(), db = gradients(b, {x})[0].to_vector<float>();
  for (std::size_t i = 0; i < da.size(); ++i) CHECK(da[i] == Approx(db[i]).margin(1e-7));
}

TEST_CASE("nll_loss takes one sample, gives NaN for what is no class on the device, and ignores in the mean, too") {
  const Tensor one = Tensor::from({-1.f, -2.f, -3.f});
  CHECK(nll_loss(one, Tensor::scalar(2, Dtype::i64)).item<float>() == 3);
  CHECK(nll_loss(one, Tensor::scalar(2, Dtype::i64), {.reduction = Reduction::none}).shape() == Shape{});
  const Tensor x = Tensor::from({-1.f, -2.f, -3.f, -4.f, -5.f, -6.f}, {2, 3});
  for (std::int64_t wrong : {-1, 3, 7}) {
    const Tensor targets = exec::copy_now(Tensor::from<std::int64_t>({1, wrong}), Device::current());
    const auto losses = nll_loss(x, targets, {.reduction = Reduction::none});
    const auto values = losses.to_vector<float>();
    CHECK(values[0] == 2);
    CHECK(std::isnan(values[1]));
  }
  CHECK(nll_loss(x, Tensor::from<std::int64_t>({1, -100})).item<float>() == 2);
  CHECK(std::isnan(nll_loss(x, Tensor::from<std::int64_t>({-100, -100})).item<float>()));
}

TEST_CASE("nll_loss refuses wrong inputs") {
  CHECK_THROWS_AS(nll_loss(zeros({2, 3}), zeros({2})), DtypeError);
  CHECK_THROWS_WITH(nll_loss(zeros({2, 3}), zeros({3}, Dtype::i64)), "nll_loss: targets i64[3] do not fit f32[2, 3]");
  CHECK_THROWS_AS(nll_loss(zeros({2, 3}), zeros({2}, Dtype::i64), {.weight = zeros({2})}), ShapeError);
  CHECK_THROWS_AS(nll_loss(zeros({3}), zeros({3}, Dtype::i64)), ShapeError);
}
