#include "tests/cases/norm/batch_norm.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("batch_norm in training") { check(batch_norm_cases(), {"batch_norm"}); }
TEST_CASE("batch_norm in inference") { check(batch_norm_inference_cases()); }
TEST_CASE("layer_norm") { check(layer_norm_cases(), {"layer_norm"}); }

TEST_CASE("layer_norm: the gradients of weight and bias of few long rows and of many, as the reference solver's") {
  for (const Shape& shape : {Shape{5, 20011}, Shape{2011, 70}}) {
    CAPTURE(to_string(shape));
    const Tensor x = make_tensor(shape, 1, -2, 3), g = make_tensor(shape, 2), weight = make_tensor({shape[1]}, 3);
    const auto both = [&] {
      const Tensor own = weight + 0.0;  // another tensor than the weight
      const std::vector<Tensor> outputs{layer_norm(x, 1, weight, own)}, with{g}, inputs{weight, own};
      const auto result = gradients(outputs, with, inputs);
      return std::pair(to_array(result[0]), to_array(result[1]));
    };
    const auto want = [&] {
      const exec::ForceSolver force("layer_norm", "direct");
      return both();
    }();
    with_each_solver(
        "layer_norm", [&] { layer_norm(x, 1, weight, weight).eval(); },
        [&] {
          const auto got = both();
          compare("weight", got.first, want.first, 1e-5);
          compare("bias", got.second, want.second, 1e-5);
        });
  }
}

TEST_CASE("batch_norm of values with a large common offset keeps their variance") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(1e4f, 1.f);
  for (const Shape& shape : {Shape{16, 3, 28, 28}, Shape{256, 5}}) {
    Array x(shape);
    for (auto& value : x.values) value = normal(random);
    const Tensor input = to_tensor(x, Dtype::f32);
    const auto want = reference::batch_norm(x, nullptr, nullptr, 1e-5);
    with_each_solver(
        "batch_norm",
        [] {
          batch_norm_training(ones({2, 2}), {}, {}).y.to_vector<float>();
        },
        [&] {
          const auto got = batch_norm_training(input, {}, {});
          compare("y", to_array(got.y), want.y, 1e-5);
          compare("var", to_array(got.var), want.var, 1e-5);
        });
  }
}

TEST_CASE("batch_norm of tensors that begin anywhere in their memory") {
  manual_seed(5);
  const Tensor memory = randn({2, 4 * 3 * 8 * 8 + 4}), weight = ones({3});
  const auto part = [&](int which, std::int64_t first) {
    const Tensor whole = reshape(slice(memory, 0, which, which + 1), {4 * 3 * 8 * 8 + 4});
    const Tensor view = reshape(slice(whole, 0, first, first + 4 * 3 * 8 * 8), {4, 3, 8, 8});
    view.eval();
    return view.detach();
  };
  with_each_solver(
      "batch_norm",
      [] {
        batch_norm_training(ones({2, 2}), {}, {}).y.to_vector<float>();
      },
      [&] {
        for (const std::int64_t first : {0, 3}) {
          CAPTURE(first);
          // Copies begin at the beginning of theirs.
          const auto both = [&](const std::function<Tensor(const Tensor&)>& changed) {
            Tensor x = changed(part(0, first));
            const auto y = batch_norm_training(x, weight, {}).y;
            const auto dx = gradients(sum(y * changed(part(1, first))), {x})[0];
            return std::pair(to_array(y), to_array(dx));
          };
          const auto got = both([](const Tensor& x) { return x; });
          const auto want = both([](const Tensor& x) { return Tensor::from(x.to_vector<float>(), x.shape()); });
          compare("y", got.first, want.first, 1e-6);
          compare("dx", got.second, want.second, 1e-6);
        }
      });
}

TEST_CASE("layer_norm of equal values whose squares are infinite is its bias") {
  for (const std::int64_t length : {1, 2, 16, 1024}) {
    const auto check_row = [&] {
      for (const auto value : layer_norm(full({3, length}, 0x1p65), 1, {}, {}).to_vector<float>()) CHECK(value == 0);
    };
    with_each_solver("layer_norm", check_row, check_row);
  }
}

TEST_CASE("a line of one element does not depend on it") {
  // 0.6 -4.8 is rounded; that times 1 / sqrt(eps) would be 7e-5.
  const Tensor x = Tensor::from({-0.604689F, 3.F}, {2, 1}), weight = Tensor::from({-4.826985F});
  const auto dx = gradients(sum(layer_norm(x, 1, weight, {}) * Tensor::from({1.540996F, -0.7F}, {2, 1})), {x})[0];
  for (const auto value : dx.to_vector<float>()) CHECK(value == 0);
}

TEST_CASE("normalisation refuses wrong inputs") {
  CHECK_THROWS_WITH(batch_norm_training(zeros({1, 3}), {}, {}), Contains("expected more than 1 value per channel when training"));
  CHECK_THROWS_AS(batch_norm_training(zeros({0, 3, 2}), {}, {}), ShapeError);
  CHECK_THROWS_AS(batch_norm_training(zeros({3}), {}, {}), ShapeError);
  CHECK_THROWS_WITH(batch_norm_training(zeros({4, 3}), zeros({2}), {}),
                    Contains("batch_norm_training: weight must have shape [3] for x f32[4, 3], got [2]"));
  CHECK_THROWS_AS(batch_norm_inference(zeros({4, 3}), zeros({3}), zeros({4}), {}, {}), ShapeError);
  CHECK_THROWS_AS(batch_norm_training(zeros({4, 3}, Dtype::i32), {}, {}), DtypeError);
  CHECK_THROWS_WITH(layer_norm(zeros({4, 3}), 1, zeros({4}), {}), Contains("layer_norm: weight must have shape [3]"));
  CHECK_THROWS_AS(layer_norm(zeros({4, 3}), 3, {}, {}), ShapeError);
}
