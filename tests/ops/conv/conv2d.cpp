#include "tests/cases/conv/conv2d.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/cases/conv/conv_transpose2d.h"
#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

const std::vector<std::string> solver_ops{"conv2d", "conv2d_backward_data", "conv2d_backward_weights"};

/// What the call throws.
template <class Call>
std::string shape_error(Call call) {
  try {
    call();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

}  // namespace

TEST_CASE("conv2d") { check(conv2d_cases(), solver_ops); }
TEST_CASE("conv_transpose2d") { check(conv_transpose2d_cases(), solver_ops); }

TEST_CASE("conv2d: results beyond the caches, with rows that begin at odd places") {
  // 130 filters, each a multiple of the first one: the result's planes are multiples of its first plane.
  const auto x = make_tensor({1, 1, 128, 257}, 1), filter = make_tensor({1, 1, 3, 3}, 2);
  const auto factors = reshape(arange(130, 1, 1, Dtype::f32), {130, 1, 1, 1});
  const Tensor one = conv2d(x, filter, {}, {.padding = 1}).detach(), weight = (filter * factors).detach();
  with_each_solver(
      "conv2d", [&] { conv2d(x, weight).eval(); },
      [&] {
        const Tensor y = conv2d(x, weight, {}, {.padding = 1});
        compare("planes", to_array(y), to_array(one * reshape(factors, {1, 130, 1, 1})), 1e-5);
      });
}

TEST_CASE("conv2d: 512 input channels are summed to 1e-5 of the largest result") {
  Array x = make_values({{1, 512, 14, 14}, -1, 1}, 1), weight = make_values({{16, 512, 3, 3}, -1, 1}, 2);
  const Conv2dFuncOptions options{.padding = 1};
  const std::vector<Tensor> in{to_tensor(x, Dtype::f32), to_tensor(weight, Dtype::f32)};
  const auto want = conv2d_reference({x, weight}, options).at(0);
  with_each_solver(
      "conv2d", [&] { conv2d(in[0], in[1]).eval(); },
      [&] { compare("sums", to_array(conv2d(in[0], in[1], {}, options)), want, 1e-5); });
}

TEST_CASE("conv2d: the weight's gradient over parts of the batch, by Winograd within 1e-5 of the largest direct sum") {
  if (!Device::current().info().prefers_vector_kernels) return test::skip("solvers for CPUs");
  const Tensor x = make_tensor({20, 60, 38, 41}, 1), g = make_tensor({20, 70, 38, 41}, 2), weight = zeros({70, 60, 3, 3});
  const auto gradient = [&](const char* solver) {
    const exec::ForceSolver force("conv2d_backward_weights", solver);
    const std::vector<Tensor> outputs{conv2d(x, weight, {}, {.padding = 1})}, with{g}, inputs{weight};
    return to_array(gradients(outputs, with, inputs)[0]);
  };
  compare("sums", gradient("winograd_cpu"), gradient("cpu"), 1e-5);
}

TEST_CASE("conv2d: an infinite pixel makes infinite gradients of the weights that see it, also at the ends of rows") {
  if (!Device::current().info().prefers_vector_kernels) return test::skip("solvers for CPUs");
  struct Sizes {
    const char* solver;
    Shape x, weight;
    Conv2dFuncOptions options;
  };
  for (const auto& [solver, shape, filter, options] :
       {Sizes{"nchw_cpu", {1, 2, 3, 27}, {9, 2, 3, 3}, {.padding = 1}}, Sizes{"pointwise_cpu", {1, 2, 3, 27}, {9, 2, 1, 1}, {}},
        Sizes{"nchw_cpu", {1, 3, 5, 27}, {3, 1, 3, 3}, {.padding = 1, .groups = 3}},
        Sizes{"depthwise_cpu", {3, 2, 5, 27}, {2, 1, 3, 3}, {.padding = 1, .groups = 2}}}) {
    INFO(solver);
    // In the middle row, of the image in the middle, as the ends of the tensor are summed by single elements.
    Array pixels(shape);
    for (auto& value : pixels.values) value = 1;
    for (int column = 1; column < 26; ++column) pixels.at({shape[0] / 2, 1, shape[2] / 2, column}) = INFINITY;
    const Tensor x = to_tensor(pixels, Dtype::f32), weight = zeros(filter), g = ones(conv2d(x, weight, {}, options).shape());
    const auto gradient = [&](const char* forced) {
      const exec::ForceSolver force("conv2d_backward_weights", forced);
      const std::vector<Tensor> outputs{conv2d(x, weight, {}, options)}, with{g}, inputs{weight};
      return gradients(outputs, with, inputs)[0].to_vector<float>();
    };
    CHECK(gradient(solver) == gradient("direct"));
  }
}

TEST_CASE("conv2d: the weight's gradient of few channels by vectors of pixels is that by vectors of channels") {
  if (!Device::current().info().prefers_vector_kernels) return test::skip("solvers for CPUs");
  // Ends of rows, filters and weights that fill no tile, steps, groups, and filters that threads or local memory share.
  const Conv2dFuncOptions dense{.padding = 1}, strided{.stride = {2, 2}, .padding = {3, 3}},
      wide{.padding = 2, .dilation = {2, 2}}, grouped{.stride = {1, 2}, .padding = 1, .groups = 2};
  for (const auto& [shape, filters, kernel, options] :
       {std::tuple{Shape{9, 3, 37, 41}, 64, 3, dense}, std::tuple{Shape{1, 3, 70, 64}, 20, 3, dense},
        std::tuple{Shape{2, 3, 61, 67}, 64, 7, strided}, std::tuple{Shape{3, 1, 28, 28}, 32, 3, wide},
        std::tuple{Shape{2, 4, 30, 63}, 14, 3, grouped}}) {
    const Tensor x = make_tensor(shape, 1), weight = zeros({filters, shape[1] / options.groups, kernel, kernel});
    const Tensor y = conv2d(x, weight, {}, options), g = make_tensor(y.shape(), 2);
    const auto gradient = [&](const char* solver) {
      const exec::ForceSolver force("conv2d_backward_weights", solver);
      const std::vector<Tensor> outputs{conv2d(x, weight, {}, options)}, with{g}, inputs{weight};
      return to_array(gradients(outputs, with, inputs)[0]);
    };
    const auto want = gradient("cpu");
    for (const auto* solver : {"nchw_cpu", "nchw_cpu{outs=2}", "nchw_cpu{window=10}"})
      compare(solver, gradient(solver), want, 1e-5);
    if (Device::current().info().native_float_width >= 16) compare("half", gradient("nchw_cpu{lanes=8}"), want, 1e-5);
  }
}

TEST_CASE("conv2d: what a 1x1 convolution with steps sees is copied in its dtype") {
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    const Tensor x = cast(make_tensor({2, 5, 9, 39}, 1), dtype), weight = cast(make_tensor({6, 5, 1, 1}, 2), dtype);
    const auto y = [&] { return to_array(cast(conv2d(x, weight, {}, {.stride = 2}), Dtype::f32)); };
    Array want;
    {
      const exec::ForceSolver force("conv2d", "direct");
      want = y();
    }
    with_each_solver(
        "conv2d", [&] { conv2d(x, weight, {}, {.stride = 2}).eval(); },
        [&] { compare("1x1 by 2", y(), want, dtype == Dtype::f16 ? 1e-3 : 8e-3); });
  }
}

