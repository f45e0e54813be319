#include "tests/cases/loss/cross_entropy.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/exec/upload.h"
#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("cross_entropy") { check(cross_entropy_cases(), {"cross_entropy", "cross_entropy_backward"}); }

TEST_CASE("cross_entropy of targets out of range on the device, and of none") {
  const auto on_device = [](const Tensor& targets) { return exec::copy_now(targets, Device::current()); };
  const Tensor logits = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  const auto probe = [&] { cross_entropy(logits, zeros({2}, Dtype::i64)).item<float>(); };
  with_each_solver("cross_entropy", probe, [&] {
    for (std::int64_t wrong : {-1, 3, 1 << 20}) {
      const Tensor targets = on_device(Tensor::from({std::int64_t{0}, wrong}));
      const auto losses = cross_entropy(logits, targets, {.reduction = Reduction::none});
      CHECK(std::isfinite(losses.to_vector<float>()[0]));
      CHECK(std::isnan(losses.to_vector<float>()[1]));
      CHECK(std::isnan(cross_entropy(logits, targets).item<float>()));
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
        const Tensor targets = on_device(Tensor::from({std::int64_t{7}, std::int64_t{-100}}));
        const auto loss = cross_entropy(logits, targets, {.reduction = Reduction::sum});
        const auto gradient = gradients(loss, {logits})[0].to_vector<float>();
        for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(gradient[i]));
        for (std::size_t i = 3; i < 6; ++i) CHECK(gradient[i] == 0);
      });
}

