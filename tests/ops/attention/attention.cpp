#include "lib/ops/attention/attention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lib/graph/node.h"
#include "tests/cases/attention/attention.h"
#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"
#include "tests/support/memory_limit.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

Tensor streamed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  return ops::streaming_attention(ops::checked_attention(q, k, v, options));
}

constexpr float inf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("scaled_dot_product_attention") { check(attention_cases(scaled_dot_product_attention)); }

TEST_CASE("attention made up of other operations") {
  check(attention_cases([](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
    return ops::composed_attention(ops::checked_attention(q, k, v, options));
  }));
}

TEST_CASE("attention as one operation") { check(attention_cases(streamed), {"attention"}); }

TEST_CASE("rotary_embedding") { check(rotary_cases()); }

TEST_CASE("a query that may look at nothing gets 0 and no gradient") {
  for (bool added : {false, true}) {
    const Tensor q = ones({3, 2}), k = Tensor::from({0.5F, 1.0F, 2.0F, -1.0F}, {2, 2}), v = Tensor::from({1.0F, 2.0F}, {2, 1});
    const Tensor mask = added ? Tensor::from({-inf, -inf, 0.0F, -inf, -inf, 0.0F}, {3, 2})
                              : Tensor::from_bytes("\0\0\1\0\0\1", 6, {{3, 2}, Dtype::boolean});
    const auto y = scaled_dot_product_attention(q, k, v, {.mask = mask});
    CHECK(y.to_vector<float>() == std::vector<float>{0, 1, 2});
    const auto g = gradients(sum(y), {q, k, v});
    CHECK(g[0].to_vector<float>() == std::vector<float>(6, 0));
    CHECK(g[1].to_vector<float>() == std::vector<float>(4, 0));
    CHECK(g[2].to_vector<float>() == std::vector<float>{1, 1});
  }
}

TEST_CASE("a query of NaN gives NaN, unless it may look at nothing") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor rows = Tensor::from({nan, 1.0F, 2.0F, -1.0F, nan, nan}, {1, 1, 3, 2});
  const Tensor k = rand({1, 1, 5, 2}), v = rand({1, 1, 5, 3});
  const Tensor mask = Tensor::from_bytes("\1\1\1\1\1\1\1\1\1\1\0\0\0\0\0", 15, {{3, 5}, Dtype::boolean});
  for (bool masked : {false, true}) {
    const auto seen = to_array(mask);
    reference::AttentionTerms terms{.scale = 1 / std::sqrt(2.0), .mask = masked ? &seen : nullptr, .bool_mask = true};
    const auto want = reference::attention(to_array(rows), to_array(k), to_array(v), terms);
    CHECK(std::isnan(want[0]));
    CHECK(std::isnan(want[6]) == !masked);
    const AttentionOptions options{.mask = masked ? mask : Tensor{}};
    compare("in several", to_array(ops::composed_attention(ops::checked_attention(rows, k, v, options))), want, 1e-5);
    with_each_solver(
        "attention", [&] { eval({streamed(k, k, v, {})}); },
        [&] { compare("in one", to_array(streamed(rows, k, v, options)), want, 1e-5); });
  }
}

TEST_CASE("a few queries see a window of the keys") {
  const Tensor k = rand({2, 3, 90, 20}), v = rand({2, 3, 90, 33}), at = arange(90);
  for (std::int64_t queries : {1, 2, 4}) {
    const Tensor q = rand({2, 3, queries, 20}), first = unsqueeze(arange(queries), 1);
    for (int start : {0, 1, 16, 40, 86}) {
      const Tensor until = less_equal(at, first + start);
      for (const Tensor& mask : {until, logical_and(until, greater(at, first + (start - 5)))}) {
        const ops::Attention terms = ops::checked_attention(q, k, v, {.mask = mask});
        INFO(queries << " queries from " << start << " on");
        compare("y", to_array(ops::streaming_attention(terms)), to_array(ops::composed_attention(terms)), 1e-5);
      }
    }
  }
}

TEST_CASE("attention from a position on") {
  // However far it is, in one operation and in several.
  for (std::int64_t width : {8, 300}) {
    const Tensor q = rand({1, 1, 3, width}), k = rand({1, 1, 9, width});
    const auto want = to_array(scaled_dot_product_attention(q, k, k));
    for (std::int64_t far : {std::int64_t{9}, std::numeric_limits<std::int64_t>::max()}) {
      const auto start = Tensor::from({far});
      compare("far", to_array(scaled_dot_product_attention(q, k, k, {.causal = true, .start = start})), want, 1e-6);
    }
  }
  // What nobody sees yet may be anything.
  for (const Shape& shape : {Shape{1, 2, 1, 16}, Shape{1, 2, 5, 16}, Shape{8, 8, 5, 4}}) {
    const auto queries = shape[2];
    const Tensor q = rand(shape), seen = rand(shape.with(2, 10 + queries));
    const Tensor keys = concat({seen, full(shape.with(2, 113), std::numeric_limits<double>::quiet_NaN())}, 2);
    const AttentionOptions options{.causal = true, .start = Tensor::scalar(10, Dtype::i64)};
    compare("before the rest", to_array(scaled_dot_product_attention(q, keys, keys, options)),
            to_array(scaled_dot_product_attention(q, seen, seen, options)), 1e-5);
  }
}