TEST_CASE("conv2d: between what a 1x1 convolution with steps sees are zeros, for what its gradient is joined with, too") {
  // Rows and columns beyond the last window, and steps that leave elements one by one.
  for (const auto& [shape, stride] :
       {std::pair{Shape{2, 5, 12, 72}, Pair(2)}, {{1, 4, 9, 35}, {3, 2}}, {{1, 4, 7, 40}, {1, 3}}}) {
    const Tensor z = make_tensor(shape, 1), weight = make_tensor({6, shape[1], 1, 1}, 2);
    const auto y = [&] { return conv2d(leaky_relu(z), weight, {}, {.stride = stride}); };
    const Tensor g = make_tensor(y().shape(), 3);
    const auto gradient = [&] { return gradients(sum(y() * g), {z})[0]; };
    Array want;
    {
      const exec::ForceSolver force("conv2d_backward_data", "direct");
      want = to_array(gradient());
    }
    with_each_solver(
        "conv2d_backward_data", [&] { gradient().eval(); }, [&] { compare("1x1", to_array(gradient()), want, 1e-5); });
  }
}

TEST_CASE("conv2d: what an earlier launch left in local memory is not seen") {
  const Tensor large = make_tensor({2, 3, 60, 100}, 1) * 1e6, filters = make_tensor({3, 1, 3, 3}, 2);
  for (const auto& [shape, kernel, padding] : {std::tuple{Shape{5, 2, 1, 1}, 3, 2},
                                               {Shape{1, 4, 2, 33}, 7, 3},
                                               {Shape{2, 3, 7, 7}, 5, 2},
                                               {Shape{2, 3, 14, 14}, 3, 1},
                                               {Shape{1, 4, 8, 3}, 3, 4},
                                               {Shape{1, 4, 8, 9}, 3, 4},
                                               {Shape{2, 3, 9, 14}, 5, 4},
                                               {Shape{1, 2, 16, 40}, 3, 20}}) {
    Array x = make_values({shape, -1, 1}, 3), weight = make_values({{shape[1], 1, kernel, kernel}, -1, 1}, 4);
    for (const int stride : {1, 2}) {
      const Conv2dFuncOptions options{.stride = stride, .padding = padding, .groups = shape[1]};
      const auto want = conv2d_reference({x, weight}, options).at(0);
      const std::vector<Tensor> in{to_tensor(x, Dtype::f32), to_tensor(weight, Dtype::f32)};
      with_each_solver(
          "conv2d", [&] { conv2d(in[0], in[1], {}, options).eval(); },
          [&] {
            conv2d(large, filters, {}, {.padding = 1, .groups = 3}).eval();
            compare("a small plane", to_array(conv2d(in[0], in[1], {}, options)), want, 1e-5);
          });
    }
  }
}

