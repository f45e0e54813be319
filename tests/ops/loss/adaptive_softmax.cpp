#include "clnet/nn/adaptive_softmax.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/upload.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

using Row = std::vector<double>;

Row times(const Row& x, const Tensor& weight, const Tensor& bias = {}) {
  const auto values = weight.to_vector<double>();
  Row y(static_cast<std::size_t>(weight.size(0)));
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (bias.defined()) y[i] = bias.to_vector<double>()[i];
    for (std::size_t k = 0; k < x.size(); ++k) y[i] += values[i * x.size() + k] * x[k];
  }
  return y;
}

Row log_softmax_of(Row x) {
  double sum = 0;
  for (auto value : x) sum += std::exp(value);
  for (auto& value : x) value -= std::log(sum);
  return x;
}

/// The log-probabilities of all classes for a row, in double precision, as the paper defines them.
Row expected(const nn::AdaptiveLogSoftmaxWithLoss& model, const Row& x, std::size_t shortlist, std::size_t clusters, bool bias) {
  const auto value = [&](const std::string& name) { return model.parameter(name).value(); };
  const Row head = log_softmax_of(times(x, value("head.weight"), bias ? value("head.bias") : Tensor{}));
  Row result(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(shortlist));
  for (std::size_t i = 0; i < clusters; ++i) {
    const auto name = "tail." + std::to_string(i);
    for (auto own : log_softmax_of(times(times(x, value(name + ".0.weight")), value(name + ".1.weight"))))
      result.push_back(head[shortlist + i] + own);
  }
  return result;
}

}  // namespace

TEST_CASE("AdaptiveLogSoftmaxWithLoss: head and clusters are one distribution") {
  manual_seed(3);
  for (const bool bias : {false, true}) {
    nn::AdaptiveLogSoftmaxWithLoss model{12, 20, {5, 9}, {.div_value = 2, .head_bias = bias}};
    CHECK(model.parameter("tail.1.0.weight").value().shape() == Shape{3, 12});
    CHECK(model.parameter("tail.1.1.weight").value().shape() == Shape{11, 3});
    const Tensor x = randn({6, 12});
    const std::vector<std::int64_t> classes{0, 4, 5, 8, 9, 19};
    const Tensor target = Tensor::from(classes, Shape{6});
    const auto rows = x.to_vector<double>(), all = model.log_prob(x).to_vector<double>();
    const auto best = model.predict(x).to_vector<std::int64_t>();
    const auto [output, loss] = model(x, target);
    const auto got = output.to_vector<double>();
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      const Row row(rows.begin() + static_cast<std::ptrdiff_t>(12 * i), rows.begin() + static_cast<std::ptrdiff_t>(12 * i + 12));
      const auto want = expected(model, row, 5, 2, bias);
      REQUIRE(want.size() == 20);
      for (std::size_t c = 0; c < 20; ++c) CHECK(all[20 * i + c] == Approx(want[c]).epsilon(1e-5));
      const auto label = static_cast<std::size_t>(classes[i]);
      CHECK(got[i] == Approx(want[label]).epsilon(1e-5));
      CHECK(best[i] == std::max_element(want.begin(), want.end()) - want.begin());
      sum -= want[label] / 6;
    }
    CHECK(loss.item<double>() == Approx(sum).epsilon(1e-5));
    // A row alone.
    const auto one = model(slice(x, 0, 2, 3)[0], Tensor::scalar(5, Dtype::i64));
    CHECK(one.output.rank() == 0);
    CHECK(one.output.item<double>() == Approx(got[2]).epsilon(1e-5));
    CHECK(nn::clone(model)(x, target).loss.item<double>() == Approx(sum).epsilon(1e-5));
    CHECK(model.predict(x[1]).item<std::int64_t>() == best[1]);
  }
}

TEST_CASE("AdaptiveLogSoftmaxWithLoss: its gradients are those of its distribution") {
  manual_seed(4);
  nn::AdaptiveLogSoftmaxWithLoss model{9, 13, {4, 7}, {.div_value = 2}};
  const Tensor x = randn({5, 9}), target = Tensor::from(std::vector<std::int32_t>{12, 3, 5, 0, 7}, Shape{5});
  const auto weights = model.parameters();
  std::vector<Tensor> inputs{x};
  for (const auto& [name, parameter] : weights) inputs.push_back(parameter.value());
  REQUIRE(inputs.size() == 6);
  const auto got = gradients(model(x, target).loss, inputs);
  const auto want = gradients(nll_loss(model.log_prob(x), target), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto a = got[i].to_vector<float>(), b = want[i].to_vector<float>();
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == Approx(b[k]).margin(1e-6));
  }
  CHECK(check_gradients([&](const auto& in) { return model(in[0], target).loss; }, {x}).passed);
}

TEST_CASE("AdaptiveLogSoftmaxWithLoss: what is no class, and what does not fit") {
  nn::AdaptiveLogSoftmaxWithLoss model{8, 10, {4}};
  const Tensor classes = Tensor::from(std::vector<std::int64_t>{-1, 10, 3, 4}, Shape{4});
  CHECK_THROWS_WITH(model(randn({4, 8}), classes), Contains("label -1 of sample 0 is no class: there are 10"));
  const auto output = model(randn({4, 8}), exec::copy_now(classes, Device::current())).output.to_vector<float>();
  CHECK((std::isnan(output[0]) && std::isnan(output[1]) && std::isfinite(output[2]) && std::isfinite(output[3])));
  const auto make = [](std::vector<std::int64_t> cutoffs, double div_value = 4.0) {
    return nn::AdaptiveLogSoftmaxWithLoss{8, 10, std::move(cutoffs), {.div_value = div_value}};
  };
  for (const std::vector<std::int64_t>& wrong : {std::vector<std::int64_t>{}, {0}, {10}, {4, 4}, {5, 3}, {-1, 3}})
    CHECK_THROWS_WITH(make(wrong), Contains("cutoffs [") && Contains("must be one or more, ascending, from 1 to 9"));
  CHECK(nn::AdaptiveLogSoftmaxWithLoss(512, 3, {1}, {.div_value = 1.6}).parameter("tail.0.0.weight").value().size(0) == 319);
  CHECK_THROWS_WITH(make({3, 6}, 3), Contains("cluster 1 would have 0 features"));
  CHECK_THROWS_WITH(make({3}, 0), Contains("div_value 0 must be above 0"));
  CHECK_THROWS_WITH(model(randn({4, 7}), zeros({4}, Dtype::i64)), Contains("{batch, 8}"));
  CHECK_THROWS_WITH(model(randn({4, 8}), zeros({3}, Dtype::i64)), Contains("does not fit x"));
  CHECK_THROWS_WITH(model(randn({4, 8}), zeros({4})), Contains("must be i32 or i64"));
}
