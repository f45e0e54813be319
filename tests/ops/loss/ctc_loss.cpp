#include "tests/cases/loss/ctc_loss.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

using Whole = std::vector<std::int64_t>;
Tensor whole(const Whole& values) { return Tensor::from(values, {static_cast<std::int64_t>(values.size())}); }

}  // namespace

TEST_CASE("ctc_loss") { check(ctc_loss_cases(), {"ctc_loss"}); }

TEST_CASE("a ctc_loss that no alignment has is infinite, or nothing") {
  const Tensor x = log_softmax(rand({3, 2, 4}), 2), targets = Tensor::from<std::int32_t>({1, 1, 2, 3}, {2, 2});
  // Two equal targets need a blank between them.
  const auto losses = [&](bool zero_infinity) {
    return ctc_loss(x, targets, whole({2, 3}), whole({2, 2}), {.reduction = Reduction::none, .zero_infinity = zero_infinity});
  };
  const auto plain = losses(false).to_vector<float>(), zeroed = losses(true).to_vector<float>();
  CHECK(std::isinf(plain[0]));
  CHECK(std::isfinite(plain[1]));
  CHECK(zeroed == std::vector<float>{0, plain[1]});
  const auto g = gradients(sum(losses(true)), {x})[0].to_vector<float>();
  for (std::size_t i = 0; i < g.size(); ++i) {
    CHECK(std::isfinite(g[i]));
    if (i / 4 % 2 == 0) CHECK(g[i] == 0);
  }
}

TEST_CASE("ctc_loss of targets one behind the other and of one sequence, with PyTorch's numbers") {
  Array raw({4, 3, 4});
  for (std::int64_t i = 0; i < raw.numel(); ++i) raw[i] = std::sin(0.37 * static_cast<double>(i));
  const Tensor logits = to_tensor(raw, Dtype::f32), x = log_softmax(logits, 2), steps = whole({4, 3, 2}),
               lengths = whole({2, 3, 1});
  const Tensor all = whole({1, 2, 3, 3, 1, 2});
  const double inf = std::numeric_limits<double>::infinity();
  const auto losses = [&](const Tensor& of, bool zero_infinity) {
    return ctc_loss(x, all, steps, of, {.reduction = Reduction::none, .zero_infinity = zero_infinity});
  };
  // Lengths of the device, too, where nobody knows them.
  for (const Tensor& own : {lengths, cast(lengths + zeros({3}, Dtype::i64), Dtype::i32)}) {
    compare("losses", to_array(losses(own, false)), {{3}, {3.1473954, inf, 1.6111655}}, 1e-5);
    compare("losses", to_array(losses(own, true)), {{3}, {3.1473954, 0, 1.6111655}}, 1e-5);
    // The gradient of the infinite loss is 0 either way.
    for (const bool zero_infinity : {false, true})
      compare(
          "gradient", to_array(gradients(sum(losses(own, zero_infinity)), {logits})[0]),
          {{4, 3, 4}, {-0.1232063, -0.521086,  0.2866279,  0.3576645, 0, 0, 0, 0, -0.1209275, 0.2705503, -0.2961317, 0.1465089,
                       -0.0561257, -0.2889755, 0.0390055,  0.3060958, 0, 0, 0, 0, 0.0093333,  0.271307,  -0.5018703, 0.2212299,
                       -0.0234051, 0.0769913,  -0.1904075, 0.1368213, 0, 0, 0, 0, 0,          0,         0,          0,
                       -0.0539169, 0.2523979,  -0.4653507, 0.2668697, 0, 0, 0, 0, 0,          0,         0,          0}},
          1e-5);
  }
  // What is not there is no class.
  const auto short_of = ctc_loss(x, whole({1, 2, 3, 3}), steps, lengths + zeros({3}, Dtype::i64), {.reduction = Reduction::none});
  CHECK(std::isnan(short_of.to_vector<float>()[2]));
  CHECK(ctc_loss(zeros({2, 2, 3}), zeros({0}, Dtype::i32), whole({2, 2}), whole({0, 0})).item<float>() == 0);

  const Tensor one = squeeze(slice(x, 1, 0, 1), 1), four = Tensor::scalar(4, Dtype::i64), two = Tensor::scalar(2, Dtype::i64);
  CHECK(ctc_loss(one, whole({1, 2}), four, two).item<float>() == Approx(1.5736977));
  const Tensor plain = ctc_loss(one, whole({1, 2}), whole({4}), two, {.reduction = Reduction::none});
  CHECK(plain.shape() == Shape{});
  CHECK(plain.item<float>() == Approx(3.1473954));
}

