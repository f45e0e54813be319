// What is drawn, dropped and chosen at random: how often, of what, and the same for the same seed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

namespace clnet::testing {

using Catch::Matchers::Contains;
using Whole = std::vector<std::int64_t>;

namespace {

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// How often each number from 0 on comes.
std::vector<double> shares(const Whole& values, std::size_t count) {
  std::vector<double> result(count, 0);
  for (auto value : values) result.at(static_cast<std::size_t>(value)) += 1 / static_cast<double>(values.size());
  return result;
}

}  // namespace

TEST_CASE("randint draws every number equally often") {
  manual_seed(11);
  for (auto dtype : {Dtype::i64, Dtype::i32, Dtype::i8}) {
    auto values = randint(-2, 3, {50'000}, dtype).to_vector<std::int64_t>();
    for (auto& value : values) value += 2;
    for (double share : shares(values, 5)) CHECK(share == Approx(0.2).margin(0.01));
  }
  CHECK(randint(250, 256, {9}, Dtype::u8).dtype() == Dtype::u8);
  const auto wide = randint(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), {1000})
                        .to_vector<std::int64_t>();
  CHECK(std::count_if(wide.begin(), wide.end(), [](auto v) { return v < 0; }) == Approx(500).margin(80));
  CHECK(std::set<std::int64_t>(wide.begin(), wide.end()).size() == 1000);
  CHECK(randint(7, 8, {3}).to_vector<std::int64_t>() == Whole{7, 7, 7});
  CHECK_THROWS_WITH(randint(3, 3, {2}), "randint: there is no number from 3 to below 3");
  CHECK_THROWS_WITH(randint(0, 257, {2}, Dtype::u8), Contains("u8 does not hold"));
  CHECK_THROWS_WITH(randint(-1, 5, {2}, Dtype::u8), Contains("u8 does not hold"));
  CHECK_THROWS_AS(randint(0, 5, {2}, Dtype::f32), DtypeError);
  CHECK_THROWS_AS(randint(0, 2, {2}, Dtype::boolean), DtypeError);
}

TEST_CASE("randperm has each number once, each place alike") {
  manual_seed(12);
  auto values = randperm(1000).to_vector<std::int64_t>();
  CHECK_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<std::int64_t>(i));
  Whole firsts;
  for (int i = 0; i < 400; ++i) firsts.push_back(randperm(4).to_vector<std::int64_t>()[0]);
  for (double share : shares(firsts, 4)) CHECK(share == Approx(0.25).margin(0.09));
  CHECK(randperm(0).shape() == Shape{0});
  CHECK_THROWS_AS(randperm(-1), ShapeError);
}

TEST_CASE("bernoulli is 1 as often as it is told") {
  manual_seed(13);
  for (auto dtype : {Dtype::f32, Dtype::f16}) {
    const auto values = bernoulli(full({50'000}, 0.25, dtype)).to_vector<float>();
    CHECK(mean_of(values) == Approx(0.25).margin(0.01));
  }
  CHECK(mean_of(bernoulli(zeros({100})).to_vector<float>()) == 0);
  CHECK(mean_of(bernoulli(ones({100})).to_vector<float>()) == 1);
  CHECK_THROWS_AS(bernoulli(ones({2}, Dtype::i32)), DtypeError);
}

TEST_CASE("multinomial draws by weight, and what weighs nothing not at all") {
  manual_seed(14);
  const Tensor weights = Tensor::from<float>({1, 0, 3, 4, 0, 2});
  const auto with = shares(multinomial(weights, 50'000, true).to_vector<std::int64_t>(), 6);
  const double want[] = {0.1, 0, 0.3, 0.4, 0, 0.2};
  for (std::size_t i = 0; i < 6; ++i) CHECK(with[i] == Approx(want[i]).margin(want[i] == 0 ? 0 : 0.01));
  // The first draw without replacement is like one with it.
  const auto rows = multinomial(expand(weights, {20'000, 6}), 4).to_vector<std::int64_t>();
  Whole firsts;
  for (std::size_t row = 0; row < rows.size(); row += 4) {
    firsts.push_back(rows[row]);
    const std::set<std::int64_t> all(rows.begin() + static_cast<std::ptrdiff_t>(row),
                                     rows.begin() + static_cast<std::ptrdiff_t>(row) + 4);
    REQUIRE(all == std::set<std::int64_t>{0, 2, 3, 5});
  }
  const auto without = shares(firsts, 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(without[i] == Approx(want[i]).margin(want[i] == 0 ? 0 : 0.015));
  CHECK(multinomial(weights, 0).shape() == Shape{0});
  CHECK(multinomial(ones({2, 3}), 5, true).shape() == Shape{2, 5});
  CHECK_THROWS_WITH(multinomial(weights, 7), "multinomial: 7 draws from 6 numbers without replacement");
  CHECK_THROWS_AS(multinomial(weights, -1, true), ShapeError);
  CHECK_THROWS_AS(multinomial(ones({2, 2, 2}), 1), ShapeError);
  CHECK_THROWS_AS(multinomial(ones({2, 0}), 0), ShapeError);
  CHECK_THROWS_WITH(multinomial(ones({(1 << 24) + 1}), 3, true),
                    "multinomial: one of 16777217 numbers; draws know 16777216 apart");
}

TEST_CASE("the same seed draws the same, by one plan") {
  const auto draws = [] {
    manual_seed(15);
    Whole all = randint(0, 1000, {20}).to_vector<std::int64_t>();
    for (const auto& more : {randperm(20), multinomial(ones({20}), 9), multinomial(ones({20}), 9, true)})
      for (auto value : more.to_vector<std::int64_t>()) all.push_back(value);
    return all;
  };
  const auto first = draws();
  const auto plans = exec::statistics().plans_made;
  CHECK(draws() == first);
  manual_seed(16);
  CHECK(randint(0, 1000, {20}).to_vector<std::int64_t>() != Whole(first.begin(), first.begin() + 20));
  CHECK(exec::statistics().plans_made == plans);
}

TEST_CASE("dropout of channels drops them as a whole") {
  manual_seed(17);
  const auto whole = [](const Tensor& y, std::size_t channels) {
    const auto values = y.to_vector<float>();
    const auto size = values.size() / channels;
    double kept = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const float first = values[c * size];
      CHECK((first == 0 || first == Approx(1 / 0.75)));
      CHECK(std::all_of(values.begin() + static_cast<std::ptrdiff_t>(c * size),
                        values.begin() + static_cast<std::ptrdiff_t>((c + 1) * size), [=](float v) { return v == first; }));
      kept += first != 0;
    }
    return kept / static_cast<double>(channels);
  };
  CHECK(whole(dropout1d(ones({20, 50, 3}), 0.25), 1000) == Approx(0.75).margin(0.05));
  CHECK(whole(dropout1d(ones({500, 3}), 0.25), 500) == Approx(0.75).margin(0.07));
  CHECK(whole(dropout2d(ones({20, 50, 2, 3}), 0.25), 1000) == Approx(0.75).margin(0.05));
  CHECK(whole(dropout3d(ones({20, 50, 2, 2, 2}), 0.25), 1000) == Approx(0.75).margin(0.05));
  CHECK(whole(dropout3d(ones({500, 2, 2, 2}), 0.25), 500) == Approx(0.75).margin(0.07));
  const Tensor x = ones({4, 5, 2, 2}), y = dropout2d(x, 0.5);
  CHECK(gradients(sum(y), {x})[0].to_vector<float>() == y.to_vector<float>());
  CHECK(whole(dropout2d(ones({20, 50, 3}), 0.25), 1000) == Approx(0.75).margin(0.05));
  CHECK_THROWS_AS(dropout2d(ones({5, 2}), 0.5), ShapeError);
  CHECK_THROWS_AS(dropout1d(ones({5}), 0.5), ShapeError);
  CHECK_THROWS_WITH(dropout3d(ones({4, 5, 2, 2}), 2), Contains("dropout3d: the probability"));
}

TEST_CASE("alpha_dropout keeps mean and variance") {
  manual_seed(18);
  const Tensor x = randn({100'000});
  for (const auto& y : {alpha_dropout(x, 0.3), reshape(feature_alpha_dropout(reshape(x, {200, 500, 1}), 0.3), {100'000})}) {
    const auto values = y.to_vector<float>();
    double squares = 0;
    for (float value : values) squares += double{value} * value;
    CHECK(mean_of(values) == Approx(0).margin(0.02));
    CHECK(squares / 1e5 == Approx(1).margin(0.02));
  }
  CHECK(alpha_dropout(x, 0).to_vector<float>() == x.to_vector<float>());
  CHECK(sum(abs(alpha_dropout(x, 1))).item<float>() == 0);
  CHECK_THROWS_AS(alpha_dropout(x, -0.1), Error);
  CHECK_THROWS_AS(feature_alpha_dropout(x, 0.5), ShapeError);
}

TEST_CASE("rrelu's slopes lie where they shall") {
  manual_seed(19);
  const Tensor x = Tensor::from<float>({-2, 3});
  CHECK(rrelu(x, 0.1, 0.3).to_vector<float>()[0] == Approx(-0.4));
  const auto y = rrelu(expand(x, {10'000, 2}), 0.1, 0.3, true).to_vector<float>();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); i += 2) {
    REQUIRE(y[i] >= -0.6F);
    REQUIRE(y[i] <= -0.2F);
    REQUIRE(y[i + 1] == 3);
    sum += y[i];
  }
  CHECK(sum / 1e4 == Approx(-0.4).margin(0.005));
  CHECK_THROWS_AS(rrelu(x, 0.3, 0.1), Error);
  CHECK_THROWS_AS(rrelu(x, std::nan(""), 1), Error);
}

TEST_CASE("gumbel_softmax chooses as softmax says") {
  manual_seed(20);
  const Tensor logits = log(Tensor::from<float>({0.1F, 0.2F, 0.7F}));
  const Tensor many = expand(logits, {30'000, 3}), hard = gumbel_softmax(many, 0.5, true);
  const auto values = hard.to_vector<float>();
  CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 0 || v == 1; }));
  const auto means = mean(hard, {0}).to_vector<float>();
  CHECK(means[0] == Approx(0.1).margin(0.01));
  CHECK(means[1] == Approx(0.2).margin(0.01));
  CHECK(means[2] == Approx(0.7).margin(0.01));
  for (float total : sum(gumbel_softmax(expand(logits, {50, 3}), 2), {1}).to_vector<float>()) CHECK(total == Approx(1));
  // The gradient is that of the soft choice with the same noise.
  const auto gradient = [&](bool is_hard) {
    manual_seed(21);
    const Tensor weights = Tensor::from<float>({1, 2, 5});
    return gradients(clnet::sum(gumbel_softmax(logits, 1, is_hard) * weights), {logits})[0].to_vector<float>();
  };
  const auto soft = gradient(false), of_hard = gradient(true);
  for (std::size_t i = 0; i < 3; ++i) CHECK(of_hard[i] == Approx(soft[i]).margin(1e-6));
  CHECK_THROWS_WITH(gumbel_softmax(logits, 0), "gumbel_softmax: tau 0 is not positive");
  CHECK_THROWS_AS(gumbel_softmax(logits, 1, false, 1), ShapeError);
}

TEST_CASE("Softmax2d is over channels") {
  const Tensor x = randn({2, 3, 4, 5});
  CHECK(nn::Softmax2d()(x).to_vector<float>() == softmax(x, 1).to_vector<float>());
  CHECK(nn::Softmax2d()(x[1]).to_vector<float>() == softmax(x[1], 0).to_vector<float>());
  CHECK_THROWS_WITH(nn::Softmax2d()(zeros({3, 4})), Catch::Contains("Softmax2d: ") && Catch::Contains("is no image"));
}

TEST_CASE("layers of activations and dropping") {
  manual_seed(22);
  const Tensor x = Tensor::from<float>({-4, -1, 0.25F, 7}, {2, 2});
  const auto same = [&](nn::Module&& layer, const Tensor& want) {
    INFO(layer.kind());
    CHECK(layer(x).to_vector<float>() == want.to_vector<float>());
  };
  same(nn::Softmin(1), softmax(-x, 1));
  same(nn::ReLU6(), clamp(x, 0, 6));
  same(nn::CELU(2), celu(x, 2));
  same(nn::SELU(), selu(x));
  same(nn::Mish(), mish(x));
  same(nn::Hardtanh(-2, 3), clamp(x, -2, 3));
  same(nn::LogSigmoid(), log_sigmoid(x));
  same(nn::Softplus(2, 1), softplus(x, 2, 1));
  same(nn::Softsign(), softsign(x));
  same(nn::Hardshrink(2), hardshrink(x, 2));
  same(nn::Softshrink(2), softshrink(x, 2));
  same(nn::Tanhshrink(), tanhshrink(x));
  same(nn::Threshold(0, 9), threshold(x, 0, 9));
  same(nn::GLU(1), glu(x, 1));
  same(nn::PReLU(2, 0.5), where(greater(x, 0.0), x, x * 0.5));
  nn::PReLU prelu(2);
  CHECK(prelu.parameter_count() == 2);
  CHECK(prelu.state_dict()[0].first == "weight");
  nn::RReLU rrelu(0.1, 0.3);
  rrelu.inference();
  CHECK(rrelu(x).to_vector<float>() == leaky_relu(x, 0.2).to_vector<float>());
  CHECK_THROWS_AS(nn::RReLU(0.3, 0.1), Error);
  auto alpha = nn::AlphaDropout(0.5);
  CHECK(alpha(x).to_vector<float>() != x.to_vector<float>());
  alpha.inference();
  CHECK(alpha(x).to_vector<float>() == x.to_vector<float>());
  CHECK(nn::Dropout2d(1)(ones({2, 3, 2, 2})).to_vector<float>() == std::vector<float>(24, 0));
  CHECK_THROWS_WITH(nn::Dropout1d(-1), Contains("Dropout1d: p must be"));
  nn::Upsample upsample({.scale_factor = {2}});
  CHECK(upsample(ones({1, 2, 3, 4})).shape() == Shape{1, 2, 6, 8});
  CHECK(upsample.kind() == "Upsample(scale_factor=[2])");
}

TEST_CASE("losses of signs and of several classes") {
  const Tensor x = Tensor::from<float>({0.5F, -2, 30, -40}, {2, 2}), t = Tensor::from<float>({1, -1, -1, 1}, {2, 2});
  const auto losses = soft_margin_loss(x, t, Reduction::none).to_vector<float>();
  CHECK(losses[0] == Approx(std::log1p(std::exp(-0.5))));
  CHECK(losses[1] == Approx(std::log1p(std::exp(-2.0))));
  CHECK(losses[2] == Approx(30));
  CHECK(losses[3] == Approx(40));
  const Tensor labels = Tensor::from<float>({1, 0, 0, 1}, {2, 2}), weight = Tensor::from<float>({2, 4});
  const auto rows = multilabel_soft_margin_loss(x, labels, Reduction::none, weight).to_vector<float>();
  CHECK(rows[0] == Approx((2 * std::log1p(std::exp(-0.5)) + 4 * std::log1p(std::exp(-2.0))) / 2));
  CHECK(rows[1] == Approx((2 * 30.0 + 4 * 40.0) / 2));
  CHECK(multilabel_soft_margin_loss(x, labels).item<float>() ==
        Approx(mean(binary_cross_entropy_with_logits(x, labels, Reduction::none)).item<float>()));
  CHECK_THROWS_AS(soft_margin_loss(x, ones({3})), ShapeError);
  CHECK_THROWS_AS(multilabel_soft_margin_loss(ones({}), ones({})), ShapeError);
}

}  // namespace clnet::testing
