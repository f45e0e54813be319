// Sums of many terms of one sign, where a single accumulator would drift or stand still, on every solver.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"
#include "lib/cl/quirks.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Where loops end early (llvmpipe), clnet sees to that in the solvers that it chooses itself.
template <class Probe, class Test>
void with_each_reliable_solver(const std::string& op, const Probe& probe, const Test& test) {
  if (!ocl::has_quirk(Device::current().info(), "llvmpipe-loops")) return with_each_solver(op, probe, test);
  clnet::test::skip("long loops of solvers that are only chosen by name end early", op);
  try {
    test();
  } catch (const Unsupported& refusal) {
    clnet::test::skip(refusal.what());
  }
}

/// The relative error that sums of blocks may have; the longest blocks, CLBlast's, are 2048 terms.
double bound(std::int64_t terms, std::int64_t block = 2048) {
  return (static_cast<double>(block) + static_cast<double>(terms) / 256) * 0x1p-24;
}

/// The first of `terms` terms that are 1 otherwise: added to it one by one, they are lost.
constexpr float large = 0x1p24F;
/// Values of this shape, in the order of memory: 1, but `large` for the first `count`.
Tensor large_first(const Shape& shape, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()), 1.0F);
  std::fill_n(values.begin(), count, large);
  return Tensor::from(values, shape);
}
/// All sums of `terms` terms, the first of them large, are as near as those of blocks are. CLBlast serves where vectors do not.
void check_sums(const Tensor& sums, std::int64_t terms, std::int64_t block) {
  if (!Device::current().info().prefers_vector_kernels) block = std::max<std::int64_t>(block, 2048);
  for (float value : sums.to_vector<float>())
    REQUIRE(double{value} == Approx(large + static_cast<double>(terms - 1)).epsilon(bound(terms, block)).margin(0));
}

}  // namespace