TEST_CASE("lengths and targets that are none give NaN, those alone") {
  const Tensor x = log_softmax(rand({3, 6, 4}), 2);
  const Tensor targets = Tensor::from<std::int64_t>({1, 2, 1, 2, 1, 2, 1, 2, 1, 4, -1, 2}, {6, 2});
  const auto losses = ctc_loss(x, targets, whole({3, 4, -1, 3, 3, 3}), whole({2, 2, 2, 3, 2, 2}), {.reduction = Reduction::none})
                          .to_vector<float>();
  CHECK(std::isfinite(losses[0]));
  for (std::size_t n = 1; n < 6; ++n) CHECK(std::isnan(losses[n]));
}

TEST_CASE("ctc_loss after log_softmax has gradients that add up to 0 for each step") {
  const Tensor logits = randn({9, 2, 5}), targets = Tensor::from<std::int32_t>({1, 2, 2, 4, 3, 3}, {2, 3});
  const Tensor loss = ctc_loss(log_softmax(logits, 2), targets, whole({9, 7}), whole({3, 3}), {.reduction = Reduction::sum});
  for (float total : sum(gradients(loss, {logits})[0], {2}).to_vector<float>()) CHECK(total == Approx(0).margin(1e-5));
}

TEST_CASE("the gradient of a long ctc_loss does not drift") {
  constexpr std::int64_t steps = 3000, classes = 6;
  const Tensor x = log_softmax(make_tensor({steps, 1, classes}, 1, -3, 3), 2);
  const Tensor targets = reshape(arange(40, 0, 1, Dtype::i32), {1, 40});
  const auto some = targets - targets / 5.0 * 5.0 + 1.0;  // 1..5
  const auto loss = ctc_loss(x, some, whole({steps}), whole({40}), {.reduction = Reduction::sum});
  // Each step is in some class for certain.
  for (float total : sum(gradients(loss, {x})[0], {2}).to_vector<float>()) REQUIRE(total == Approx(-1).epsilon(1e-5));
}