TEST_CASE("gradients of attention's gradients") {
  for (auto kind : {MaskKind::none, MaskKind::boolean, MaskKind::added}) {
    const auto some = [](const Shape& shape, std::uint64_t seed, double low = -1, double high = 1) {
      auto values = make_values({shape, low, high}, seed);
      return to_tensor(values, Dtype::f32);
    };
    auto bits = make_values({{1, 5, 7}, 0, 1, Dtype::boolean}, 9);
    const Tensor hidden = to_tensor(bits, Dtype::boolean), added = some({4, 1, 7}, 8);
    std::vector<Tensor> inputs{some({2, 4, 5, 3}, 1), some({2, 2, 7, 3}, 2), some({2, 2, 7, 6}, 3)};
    if (kind == MaskKind::added) inputs.push_back(added);
    const double dropout = kind == MaskKind::none ? 0.3 : 0;
    const auto second = [&](Tensor (*attend)(const ops::Attention&)) {
      manual_seed(3);
      const auto y = attend(ops::checked_attention(inputs[0], inputs[1], inputs[2],
                                                   {.mask = kind == MaskKind::added     ? added
                                                            : kind == MaskKind::boolean ? hidden
                                                                                        : Tensor{},
                                                    .causal = kind != MaskKind::boolean,
                                                    .dropout = dropout}));
      const auto first = gradients(sum(y * some(y.shape(), 50)), inputs);
      Tensor mixed = Tensor::scalar(0);
      for (std::size_t i = 0; i < first.size(); ++i) mixed = mixed + sum(first[i] * some(first[i].shape(), 60 + i));
      auto all = gradients(mixed, inputs);
      all.push_back(y);
      return all;
    };
    const auto got = second(ops::streaming_attention), want = second(ops::composed_attention);
    for (std::size_t i = 0; i < got.size(); ++i) compare("input " + std::to_string(i), to_array(got[i]), to_array(want[i]), 1e-5);
  }
}

TEST_CASE("attention's memory does not grow with queries times keys") {
  const Tensor q = rand({1, 2, 4096, 16}), k = rand({1, 1, 4096, 16}), v = rand({1, 1, 4096, 16}), g = rand({1, 2, 4096, 16});
  eval({q, k, v, g});
  const auto all = [&](const Tensor& y) {
    const std::vector<Tensor> outputs{y}, given{g}, inputs{q, k, v};
    const auto gradient = gradients(outputs, given, inputs);
    eval({y, gradient[0], gradient[1], gradient[2]});
  };
  // A matrix of all scores would take 128 MiB.
  Device::current().trim();
  const test::MemoryLimit limit(Device::current().memory().in_use + (8U << 20));
  all(scaled_dot_product_attention(q, k, v, {.causal = true}));
  CHECK_THROWS_AS(all(ops::composed_attention(ops::checked_attention(q, k, v, {.causal = true}))), Error);
}

TEST_CASE("attention makes no matrix of all scores where heads or long wide rows make it large") {
  const auto streams = [](const Shape& q, const Shape& v) {
    Tensor y = scaled_dot_product_attention(zeros(q), zeros(q), zeros(v));
    while (node_of(y)->op && node_of(y)->op->name() != "attention") y = node_of(y)->inputs[0];
    return node_of(y)->op != nullptr;
  };
  CHECK_FALSE(streams({4096, 128, 1}, {4096, 128, 1}));
  CHECK(streams({4097, 128, 1}, {4097, 128, 1}));
  CHECK_FALSE(streams({2, 1000, 257}, {2, 1000, 4}));
  CHECK(streams({2, 10'000, 257}, {2, 10'000, 4}));
  CHECK(streams({10'000, 4}, {10'000, 300}));
  CHECK(streams({1, 200, 4}, {1, 200, 4}));
}