TEST_CASE("long products add up in blocks") {
  const double tenth = double{0.1F} * double{0.1F};
  with_each_reliable_solver(
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
  with_each_reliable_solver(
      "matmul",
      [] {
        matmul(ones({1, 8}, Dtype::bf16), ones({8, 1}, Dtype::bf16)).eval();
      },
      [&] {
        constexpr std::int64_t k = std::int64_t{1} << 25;
        const Tensor x = ones({k}, Dtype::bf16);
        for (const Shape& shape : {Shape{1, k}, Shape{k, 1}}) {
          const Tensor sum = matmul(reshape(x, Shape{1, k}), reshape(x, shape), {.transpose_b = shape[0] == 1});
          try {
            sum.eval();
          } catch (const Unsupported& refusal) {  // panels of whole vectors would have too many elements
            return clnet::test::skip(refusal.what());
          }
          CHECK(sum.item<float>() == 0x1p25F);
        }
      });
}

TEST_CASE("running sums keep what an addition loses, in lines of any length") {
  constexpr std::int64_t n = 120'000;
  // Lines in one piece, and beside each other.
  for (const std::int64_t columns : {1, 3}) {
    CAPTURE(columns);
    const Tensor x = large_first({n, columns}, columns);
    with_each_reliable_solver(
        "cumsum",
        [=] {
          cumsum(ones({8, columns}), 0).eval();
        },
        [&] {
          // The same sums from the other end.
          const Tensor back = gradients(sum(cumsum(x, 0) * stop_gradient(flip(x, {0}))), {x})[0];
          for (const Tensor& y : {cumsum(x, 0), flip(back, {0})}) {
            const auto sums = y.to_vector<float>();
            for (std::int64_t i = 0; i < n * columns; ++i)
              REQUIRE(double{sums[static_cast<std::size_t>(i)]} ==
                      Approx(large + static_cast<double>(i / columns)).epsilon(2 * 0x1p-24).margin(0));
          }
          const Tensor even = cumsum(full({n, columns}, 0.1), 0);
          CHECK(slice(even, 0, n - 1).to_vector<double>()[0] == Approx(double{0.1F} * n).epsilon(2 * 0x1p-24).margin(0));
        });
  }
}

TEST_CASE("products of f16 are summed in f32") {
  with_each_reliable_solver(
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
  with_each_reliable_solver(
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

TEST_CASE("convolutions of many channels add up in blocks") {
  const auto by_each = [](const std::string& op, const Tensor& x, const Tensor& w, const Conv2dFuncOptions& options,
                          std::int64_t terms, std::int64_t block) {
    const auto run = [&](const Tensor& input, const Tensor& weight) {
      if (op == "conv2d") return conv2d(input, weight, {}, options);
      // Its gradient of the input is a convolution of the output's gradient.
      const Tensor source = zeros({input.size(0), weight.size(1), input.size(2), input.size(3)});
      const Tensor y = conv2d(source, weight, {}, options);
      return gradients({&y, 1}, {&input, 1}, {&source, 1})[0];
    };
    with_each_reliable_solver(
        op, [&] { run(x, w).eval(); },
        [&] {
          const auto forced = exec::forced_solver(op);
          // Tiles for GPUs sum blocks as long as CLBlast's, wherever they run.
          const bool tiles = forced && (forced->choice.solver == "gpu" || forced->choice.solver == "packed_gpu");
          check_sums(run(x, w), terms, tiles ? std::max<std::int64_t>(block, 2048) : block);
        });
  };
  // 1x1: as many channels as fit into local memory, and one vector less than all pixels.
  constexpr std::int64_t c = 1500;
  const Tensor x = large_first({1, c, 8, 8}, 64);
  by_each("conv2d", x, ones({20, c, 1, 1}), {}, c, 256);
  by_each("conv2d_backward_data", x, ones({c, 20, 1, 1}), {}, c, 256);
  // 3x3 of which the middle counts. Winograd's transforms are sums of several values.
  constexpr std::int64_t many = 2500;
  std::vector<float> middle(9 * 2 * many);
  for (std::size_t i = 4; i < middle.size(); i += 9) middle[i] = 1;
  by_each("conv2d", large_first({1, many, 8, 8}, 64), Tensor::from(middle, {2, many, 3, 3}), {.padding = 1}, many, 4 * 256);
  by_each("conv2d_backward_data", large_first({1, many, 8, 8}, 64), Tensor::from(middle, {many, 2, 3, 3}), {.padding = 1}, many,
          4 * 256);
  // Few channels and a large kernel, for one output and for several.
  for (const std::int64_t outs : {1, 6}) {
    const Tensor w = concat({full({outs, 1, 1}, large), ones({outs, 1, 4 * 256 - 1})}, 2);
    by_each("conv2d", ones({1, 4, 20, 20}), reshape(w, {outs, 4, 16, 16}), {}, 4 * 256, 512);
  }
}

TEST_CASE("the gradient of index_select and gather adds up in blocks") {
  constexpr std::int64_t n = 20'000;
  const Tensor x = zeros({3, 2}), index = Tensor::scalar(1, Dtype::i32), g = large_first({n, 2}, 2);
  for (const bool per_place : {false, true}) {
    const auto gradient = [&](std::int64_t picks) {
      const Tensor y = per_place ? gather(x, 0, expand(index, {picks, 2})) : index_select(x, 0, expand(index, {picks}));
      const Tensor part = slice(g, 0, 0, picks);
      return slice(gradients({&y, 1}, {&part, 1}, {&x, 1})[0], 0, 1, 2);
    };
    with_each_reliable_solver(
        "index_add", [&] { gradient(3).eval(); }, [&] { check_sums(gradient(n), n, 256); });
  }
}

TEST_CASE("softmax of long rows adds up in blocks") {
  with_each_reliable_solver(
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
  with_each_reliable_solver(
      "softmax",
      [] {
        softmax(ones({8, 2}), 0).eval();
      },
      [] {
        constexpr std::int64_t n = 300'000;
        const Tensor x = concat({zeros({1, 3}), full({n - 1, 3}, -0.7)}, 0);
        const double want = 1 / (1 + static_cast<double>(n - 1) * std::exp(double{-0.7F}));
        const auto first = softmax(x, 0).to_vector<float>()[0];
        CHECK(first == Approx(want).epsilon(bound(n) + 8 * 0x1p-24).margin(0));
      });
}