TEST_CASE("gradients of ctc_loss's gradients") {
  struct Batch {
    std::int64_t steps, targets;
    Whole labels, input_lengths, target_lengths;
    std::vector<std::int64_t> impossible;
  };
  const std::vector<Batch> batches{
      // Targets that repeat, more than fit, as many as there are steps; what lies behind a sequence's is read by none.
      {6,
       3,
       {1, 2, 1, 2, 2, -9, 3, 9, 9, 7, -1, 5, 1, 1, 1, 3, 2, 1, -1, 4, 9},
       {6, 5, 4, 6, 4, 3, 0},
       {3, 2, 1, 0, 3, 3, 0},
       {4}},
      {1, 1, {1, 2, 3, 1}, {1, 1, 0, 0}, {1, 0, 0, 1}, {3}},
      {3, 0, {}, {3, 2}, {0, 0}, {}}};
  for (const auto& batch : batches)
    for (const std::int64_t blank : {0, 3})
      for (const auto reduction : {Reduction::none, Reduction::mean}) {
        INFO(batch.steps << " steps, blank " << blank << ", reduction " << static_cast<int>(reduction));
        const auto N = static_cast<std::int64_t>(batch.input_lengths.size()), C = std::int64_t{4};
        auto labels = batch.labels;
        // With the last class as blank all others move down by one.
        if (blank != 0)
          for (auto& label : labels) --label;
        const Shape shape{batch.steps, N, C}, of_targets{N, batch.targets};
        Array x = make_values({shape, -4, -0.5}, 1), u = make_values({shape}, 2), v = make_values({shape}, 3);
        const Tensor at = to_tensor(x, Dtype::f32), along_u = to_tensor(u, Dtype::f32), along_v = to_tensor(v, Dtype::f32);
        const Tensor scale = make_tensor({N}, 4, 0.5, 2);
        const Tensor targets = cast(Tensor::from(labels, of_targets), blank == 0 ? Dtype::i32 : Dtype::i64);
        const Tensor loss = ctc_loss(at, targets, whole(batch.input_lengths), whole(batch.target_lengths),
                                     {.blank = blank, .reduction = reduction, .zero_infinity = true});
        const auto first = gradients(sum(loss * scale), {at})[0];
        const auto second = gradients(sum(first * along_u), {at, scale});
        const auto third = gradients(sum(second[0] * along_v), {at})[0];

        const auto doubles = [](const Whole& list) { return std::vector<double>(list.begin(), list.end()); };
        const auto input_lengths = doubles(batch.input_lengths), target_lengths = doubles(batch.target_lengths);
        Array g = to_array(reduction == Reduction::none ? scale : expand(sum(scale), {N}));
        for (std::int64_t n = 0; n < N && reduction == Reduction::mean; ++n)
          g[n] /= std::max(target_lengths[static_cast<std::size_t>(n)], 1.0) * static_cast<double>(N);
        for (const auto n : batch.impossible) g[n] = 0;
        // The reference's gradient beside x.
        const auto beside = [&](double by_u, double by_v) {
          Array moved = x;
          for (std::int64_t i = 0; i < x.numel(); ++i) moved[i] += by_u * u[i] + by_v * v[i];
          return reference::ctc_gradient(moved, {of_targets, doubles(labels)}, {{N}, input_lengths}, {{N}, target_lengths}, g,
                                         static_cast<int>(blank));
        };
        constexpr double h = 1e-3;
        const auto here = beside(0, 0), after = beside(h, 0), before = beside(-h, 0);
        const auto a = beside(h, h), b = beside(h, -h), c = beside(-h, h), d = beside(-h, -h);
        Array want(shape), want_third = want, by_scale({N});
        for (std::int64_t i = 0; i < want.numel(); ++i) {
          want[i] = (after[i] - before[i]) / (2 * h);
          want_third[i] = (a[i] - b[i] - c[i] + d[i]) / (4 * h * h);
          const auto n = i / C % N;
          if (g[n] != 0) by_scale[n] += here[i] * u[i] / g[n];
        }
        compare("second", to_array(second[0]), want, 1e-5);
        compare("third", to_array(third), want_third, 1e-5);
        // Of what the losses were multiplied with: each sequence's share of the first gradient.
        if (reduction == Reduction::none) compare("second, by the losses' gradient", to_array(second[1]), by_scale, 1e-5);
      }
}

TEST_CASE("second gradients of ctc_loss are NaN for no lengths and targets alone, and else numbers") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  // The third class is impossible, or as good as that; behind a sequence's steps may be anything.
  for (const double never : {-inf, -3e38, -1e9}) {
    const Tensor steps = reshape(arange(3), {3, 1, 1}), classes = arange(4), sequence = reshape(arange(6), {6, 1});
    Tensor x = log_softmax(make_tensor({3, 6, 4}, 1, -2, 2), 2);
    x = where(eq(classes, 2.0), never, x);
    x = where(logical_and(eq(steps, 2.0), eq(sequence, 1.0)), nan, x);
    const Tensor targets = Tensor::from<std::int64_t>({1, 3, 1, 3, 1, 2, 1, 1, 1, 4, 1, 3}, {6, 2});
    // The third cannot be, the fourth does not fit, the fifth names no class, the last has too many steps.
    const Tensor own_steps = whole({3, 2, 3, 2, 3, 4}), lengths = whole({2, 1, 2, 2, 2, 2});
    for (const bool zero_infinity : {false, true}) {
      const auto losses =
          ctc_loss(x, targets, own_steps, lengths, {.reduction = Reduction::none, .zero_infinity = zero_infinity});
      const Tensor scale = make_tensor({6}, 2, 0.5, 1);
      const auto first = gradients(sum(losses * scale), {x})[0];
      const auto second = gradients(sum(first * make_tensor(first.shape(), 3)), {x, scale});
      const auto h = second[0].to_vector<float>(), by_scale = second[1].to_vector<float>();
      for (std::size_t n = 0; n < 6; ++n) {
        double size = 0;
        for (std::size_t i = 0; i < h.size(); ++i)
          if (i / 4 % 6 == n) size += std::abs(h[i]);
        INFO("sequence " << n << ", never " << never);
        if (n >= 4) {
          CHECK(std::isnan(size));
          continue;
        }
        CHECK(std::isfinite(size));
        CHECK(std::isfinite(by_scale[n]));
        if (n < 2) CHECK(size > 0);
        if (n == 3 || (n == 2 && std::isinf(never))) CHECK(size == 0);
      }
    }
  }
}

