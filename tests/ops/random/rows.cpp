// Random numbers of replicas: tensors over rows of a batch are rows of the whole batch's, to the bit; others are a replica's own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/compile.h"
#include "lib/exec/statistics.h"
#include "lib/graph/random_stream.h"
#include "lib/ops/attention/attention.h"
#include "tests/ops/each_solver.h"

namespace clnet::testing {

namespace {

constexpr RandomPosition random_start{7, 3};

std::vector<std::byte> bits_of(const Tensor& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.spec().bytes()));
  x.to_bytes(bytes.data(), bytes.size());
  return bytes;
}

/// `make` of some rows of x, as replica `which` draws.
Tensor drawn_rows(const std::function<Tensor(const Tensor&)>& make, const Tensor& x, std::int64_t first, std::int64_t count,
                  std::uint64_t which, std::uint64_t next) {
  const RandomStream stream(random_start, {first, count, which});
  const Tensor part = make(narrow(x, 0, first, count));
  eval({part});
  CHECK(stream.position().offset == next);
  return part;
}

/// Shares of 8 rows, one after the other, are the whole.
void require_rows(const std::string& name, const std::function<Tensor(const Tensor&)>& make, const Tensor& x) {
  INFO(name);
  set_random_state({random_start.seed, random_start.offset});
  const Tensor whole = make(x);
  const auto next = random_state().offset;
  CHECK(next > random_start.offset);
  const auto bits = bits_of(whole);
  for (const auto& counts : {std::vector<std::int64_t>{4, 4}, {3, 3, 2}, {6, 2}, {1, 7}}) {
    std::vector<std::byte> all;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto part = bits_of(drawn_rows(make, x, first, counts[i], i, next));
      all.insert(all.end(), part.begin(), part.end());
      first += counts[i];
    }
    CHECK(all == bits);
  }
  CHECK(random_state().offset == next);
}

Tensor sample(const Shape& shape, Dtype dtype = Dtype::f32) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 31) / 32 + 0.01F;
  return Tensor::from(values, shape).to(dtype);
}

}  // namespace

TEST_CASE("every drawing operation gives a share its rows of the whole batch") {
  const Tensor x = sample({8, 6}), image = sample({8, 3, 4, 5}), volume = sample({8, 3, 2, 2, 2}), line = sample({8, 3, 5});
  const auto shaped = [](auto draw) { return [draw](const Tensor& like) { return draw(like.shape()); }; };
  require_rows("rand", shaped([](const Shape& s) { return rand(s); }), x);
  require_rows("rand f16", shaped([](const Shape& s) { return rand(s, Dtype::f16); }), x);
  require_rows("rand bf16", shaped([](const Shape& s) { return rand(s, Dtype::bf16); }), x);
  require_rows("randn", shaped([](const Shape& s) { return randn(s); }), image);
  require_rows(
      "rand of one dimension", [](const Tensor& like) { return rand({like.size(0)}); }, x);
  require_rows(
      "rand_like", [](const Tensor& like) { return rand_like(like); }, x);
  require_rows(
      "randn_like", [](const Tensor& like) { return randn_like(like); }, x);
  require_rows("normal", shaped([](const Shape& s) { return normal(1, 2, s); }), x);
  require_rows("truncated_normal", shaped([](const Shape& s) { return truncated_normal(s); }), x);
  require_rows("exponential", shaped([](const Shape& s) { return exponential(s, 2); }), x);
  require_rows("randint", shaped([](const Shape& s) { return randint(-5, 1000, s); }), x);
  require_rows("randint u8", shaped([](const Shape& s) { return randint(0, 256, s, Dtype::u8); }), x);
  require_rows(
      "bernoulli", [](const Tensor& like) { return bernoulli(like); }, x);
  require_rows(
      "poisson", [](const Tensor& like) { return poisson(like * 9); }, x);
  require_rows(
      "multinomial", [](const Tensor& like) { return multinomial(like, 3); }, x);
  require_rows(
      "multinomial with replacement", [](const Tensor& like) { return multinomial(like, 9, true); }, x);
  require_rows(
      "dropout", [](const Tensor& like) { return dropout(like, 0.4); }, image);
  require_rows(
      "dropout f16", [](const Tensor& like) { return dropout(like, 0.4); }, sample({8, 6}, Dtype::f16));
  require_rows(
      "dropout1d", [](const Tensor& like) { return dropout1d(like, 0.4); }, line);
  require_rows(
      "dropout2d", [](const Tensor& like) { return dropout2d(like, 0.4); }, image);
  require_rows(
      "dropout3d", [](const Tensor& like) { return dropout3d(like, 0.4); }, volume);
  require_rows(
      "alpha_dropout", [](const Tensor& like) { return alpha_dropout(like, 0.4); }, x);
  require_rows(
      "feature_alpha_dropout", [](const Tensor& like) { return feature_alpha_dropout(like, 0.4); }, image);
  require_rows(
      "rrelu", [](const Tensor& like) { return rrelu(like - 0.5, 0.1, 0.3, true); }, x);
  require_rows(
      "gumbel_softmax", [](const Tensor& like) { return gumbel_softmax(like); }, x);
  require_rows(
      "gumbel_softmax hard", [](const Tensor& like) { return gumbel_softmax(like, 1, true); }, x);
  const auto gradient = [](const Tensor& like) {
    const Tensor leaf = like.detach();
    return gradients(sum(square(dropout(tanh(dropout(leaf, 0.3)), 0.4))), {leaf})[0];
  };
  require_rows("dropout's gradient", gradient, x);
  if (Device::current().info().fp64) require_rows("rand f64", shaped([](const Shape& s) { return rand(s, Dtype::f64); }), x);
}