TEST_CASE("conv2d: on GPUs, an infinity is no part of the gradients of taps that do not see it") {
  std::vector<float> values(18, 1.0F);
  std::fill_n(values.begin() + 12, 3, std::numeric_limits<float>::infinity());
  const auto x = Tensor::from(values, {1, 1, 6, 3}), weight = ones({1, 1, 3, 1});
  const exec::ForceSolver force("conv2d_backward_weights", "depthwise_gpu");
  const auto gradient = gradients(sum(conv2d(x, weight, {}, {.stride = {2, 1}})), {weight})[0];
  CHECK(gradient.to_vector<float>() == std::vector<float>{6, 6, std::numeric_limits<float>::infinity()});
}

TEST_CASE("conv2d: wrong shapes name the operation and both shapes") {
  const auto x = make_tensor({1, 4, 5, 5}, 1);
  const auto text = [&](const Tensor& weight, const Conv2dFuncOptions& options, const Tensor& bias = {}) {
    return shape_error([&] { conv2d(x, weight, bias, options); });
  };
  using Catch::Contains;
  const auto plain = make_tensor({6, 4, 3, 3}, 2);
  CHECK_THAT(text(make_tensor({6, 3, 3, 3}, 2), {}),
             Contains("conv2d: ") && Contains("f32[1, 4, 5, 5]") && Contains("f32[6, 3, 3, 3]"));
  CHECK_THAT(text(make_tensor({6, 2, 3, 3}, 2), {.groups = 3}), Contains("f32[1, 4, 5, 5]") && Contains("f32[6, 2, 3, 3]"));
  CHECK_THAT(text(make_tensor({5, 2, 3, 3}, 2), {.groups = 2}), Contains("5 output channels") && Contains("2 groups"));
  CHECK_THAT(text(make_tensor({6, 4, 6, 3}, 2), {}),
             Contains("f32[1, 4, 5, 5]") && Contains("f32[6, 4, 6, 3]") && Contains("larger"));
  CHECK_THAT(text(plain, {.dilation = 3}), Contains("dilated by 3x3"));
  CHECK_THAT(text(plain, {.padding = {0, 0, -1, 0}}), Contains("padding {0, 0, -1, 0}"));
  CHECK_THAT(text(plain, {.stride = {1, 0}}), Contains("stride 1x0"));
  CHECK_THAT(text(plain, {.dilation = 0}), Contains("dilation 0x0"));
  CHECK_THAT(text(plain, {.groups = 0}), Contains("groups 0"));
  CHECK_THAT(text(plain, {}, make_tensor({5}, 3)), Contains("bias f32[5]") && Contains("f32[6, 4, 3, 3]"));
  CHECK_THAT(shape_error([&] { conv2d(make_tensor({5, 5}, 1), plain); }), Contains("f32[5, 5]"));
  CHECK_THAT(text(make_tensor({6, 4, 3}, 2), {}), Contains("f32[6, 4, 3]"));
  CHECK_THROWS_AS(conv2d(x, cast(plain, Dtype::f16)), DtypeError);
  CHECK_THROWS_AS(conv2d(cast(x, Dtype::i32), cast(plain, Dtype::i32)), DtypeError);
}

TEST_CASE("conv_transpose2d: wrong shapes name the operation and both shapes") {
  const auto x = make_tensor({1, 4, 5, 5}, 1);
  using Catch::Contains;
  const auto text = [&](const Tensor& weight, const ConvTranspose2dFuncOptions& options) {
    return shape_error([&] { conv_transpose2d(x, weight, {}, options); });
  };
  const auto plain = make_tensor({4, 6, 3, 3}, 2);
  CHECK_THAT(text(make_tensor({6, 4, 3, 3}, 2), {}),
             Contains("conv_transpose2d: ") && Contains("f32[1, 4, 5, 5]") && Contains("f32[6, 4, 3, 3]"));
  CHECK_THAT(text(plain, {.groups = 3}), Contains("3 groups"));
  CHECK_THAT(text(plain, {.stride = 2, .output_padding = 2}), Contains("output padding 2x2"));
  CHECK_THAT(text(plain, {.padding = 4}), Contains("empty"));
}