TEST_CASE("second gradients of a long ctc_loss do not drift") {
  constexpr std::int64_t steps = 200;
  const Shape shape{steps, 1, 6};
  Array x = make_values({shape, -3, 0}, 1), u = make_values({shape}, 2), labels({1, 20});
  Whole targets;
  for (std::int64_t i = 0; i < 20; ++i) labels[i] = static_cast<double>(targets.emplace_back(i % 5 + 1));
  const Tensor at = to_tensor(x, Dtype::f32), along = to_tensor(u, Dtype::f32);
  const auto loss = ctc_loss(at, Tensor::from(targets, {1, 20}), whole({steps}), whole({20}), {.reduction = Reduction::sum});
  const auto second = gradients(sum(gradients(loss, {at})[0] * along), {at})[0];
  constexpr double h = 1e-3;
  const auto beside = [&](double by) {
    Array moved = x;
    for (std::int64_t i = 0; i < x.numel(); ++i) moved[i] += by * u[i];
    return reference::ctc_gradient(moved, labels, {{1}, {steps}}, {{1}, {20}}, {{1}, {1}}, 0);
  };
  const auto after = beside(h), before = beside(-h);
  Array want(shape);
  for (std::int64_t i = 0; i < want.numel(); ++i) want[i] = (after[i] - before[i]) / (2 * h);
  compare("second", to_array(second), want, 1e-4);
  // Shares of a step add up to 1 wherever it lies: their changes to 0.
  for (float total : sum(second, {2}).to_vector<float>()) REQUIRE(total == Approx(0).margin(5e-5));
}

TEST_CASE("ctc_loss: a negative length moves no other sequence's targets") {
  const Tensor scores = log_softmax(rand({8, 3, 4}), 2), inputs = Tensor::from({8, 8, 8}), lengths = Tensor::from({-1, 2, 2});
  const auto losses = [&](const Tensor& targets) {
    return ctc_loss(scores, targets, inputs, lengths, {.reduction = Reduction::none}).to_vector<float>();
  };
  const auto padded = losses(Tensor::from({1, 1, 1, 2, 3, 1}, {3, 2})), joined = losses(Tensor::from({1, 2, 3, 1}));
  CHECK((std::isnan(padded[0]) && std::isnan(joined[0])));
  CHECK(padded[1] == joined[1]);
  CHECK(padded[2] == joined[2]);
}

TEST_CASE("ctc_loss refuses what does not fit") {
  const Tensor x = zeros({3, 2, 4}), targets = ones({2, 2}, Dtype::i32), two = whole({2, 2});
  CHECK_THROWS_WITH(ctc_loss(zeros({3, 4}), targets, two, two), Contains("log_probs f32[3, 4] are not {T, N, C}, or {T, C}"));
  CHECK_THROWS_WITH(ctc_loss(x, ones({3, 2}, Dtype::i32), two, two), Contains("targets [3, 2] are not {N, S}"));
  CHECK_THROWS_WITH(ctc_loss(x, whole({1, 2, 3}), two, two),
                    "ctc_loss: targets [3] are not as many as the target_lengths add up to, 4");
  CHECK_THROWS_WITH(ctc_loss(x, whole({1, 2}), two, whole({2})), Contains("targets [2] are not {N, S} for N = 2"));
  CHECK_THROWS_WITH(ctc_loss(x, targets, whole({2}), two), Contains("lengths [1] and [2]"));
  CHECK_THROWS_WITH(ctc_loss(x, targets, two, two, {.blank = 4}), "ctc_loss: blank 4 is none of 4 classes");
  CHECK_THROWS_WITH(ctc_loss(x, ones({2, 2}), two, two), Contains("targets must be i32 or i64"));
  CHECK_THROWS_AS(ctc_loss(cast(x, Dtype::i32), targets, two, two), DtypeError);
}