TEST_CASE("attention at its edges") {
  // No keys: nothing to look at. Nothing to compute.
  CHECK(scaled_dot_product_attention(ones({2, 3, 4}), ones({2, 0, 4}), ones({2, 0, 5})).to_vector<float>() ==
        std::vector<float>(30, 0));
  CHECK(scaled_dot_product_attention(ones({0, 3, 4}), ones({0, 2, 4}), ones({0, 2, 5})).to_vector<float>().empty());
  CHECK(scaled_dot_product_attention(ones({2, 0, 4}), ones({2, 2, 4}), ones({2, 2, 5})).to_vector<float>().empty());
  CHECK(scaled_dot_product_attention(ones({2, 3, 4}), ones({2, 2, 4}), ones({2, 2, 0})).to_vector<float>().empty());
  // No width: all scores are 0.
  CHECK(scaled_dot_product_attention(ones({1, 0}), ones({2, 0}), Tensor::from({1.0F, 2.0F}, {2, 1})).item<float>() == 1.5F);
  // Scores whose exponentials overflow.
  const Tensor big = full({2, 4}, 1e4), v = Tensor::from({1.0F, 3.0F}, {2, 1});
  CHECK(scaled_dot_product_attention(big, big, v).to_vector<float>() == std::vector<float>{2, 2});
  CHECK(scaled_dot_product_attention(ones({2, 4}), ones({2, 4}), v, {.dropout = 1}).to_vector<float>() ==
        std::vector<float>{0, 0});
}