TEST_CASE("losses name a label from the host that is no class, and its sample") {
  const Tensor logits = zeros({2, 3});
  CHECK_THROWS_WITH(cross_entropy(logits, Tensor::from({1, 5})),
                    "cross_entropy: label 5 of sample 1 is no class: there are 3, from 0, and ignore_index -100");
  CHECK_THROWS_WITH(cross_entropy(logits, Tensor::from<std::int64_t>({-1, 0}), {.ignore_index = 255}),
                    "cross_entropy: label -1 of sample 0 is no class: there are 3, from 0, and ignore_index 255");
  CHECK_THROWS_WITH(nll_loss(logits, Tensor::from({3, 0})), Contains("nll_loss: label 3 of sample 0 is no class: there are 3"));
  CHECK_THROWS_WITH(multi_margin_loss(logits, Tensor::from({0, -100})),
                    "multi_margin_loss: label -100 of sample 1 is no class: there are 3, from 0");
  CHECK_THROWS_WITH(cross_entropy(zeros({3}), Tensor::scalar(7, Dtype::i32)), Contains("label 7 of sample 0 is no class"));

  // A label per pixel, and a part of a larger tensor.
  std::vector<std::int32_t> pixels(2 * 4 * 5, 2);
  pixels[4 * 5 + 2 * 5 + 3] = 9;
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 3, 4, 5}), Tensor::from(pixels, {2, 4, 5})),
                    Contains("label 9 of sample 1 at [2, 3] is no class"));
  const Tensor all = Tensor::from({0, 1, 2, 9}, {4});
  CHECK_NOTHROW(cross_entropy(logits, reshape(Tensor::from({2, 0}), {2})));
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 3, 2}), reshape(all, {2, 2})), Contains("label 9 of sample 1 at [1]"));

  // What the host knows, it knows after an evaluation, too, and behind casts and slices.
  sum(all).eval();
  CHECK_THROWS_WITH(cross_entropy(zeros({4, 3}), all), Contains("label 9 of sample 3 is no class"));
  CHECK_THROWS_WITH(cross_entropy(logits, all[{{2, 4}}]), Contains("label 9 of sample 1 is no class"));
  CHECK_NOTHROW(cross_entropy(logits, all[{{1, 3}}]));
  const Tensor wide = Tensor::from<std::int64_t>({0, 1, 2, 2, 1, 7, 0, 0}, {2, 4});
  CHECK_THROWS_WITH(cross_entropy(logits, reshape(slice(cast(wide, Dtype::i32), 1, 1, 2), {2})), Contains("label 7 of sample 1"));
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 3, 2}), slice(wide, 1, 1, 4, 2)), Contains("label 7 of sample 1 at [0]"));
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 3, 2}), slice(wide, 1, 3, -5, -2)), Contains("label 7 of sample 1 at [1]"));
  CHECK_NOTHROW(cross_entropy(zeros({2, 3, 2}), slice(wide, 1, 2, 4)));
  CHECK_THROWS_WITH(cross_entropy(logits, narrow(all, 0, 2, 2)), Contains("label 9 of sample 1"));
  CHECK_THROWS_WITH(cross_entropy(logits, Tensor::from({1, 4}) - 1), Contains("label 3 of sample 1"));
  CHECK_THROWS_WITH(cross_entropy(logits, cast(Tensor::from(std::vector<std::uint8_t>{2, 200}), Dtype::i64)),
                    Contains("label 200 of sample 1"));
  CHECK_THROWS_WITH(cross_entropy(logits, cast(Tensor::from(std::vector<std::int8_t>{-1, 0}), Dtype::i32)),
                    Contains("label -1 of sample 0"));
  // Behind what the program writes into its memory, it knows nothing.
  (void)opencl::buffer(all);
  CHECK(std::isnan(cross_entropy(zeros({4, 3}), all).item<float>()));
  const Tensor narrowed = cast(Tensor::from<std::int64_t>({9, 9}), Dtype::i32);
  narrowed.eval();
  CHECK_THROWS_WITH(cross_entropy(logits, narrowed), Contains("label 9 of sample 0"));
  (void)opencl::buffer(narrowed);
  CHECK_NOTHROW(cross_entropy(logits, narrowed));

  // Sums are as wide as the dtype, indices may count from the end, and a graph may be deep or lead to a tensor by many ways.
  const Tensor least = Tensor::from(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
  CHECK_NOTHROW(cross_entropy(zeros({1, 3}), least + least));
  const Tensor places = Tensor::from<std::int64_t>({-1, 5});
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 3, 2}), index_select(wide, 1, Tensor::from<std::int64_t>({-3, 2}))),
                    Contains("label 7 of sample 1 at [0]"));
  CHECK_THROWS_WITH(cross_entropy(logits, index_select(reshape(wide, {8}), 0, places)), Contains("label 7 of sample 1"));
  const Tensor table = Tensor::from<std::int64_t>({0, 8}), at = Tensor::from<std::int64_t>({0, 0, 0, 1, 0, 0}, {3, 2});
  CHECK_THROWS_WITH(cross_entropy(zeros({3, 3, 2}), index_select(table, 0, at)), Contains("label 8 of sample 1 at [1]"));
  CHECK_THROWS_WITH(cross_entropy(zeros({3, 3, 2, 4}), index_select(wide, 0, at)), Contains("label 7 of sample 1 at [1, 1]"));
  CHECK_THROWS_WITH(cross_entropy(zeros({3}), index_select(table, 0, Tensor::scalar(1, Dtype::i64))),
                    Contains("label 8 of sample 0"));
  CHECK_NOTHROW(cross_entropy(zeros({3, 3, 2}), index_select(table, 0, at - at)));
  Tensor deep = Tensor::from({0, 1}), wider = deep;
  for (int i = 0; i < 50'000; ++i) deep = deep + Tensor::from({0, 0});
  for (int i = 0; i < 40; ++i) wider = wider + wider;
  CHECK_NOTHROW(cross_entropy(logits, deep));
  CHECK_NOTHROW(cross_entropy(logits, wider));

  // What is ignored is no fault, nor what compile() is to be called with.
  CHECK(cross_entropy(logits, Tensor::from({-100, 1})).item<float>() == Approx(std::log(3)));
  const auto loss = compile([&](const Tensor& labels) { return cross_entropy(logits, labels); });
  CHECK(std::isnan(loss(Tensor::from({1, 5})).item<float>()));
}

TEST_CASE("cross_entropy refuses wrong inputs") {
  const Tensor logits = zeros({2, 3});
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({3}, Dtype::i64)),
                    Contains("cross_entropy: logits f32[2, 3] need targets of shape [2], got [3]"));
  CHECK_THROWS_AS(cross_entropy(logits, zeros({2}, Dtype::u8)), DtypeError);
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2})),
                    "cross_entropy: targets f32[2] of a floating dtype are probabilities, of the shape of logits {N, C, ...}, "
                    "which are f32[2, 3]; labels are i32 or i64");
  CHECK_THROWS_AS(cross_entropy(zeros({3}), zeros({1}, Dtype::i64)), ShapeError);
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2}, Dtype::i64), {.weight = zeros({2})}),
                    Contains("weight of shape [3], got [2]"));
  CHECK_THROWS_WITH(cross_entropy(logits, zeros({2}, Dtype::i64), {.label_smoothing = 1.5}), Contains("label_smoothing"));
}
