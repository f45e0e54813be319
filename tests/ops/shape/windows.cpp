// Parts of values are read and written where they lie: slices by the kernels that read them, parts of a concatenation by those
// that make them.
#include <catch2/catch.hpp>
#include <functional>

#include "clnet/clnet.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/ops/launches.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// The results with fusion are what single operations give.
void same_alone(const std::string& what, const std::function<std::vector<Tensor>()>& graph) {
  const auto fused = graph();
  eval(fused);
  const exec::NoFusion none;
  const auto single = graph();
  for (std::size_t i = 0; i < fused.size(); ++i) compare(what, to_array(fused[i]), to_array(single[i]), 1e-6);
}

}  // namespace

TEST_CASE("slices are read where they lie") {
  const Tensor x = make_tensor({6, 5, 96}, 1), bias = make_tensor({32}, 2), rows = make_tensor({6, 5, 1}, 3);
  for (auto dtype : {Dtype::f32, Dtype::bf16, Dtype::i32}) {
    const Tensor y = cast(x * 50.0, dtype);
    eval({y});
    const auto gates = [&] {
      const auto parts = split(y, {32, 32, 32}, 2);
      return std::vector{parts[0] * parts[2] + parts[1] + cast(bias * 9.0, dtype) + cast(rows * 7.0, dtype)};
    };
    same_alone("gates", gates);
    CHECK(kernels_of(gates()) <= 1);
  }
  same_alone("an inner dimension", [&] {
    return std::vector{tanh(slice(x, 1, 1, 4)) + slice(bias, 0, 3, 4), slice(x, 1, 2, 3) * 2.0 + slice(x, 1, 4, 5)};
  });
  same_alone("what is made here and read in parts", [&] {
    const Tensor made = sigmoid(x), whole = made * 2.0;
    return std::vector{slice(made, 2, 3, 67) * slice(made, 2, 30, 94), whole, slice(slice(made, 2, 1, 81), 1, 1, 3) + 1.0};
  });
  same_alone("broadcast", [&] { return std::vector{x + slice(rows * x, 1, 2, 3), slice(x, 2, 0, 16) * rows}; });
  same_alone("read by others than elementwise operations", [&] {
    const Tensor part = slice(reshape(x, {30, 96}), 1, 16, 48);
    return std::vector{matmul(part, part, {.transpose_b = true}), sum(part, {0}), softmax(part, -1), part};
  });
  same_alone("one column", [&] { return std::vector{slice(reshape(x, {30, 96}), 1, 5, 6) * 2.0}; });
}

TEST_CASE("parts of a concatenation are computed in their place") {
  const Tensor x = make_tensor({4, 16}, 1), y = make_tensor({2, 16}, 2);
  eval({x, y});
  // The sums are one kernel, each part is another: what is made of known values alone would be kept in memory of its own.
  const Tensor from_x = softmax(x, -1), from_y = softmax(y, -1);
  CHECK(kernels_of({concat({tanh(from_x), sigmoid(from_y), from_y}, 0)}) == 4);
  same_alone("several kinds", [&] { return std::vector{concat({tanh(x), y, softmax(x, -1), y * 2.0}, 0)}; });
  same_alone("read by others, too, and returned", [&] {
    const Tensor a = tanh(x), b = sigmoid(y);
    return std::vector{concat({a, b}, 0) * 2.0, a, sum(b), concat({b, a}, 0)};
  });
  same_alone("the same part twice", [&] {
    const Tensor a = softmax(x, -1);
    return std::vector{concat({a, a, y}, 0)};
  });
  same_alone("within one another", [&] {
    Tensor all = softmax(x, -1);
    std::vector<Tensor> results;
    for (int i = 0; i < 5; ++i) {
      all = concat({all, tanh(slice(all, 0, i, i + 2) * 3.0)}, 0);
      results.push_back(sum(all));
    }
    results.push_back(all);
    return results;
  });
  same_alone("with heads and tails", [&] {
    const Tensor w = make_tensor({16, 16}, 5);
    return std::vector{concat({relu(matmul(x, w) + 1.0), matmul(y, w), softmax(x, -1), sum(x, {0}, true) * 2.0}, 0)};
  });
  same_alone("at odd places", [&] {
    const Tensor a = make_tensor({3}, 6), b = make_tensor({5}, 7);
    return std::vector{concat({tanh(a), tanh(b), sigmoid(a)}, 0), stack({tanh(a), sigmoid(a)})};
  });
  same_alone("of nothing", [&] { return std::vector{concat({tanh(x), zeros({0, 16}), sigmoid(y)}, 0)}; });
  same_alone("side by side", [&] {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < 11; ++i) parts.push_back(tanh(slice(x, 1, 0, i + 1)));
    return std::vector{concat(parts, 1), concat({reshape(x, {2, 2, 16}), reshape(tanh(x), {2, 2, 16})}, 1)};
  });
}

TEST_CASE("a chain of concatenations is laid out without recursion") {
  Tensor all = tanh(make_tensor({1, 16}, 1));
  for (int i = 0; i < 300; ++i) all = concat({all, tanh(slice(all, 0, i, i + 1))}, 0);
  CHECK(all.size(0) == 301);
  CHECK(std::abs(to_array(sum(all)).values[0]) > 0);
}