TEST_CASE("attention broadcasts what is before the heads, and heads as in PyTorch") {
  struct Shapes {
    Shape q, k, v, all_q, all_k;  ///< as they are, and as they are meant
    Shape mask;
  };
  manual_seed(3);
  for (const auto& s : std::vector<Shapes>{
           {{2, 4, 5, 8}, {1, 4, 7, 8}, {1, 4, 7, 8}, {2, 4, 5, 8}, {2, 4, 7, 8}, {2, 1, 1, 7}},
           {{1, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {2, 4, 5, 8}, {2, 4, 7, 8}, {4, 5, 7}},
           {{4, 5, 8}, {2, 4, 7, 8}, {1, 4, 7, 8}, {2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 5, 7}},
           {{2, 4, 5, 8}, {7, 8}, {7, 8}, {2, 4, 5, 8}, {2, 4, 7, 8}, {5, 7}},
           {{5, 8}, {3, 7, 8}, {3, 7, 8}, {3, 5, 8}, {3, 7, 8}, {1, 7}},
           {{2, 1, 5, 8}, {2, 3, 7, 8}, {2, 1, 7, 8}, {2, 3, 5, 8}, {2, 3, 7, 8}, {1, 1, 1, 7}},
           {{2, 6, 5, 8}, {2, 2, 7, 8}, {2, 3, 7, 8}, {2, 6, 5, 8}, {2, 6, 7, 8}, {6, 5, 7}},
           {{2, 1, 4, 5, 8}, {3, 2, 7, 8}, {4, 7, 8}, {2, 3, 4, 5, 8}, {2, 3, 4, 7, 8}, {3, 1, 5, 7}},
       }) {
    INFO("q " << to_string(s.q) << ", k " << to_string(s.k) << ", v " << to_string(s.v));
    const Tensor q = rand(s.q), k = rand(s.k), v = rand(s.v), mask = rand(s.mask) * 4.0;
    // A head of k or v for each of q, and a batch for each of the result.
    const auto each = [&](const Tensor& x, const Shape& shape) {
      auto own = x;
      if (own.rank() >= 3 && own.size(-3) > 1) own = repeat_interleave(own, shape[-3] / own.size(-3), -3);
      return expand(own, shape);
    };
    const auto got = scaled_dot_product_attention(q, k, v, {.mask = mask});
    const auto want = scaled_dot_product_attention(each(q, s.all_q), each(k, s.all_k), each(v, s.all_k), {.mask = mask});
    const auto g = rand(got.shape());
    compare("y", to_array(got), to_array(want), 1e-5);
    const auto slopes = gradients(sum(got * g), {q, k, v, mask}), wanted = gradients(sum(want * g), {q, k, v, mask});
    for (std::size_t i = 0; i < slopes.size(); ++i) compare("gradient", to_array(slopes[i]), to_array(wanted[i]), 1e-5);
  }
}

TEST_CASE("attention refuses what does not fit") {
  const Tensor x = ones({2, 4, 3, 8});
  const auto attend = [](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {}) {
    return scaled_dot_product_attention(q, k, v, options);
  };
  CHECK_THROWS_WITH(attend(x, ones({2, 4, 3, 7}), x), Contains("the widths of q and k, 8 and 7, differ"));
  CHECK_THROWS_WITH(attend(x, x, ones({2, 4, 2, 8})), Contains("k and v have 3 and 2 keys"));
  CHECK_THROWS_WITH(attend(x, ones({2, 3, 3, 8}), ones({2, 3, 3, 8})), Contains("4 heads of q are no multiple of 3"));
  CHECK_THROWS_WITH(attend(x, ones({2, 2, 3, 8}), ones({2, 3, 3, 8})), Contains("4 heads of q are no multiple of 3"));
  CHECK_THROWS_WITH(attend(ones({2, 1, 3, 8}), ones({2, 2, 3, 8}), x), Contains("1 heads of q are no multiple of 2"));
  CHECK_THROWS_WITH(attend(x, ones({3, 4, 3, 8}), ones({3, 4, 3, 8})), Contains("before the heads do not broadcast"));
  CHECK_THROWS_WITH(attend(x, x, x, {.mask = ones({4, 4, 3, 3})}), Contains("scaled_dot_product_attention"));
  CHECK_THROWS_AS(attend(ones({1, 4, 3, 8}), ones({1, 4, 3, 8}), ones({1, 4, 3, 8}), {.mask = ones({2, 1, 3, 3})}), ShapeError);
  CHECK_THROWS_AS(attend(ones({8}), ones({8}), ones({8})), ShapeError);
  CHECK_THROWS_WITH(attend(x, x, x, {.mask = ones({3, 2}, Dtype::boolean)}), Contains("scaled_dot_product_attention"));
  CHECK_THROWS_WITH(attend(x, x, x, {.mask = ones({5, 2, 4, 3, 3})}), Contains("does not broadcast to [2, 4, 3, 3]"));
  CHECK_THROWS_AS(attend(x, x, x, {.mask = ones({3, 3}, Dtype::i32)}), DtypeError);
  CHECK_THROWS_AS(attend(x, cast(x, Dtype::f16), x), DtypeError);
  CHECK_THROWS_AS(attend(x, x, x, {.scale = std::numeric_limits<double>::quiet_NaN()}), Error);
  CHECK_THROWS_AS(attend(x, x, x, {.dropout = -0.1}), Error);
  CHECK_THROWS_AS(attend(x, x, x, {.dropout = std::numeric_limits<double>::quiet_NaN()}), Error);
}

TEST_CASE("positions") {
  const auto table = to_array(sinusoidal_positions(6, 5));
  for (std::int64_t p = 0; p < 6; ++p)
    for (std::int64_t i = 0; i < 5; ++i) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / 5);
      CHECK(table.at({p, i}) == Approx(i % 2 == 0 ? std::sin(angle) : std::cos(angle)).margin(1e-7));
    }
  CHECK(sinusoidal_positions(0, 4).numel() == 0);
  CHECK(sinusoidal_positions(4, 0).numel() == 0);
  CHECK_THROWS_WITH(sinusoidal_positions(-1, 4), Contains("sinusoidal_positions: shape [-1, 4]"));
  CHECK_THROWS_WITH(sinusoidal_positions(1 << 16, 1 << 16), Contains("sinusoidal_positions: shape [65536, 65536]: more than"));
  CHECK_THROWS_AS(sinusoidal_positions(4, 4, Dtype::i32), DtypeError);

  // Products of what is turned know the distance alone.
  const Tensor q = Tensor::from({0.3F, -0.7F, 1.1F, 0.2F}, {1, 4}), k = Tensor::from({-0.4F, 0.9F, 0.5F, 0.8F}, {1, 4});
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return sum(rotary_embedding(q, i) * rotary_embedding(k, j)).item<float>();
  };
  CHECK(product(7, 3) == Approx(product(104, 100)).margin(1e-4));
  CHECK(product(7, 3) != Approx(product(7, 4)).margin(1e-2));
  CHECK_THROWS_WITH(rotary_embedding(ones({3, 5})), Contains("with an even width"));
  CHECK_THROWS_AS(rotary_embedding(ones({4})), ShapeError);
  CHECK_THROWS_AS(rotary_embedding(ones({3, 4}), ones({3})), DtypeError);
  CHECK_THROWS_AS(rotary_embedding(ones({3, 4}), ones({2}, Dtype::i32)), ShapeError);
  CHECK_THROWS_WITH(rotary_embedding(ones({3, 4}), ones({2, 3}, Dtype::i32)), Contains("do not broadcast"));
  CHECK_THROWS_AS(rotary_embedding(ones({3, 4}), 0, {.base = 0}), Error);
  CHECK_THROWS_AS(rotary_embedding(ones({3, 4}), std::numeric_limits<std::int64_t>::max()), Error);
  CHECK(rotary_embedding(ones({0, 4})).numel() == 0);
  CHECK(rotary_embedding(ones({3, 0})).numel() == 0);
}