TEST_CASE("weights that attention drops are a share's rows, by each solver") {
  // Queries, keys and values of three heads side by side.
  const Tensor all = sample({8, 9, 6, 5});
  const auto with = [](Tensor (*attend)(const ops::Attention&), bool masked, std::int64_t queries = 6) {
    return [=](const Tensor& part) {
      const Tensor x = part.detach();
      const Tensor q = narrow(narrow(x, 1, 0, 3), 2, 0, queries), k = narrow(x, 1, 3, 3), v = narrow(x, 1, 6, 3);
      const Tensor mask = masked ? ones({queries, 6}, Dtype::boolean) : Tensor{};
      const auto y = attend(ops::checked_attention(q, k, v, {.mask = mask, .causal = !masked, .dropout = 0.3}));
      if (queries < 6) return y;  // the solver of few queries computes no gradients
      const auto dx = gradients(sum(square(y)), {x})[0];
      return concat({reshape(y, {y.size(0), -1}), reshape(dx, {dx.size(0), -1})}, 1);
    };
  };
  for (const std::int64_t queries : {6, 2}) {
    const auto probe = [&] { eval({with(ops::streaming_attention, false, queries)(all)}); };
    with_each_solver("attention", probe, [&] {
      for (const bool masked : {false, true}) require_rows("streaming", with(ops::streaming_attention, masked, queries), all);
    });
  }
  require_rows("composed", with(ops::composed_attention, false), all);
  require_rows(
      "scaled_dot_product_attention", [](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {.dropout = 0.5}); },
      all);
}

TEST_CASE("what is no row of a batch is a replica's own, and the first one's is the process's") {
  const auto of_replica = [](std::uint64_t which, const auto& make) {
    const RandomStream stream(random_start, {static_cast<std::int64_t>(which) * 3, 3, which});
    return make().template to_vector<double>();
  };
  const auto others = [] { return rand({4, 3}); };
  const auto scalar = [] { return rand(Shape{}); };
  const auto order = [] { return randperm(3 * 1000); };
  set_random_state({random_start.seed, random_start.offset});
  const auto alone = others().to_vector<double>();
  CHECK(of_replica(0, others) == alone);
  CHECK(of_replica(1, others) != alone);
  CHECK(of_replica(1, others) == of_replica(1, others));
  CHECK(of_replica(2, others) != of_replica(1, others));
  CHECK(of_replica(0, scalar) != of_replica(1, scalar));
  CHECK(of_replica(0, order) != of_replica(1, order));
  // A replica without rows draws none of them.
  CHECK(of_replica(0, [] { return rand({0, 5}); }).empty());
  // A permutation of as many numbers as there are rows stays one.
  const RandomStream stream(random_start, {3, 3, 1});
  auto three = randperm(3).to_vector<std::int64_t>();
  std::sort(three.begin(), three.end());
  CHECK(three == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("a stream is a thread's generator while it lives") {
  manual_seed(5);
  {
    const RandomStream outer({9, 4}, {0, 2, 0});
    CHECK(random_state().seed == 9);
    (void)rand({2});
    {
      const RandomStream inner({1, 0}, {2, 2, 1});
      (void)rand({2});
      (void)nn::Linear(2, 2);  // initial values are drawn on the host
      CHECK(inner.position().offset == random_state().offset);
      CHECK(random_state().offset > 1);
    }
    CHECK(random_state().offset == 5);
    set_random_state({8, 1});
    CHECK(outer.position().seed == 8);
  }
  CHECK(random_state().seed == 5);
  CHECK(random_state().offset == 0);
}

TEST_CASE("shares of as many rows have one plan, and one graph under compile()") {
  const Tensor x = sample({8, 6});
  const auto drop = [](const Tensor& part) { return dropout(part + 1, 0.5) * 2; };
  set_random_state({random_start.seed, random_start.offset});
  const auto whole = drop(x).to_vector<float>();
  const auto share = [&](const auto& f, std::uint64_t which) {
    const Tensor part = narrow(x, 0, static_cast<std::int64_t>(which) * 4, 4).detach();
    eval({part});
    const RandomStream stream(random_start, {static_cast<std::int64_t>(which) * 4, 4, which});
    return f(part).template to_vector<float>();
  };
  const std::vector<float> upper(whole.begin(), whole.begin() + 24), lower(whole.begin() + 24, whole.end());
  CHECK(share(drop, 0) == upper);
  const auto plans = exec::statistics().plans_made;
  CHECK(share(drop, 1) == lower);
  CHECK(exec::statistics().plans_made == plans);

  const auto compiled = compile(drop);
  for (int round = 0; round < 2; ++round) {
    CHECK(share(compiled, 1) == lower);
    CHECK(share(compiled, 0) == upper);
    CHECK(compiled.graphs() == 1);
  }
  // Without rows it is another graph, and so it is for other rows.
  set_random_state({random_start.seed, random_start.offset});
  CHECK(compiled(x).to_vector<float>() == whole);
  const Tensor first = narrow(x, 0, 0, 4).detach();
  set_random_state({random_start.seed, random_start.offset});
  CHECK(compiled(first).to_vector<float>() == upper);
  CHECK(compiled.graphs() == 3);
  CHECK(share(compiled, 1) == lower);
  CHECK(compiled.graphs() == 3);
}

}  // namespace clnet::testing
