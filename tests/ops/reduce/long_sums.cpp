// Sums of many terms of one sign, where a single accumulator would drift or stand still, on every solver.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// The relative error that sums of blocks may have; the longest blocks, CLBlast's, are 2048 terms.
double bound(std::int64_t terms) { return (2048 + static_cast<double>(terms) / 256) * 0x1p-24; }

}  // namespace

TEST_CASE("long products add up in blocks") {
  const double tenth = double{0.1F} * double{0.1F};
  with_each_solver(
      "matmul",
      [] {
        matmul(ones({8, 8}), ones({8, 8})).eval();
      },
      [&] {
        constexpr std::int64_t k = 300'000;
        // One row, few rows, tiles; either order in memory.
        for (const std::int64_t rows : {1, 20})
          for (const bool transposed : {false, true}) {
            INFO(rows << " rows, transposed " << transposed);
            const Tensor a = full({rows, k}, 0.1), b = full(transposed ? Shape{rows, k} : Shape{k, rows}, 0.1);
            for (float value : matmul(a, b, {.transpose_b = transposed}).to_vector<float>())
              REQUIRE(value == Approx(tenth * k).epsilon(bound(k)).margin(0));
          }
      });
  // More ones than a float counts.
  with_each_solver(
      "matmul",
      [] {
        matmul(ones({1, 8}, Dtype::bf16), ones({8, 1}, Dtype::bf16)).eval();
      },
      [&] {
        constexpr std::int64_t k = std::int64_t{1} << 25;
        const Tensor x = ones({k}, Dtype::bf16);
        for (const Shape& shape : {Shape{1, k}, Shape{k, 1}})
          CHECK(matmul(reshape(x, Shape{1, k}), reshape(x, shape), {.transpose_b = shape[0] == 1}).item<float>() == 0x1p25F);
      });
}

TEST_CASE("products of f16 are summed in f32") {
  with_each_solver(
      "matmul",
      [] {
        matmul(ones({8, 8}, Dtype::f16), ones({8, 8}, Dtype::f16)).eval();
      },
      [] {
        constexpr std::int64_t k = 4096;
        for (const std::int64_t rows : {1, 40}) {
          const Tensor a = full({rows, k}, 0.1, Dtype::f16), b = full({k, rows}, 0.3, Dtype::f16);
          const double want = k * double{half_to_float(float_to_half(0.1F))} * double{half_to_float(float_to_half(0.3F))};
          for (float value : matmul(a, b).to_vector<float>())
            REQUIRE(value == Approx(want).epsilon(0x1p-11 + bound(k)).margin(0));
        }
      });
}

TEST_CASE("gradients of convolution weights over many pixels add up in blocks") {
  const auto gradient = [](const Tensor& x, const Tensor& w) { return gradients(sum(conv2d(x, w)), {w})[0]; };
  with_each_solver(
      "conv2d_backward_weights",
      [&] {
        gradient(ones({1, 1, 8, 8}), ones({1, 1, 3, 3})).eval();
      },
      [&] {
        const Tensor x = full({40, 1, 150, 150}, 0.1), w = ones({1, 1, 3, 3});
        for (float value : gradient(x, w).to_vector<float>())
          REQUIRE(value == Approx(double{0.1F} * 40 * 148 * 148).epsilon(3e-5).margin(0));
      });
}

TEST_CASE("softmax of long rows adds up in blocks") {
  with_each_solver(
      "softmax",
      [] {
        softmax(ones({2, 8}), 1).eval();
      },
      [] {
        constexpr std::int64_t n = 1'000'000;
        const Tensor x = concat({zeros({1}), full({n - 1}, -0.7)}, 0);
        const double want = 1 / (1 + static_cast<double>(n - 1) * std::exp(double{-0.7F}));
        CHECK(softmax(reshape(x, Shape{1, n}), 1).to_vector<float>()[0] ==
              Approx(want).epsilon(bound(n) + 8 * 0x1p-24).margin(0));
      });
  with_each_solver(
      "softmax",
      [] {
        softmax(ones({8, 2}), 0).eval();
      },
      [] {
        constexpr std::int64_t n = 300'000;
        const Tensor x = concat({zeros({1, 3}), full({n - 1, 3}, -0.7)}, 0);
        const double want = 1 / (1 + static_cast<double>(n - 1) * std::exp(double{-0.7F}));
        CHECK(softmax(x, 0).to_vector<float>()[0] == Approx(want).epsilon(bound(n) + 8 * 0x1p-24).margin(0));
      });
}
