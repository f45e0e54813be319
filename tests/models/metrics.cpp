// Metrics against sums on the host in double precision, over batches of unlike sizes.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

/// Logits {count, classes} and a label for each row; some labels do not count, and one class has none.
struct Scored {
  std::int64_t classes;
  std::vector<float> logits;
  std::vector<std::int32_t> labels;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  float logit(std::int64_t row, std::int64_t c) const { return logits[static_cast<std::size_t>(row * classes + c)]; }
  std::int32_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(row)]; }
  std::int64_t predicted(std::int64_t row) const {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c)
      if (logit(row, c) > logit(row, best)) best = c;
    return best;
  }
  double probability(std::int64_t row, std::int64_t c) const {
    double all = 0;
    for (std::int64_t k = 0; k < classes; ++k) all += std::exp(double{logit(row, k)} - logit(row, c));
    return 1 / all;
  }
};

Scored scored(std::int64_t count, std::int64_t classes, unsigned seed, bool ignored = true) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Scored all{classes, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    // The last class never occurs, neither as a label nor as a prediction.
    const auto label = static_cast<std::int32_t>(random() % static_cast<unsigned>(classes - 1));
    for (std::int64_t c = 0; c < classes; ++c)
      all.logits.push_back(c == classes - 1 ? -50.0F : normal(random) + (c == label ? 1.0F : 0.0F));
    all.labels.push_back(ignored && random() % 7 == 0 ? -100 : label);
  }
  return all;
}

/// Gives all rows to the metric, in batches of 16 and a last one of what is left.
void give(metrics::Metric& metric, const Scored& all, std::int64_t batch = 16) {
  for (std::int64_t at = 0; at < all.count(); at += batch) {
    const auto n = std::min(batch, all.count() - at);
    const auto logits = Tensor::from(
        std::span(all.logits).subspan(static_cast<std::size_t>(at * all.classes), static_cast<std::size_t>(n * all.classes)),
        {n, all.classes});
    const auto labels =
        Tensor::from(std::span(all.labels).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)), {n});
    eval(metric.update(logits * 1.0, labels));
  }
}

metrics::Result result_of(metrics::Metric metric, const Scored& all) {
  give(metric, all);
  return metric.result();
}

struct Counted {
  std::vector<std::int64_t> right, predicted, labels;
  std::vector<double> matrix;
};
Counted counted(const Scored& all) {
  const auto n = static_cast<std::size_t>(all.classes);
  Counted result{std::vector<std::int64_t>(n), std::vector<std::int64_t>(n), std::vector<std::int64_t>(n),
                 std::vector<double>(n * n)};
  for (std::int64_t i = 0; i < all.count(); ++i) {
    if (all.label(i) < 0) continue;
    const auto label = static_cast<std::size_t>(all.label(i)), predicted = static_cast<std::size_t>(all.predicted(i));
    result.right[label] += label == predicted ? 1 : 0;
    ++result.predicted[predicted];
    ++result.labels[label];
    ++result.matrix[label * n + predicted];
  }
  return result;
}

/// All pairs of a label of class c and another one, by brute force; scores that fall into one of the bins are equal.
double area(const Scored& all, std::int64_t c, std::int64_t bins, bool one_logit = false) {
  const auto score = [&](std::int64_t row) {
    const double p = one_logit ? 1 / (1 + std::exp(-double{all.logit(row, 0)})) : all.probability(row, c);
    return bins == 0 ? p : std::min(std::floor(p * static_cast<double>(bins)), static_cast<double>(bins - 1));
  };
  double larger = 0, pairs = 0;
  for (std::int64_t i = 0; i < all.count(); ++i) {
    if (all.label(i) != c) continue;
    for (std::int64_t k = 0; k < all.count(); ++k) {
      if (all.label(k) == c || all.label(k) < 0) continue;
      ++pairs;
      larger += score(i) > score(k) ? 1 : score(i) == score(k) ? 0.5 : 0;
    }
  }
  return larger / pairs;
}

}  // namespace

TEST_CASE("metrics: accuracy and top-k count over all batches") {
  const auto all = scored(203, 6, 1);
  std::int64_t counts = 0;
  std::vector<std::int64_t> within(6);
  for (std::int64_t i = 0; i < all.count(); ++i) {
    if (all.label(i) < 0) continue;
    ++counts;
    std::size_t rank = 0;
    for (std::int64_t c = 0; c < all.classes; ++c) rank += all.logit(i, c) > all.logit(i, all.label(i)) ? 1 : 0;
    for (std::size_t k = rank; k < 6; ++k) ++within[k];
  }
  REQUIRE(counts < all.count());
  const auto share = [&](std::size_t k) { return static_cast<double>(within[k - 1]) / static_cast<double>(counts); };
  CHECK(result_of(metrics::Accuracy(), all).value == share(1));
  for (const std::int64_t k : {1, 2, 3, 6}) {
    const auto result = result_of(metrics::TopK(k), all);
    CHECK(result.name == "top" + std::to_string(k));
    CHECK(result.value == share(static_cast<std::size_t>(k)));
  }
  CHECK(std::isnan(metrics::Accuracy().value()));
  metrics::TopK three(3);
  CHECK_THROWS_WITH(three.update(zeros({4, 2}), zeros({4}, Dtype::i32)),
                    Catch::Contains("top3: the output has 2 classes, expected at least 3"));
}

TEST_CASE("metrics: precision, recall, F1, IoU and confusion by class and together") {
  const auto all = scored(301, 5, 2);
  const auto want = counted(all);
  REQUIRE(want.predicted[4] + want.labels[4] == 0);
  const auto check = [&](const auto& make, double (*measure)(double right, double predicted, double labels)) {
    double sum = 0, weighted = 0, right = 0, labels = 0, predicted = 0;
    std::vector<double> parts;
    for (std::size_t c = 0; c < 4; ++c) {
      const auto t = static_cast<double>(want.right[c]), p = static_cast<double>(want.predicted[c]),
                 n = static_cast<double>(want.labels[c]);
      parts.push_back(measure(t, p, n));
      sum += parts.back();
      weighted += n * parts.back();
      right += t;
      predicted += p;
      labels += n;
    }
    const auto macro = result_of(make(metrics::Average::macro), all);
    CHECK(macro.value == Approx(sum / 4).epsilon(1e-14));
    REQUIRE(macro.parts.size() == 5);
    for (std::size_t c = 0; c < 4; ++c) CHECK(macro.parts[c] == parts[c]);
    CHECK(std::isnan(macro.parts[4]));
    CHECK(result_of(make(metrics::Average::micro), all).value == measure(right, predicted, labels));
    CHECK(result_of(make(metrics::Average::weighted), all).value == Approx(weighted / labels).epsilon(1e-14));
  };
  using metrics::Average;
  check([](Average a) { return metrics::Precision(5, a); }, [](double t, double p, double) { return t / p; });
  check([](Average a) { return metrics::Recall(5, a); }, [](double t, double, double n) { return t / n; });
  check([](Average a) { return metrics::F1(5, a); }, [](double t, double p, double n) { return 2 * t / (p + n); });

  double iou = 0;
  for (std::size_t c = 0; c < 4; ++c)
    iou += static_cast<double>(want.right[c]) / static_cast<double>(want.predicted[c] + want.labels[c] - want.right[c]);
  CHECK(result_of(metrics::MeanIoU(5), all).value == Approx(iou / 4).epsilon(1e-14));
  const auto confusion = result_of(metrics::ConfusionMatrix(5), all);
  CHECK(confusion.parts == want.matrix);
  CHECK(confusion.value == result_of(metrics::Accuracy(), all).value);
}

TEST_CASE("metrics: a class that is labelled and never predicted has precision and F1 0") {
  metrics::Precision precision(3);
  metrics::F1 f1(3);
  const auto logits = Tensor::from({5.F, 0.F, 0.F, 5.F, 0.F, 0.F}, {2, 3});
  const auto labels = Tensor::from(std::vector<std::int32_t>{0, 1});
  precision.update(logits, labels);
  f1.update(logits, labels);
  CHECK(precision.value() == 0.25);  // 1/2 and 0/0
  CHECK(precision.result().parts[1] == 0);
  CHECK(f1.value() == Approx((2.0 / 3 + 0) / 2));
}

TEST_CASE("metrics: labels of pixels, with classes second or last") {
  const auto all = scored(2 * 3 * 4, 5, 3);
  const auto rows = Tensor::from(all.logits, {2, 3, 4, 5});
  const auto labels = Tensor::from(all.labels, {2, 3, 4});
  const auto want = result_of(metrics::MeanIoU(5), all);
  for (const auto& output : {rows, permute(rows, {0, 3, 1, 2})}) {
    metrics::MeanIoU iou(5);
    iou.update(output, labels);
    CHECK(iou.value() == want.value);
    metrics::TopK two(2);
    two.update(output, labels);
    CHECK(two.value() == result_of(metrics::TopK(2), all).value);
    metrics::Perplexity perplexity;
    perplexity.update(output, labels);
    CHECK(perplexity.value() == Approx(result_of(metrics::Perplexity(), all).value).epsilon(1e-6));
  }
}

TEST_CASE("metrics: the area under the ROC curve, of one logit and of several classes") {
  const auto all = scored(257, 4, 4);
  const auto result = result_of(metrics::AUC(4), all);
  double sum = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    sum += area(all, c, 0);
    // Rounding may move a score into the next bin.
    CHECK(result.parts[static_cast<std::size_t>(c)] == Approx(area(all, c, 1000)).margin(2e-4));
    CHECK(result.parts[static_cast<std::size_t>(c)] == Approx(area(all, c, 0)).margin(1e-3));
  }
  CHECK(std::isnan(result.parts[3]));
  CHECK(result.value == Approx(sum / 3).margin(1e-3));

  Scored one{1, {}, {}};
  for (std::int64_t i = 0; i < 100; ++i) {
    one.logits.push_back(static_cast<float>(std::sin(static_cast<double>(i) * 1.7) + (i % 3 == 0 ? 1 : 0)));
    one.labels.push_back(i % 11 == 5 ? -100 : i % 3 == 0 ? 1 : 0);
  }
  CHECK(result_of(metrics::AUC(), one).value == Approx(area(one, 1, 1000, true)).margin(1e-3));
  // Few bins are coarse, and still as documented.
  CHECK(result_of(metrics::AUC(1, 4), one).value == Approx(area(one, 1, 4, true)).epsilon(1e-12));
  // Without one kind of labels there is no area; a score that is not a number makes none either.
  metrics::AUC auc;
  auc.update(Tensor::from({1.F, 2.F}), Tensor::from({1.F, 1.F}));
  CHECK(std::isnan(auc.value()));
  auc.update(Tensor::from({NAN, 2.F}), Tensor::from({0.F, 0.F}));
  CHECK(std::isnan(auc.value()));
}

TEST_CASE("metrics: one logit is class 1 against 0, also for labels in a floating dtype") {
  const auto logits = Tensor::from({-1.F, 2.F, 3.F, -4.F});
  metrics::Accuracy accuracy;
  accuracy.update(logits, Tensor::from({0.F, 1.F, 0.F, 1.F}));
  accuracy.update(reshape(logits, {4, 1}), Tensor::from(std::vector<std::int32_t>{0, 1, 1, -100}));
  CHECK(accuracy.value() == 5.0 / 7);
  metrics::F1 f1(2);
  f1.update(logits, Tensor::from(std::vector<std::int32_t>{0, 1, 1, 0}));
  CHECK(f1.value() == 1);
}

TEST_CASE("metrics: perplexity and own means lose nothing over many batches") {
  const auto all = scored(203, 6, 5);
  double loss = 0, counts = 0;
  for (std::int64_t i = 0; i < all.count(); ++i) {
    if (all.label(i) < 0) continue;
    loss -= std::log(all.probability(i, all.label(i)));
    ++counts;
  }
  CHECK(result_of(metrics::Perplexity(), all).value == Approx(std::exp(loss / counts)).epsilon(1e-6));

  // A sum of f32 would stop growing at 2^24 ones, and lose each 0.1 long before.
  metrics::Mean mean("value", [](const Tensor& y, const Tensor&) { return y; });
  const auto nothing = zeros({1});
  double sum = 0;
  std::int64_t values = 0;
  for (int i = 0; i < 60; ++i) {
    const float value = i == 0 ? 16777216.F : 0.1F;
    mean.update(Tensor::from({value}) * 1.0, nothing);
    sum += double{value};
    ++values;
  }
  CHECK(mean.value() == Approx(sum / static_cast<double>(values)).epsilon(1e-11));

  auto weighted = metrics::Mean::weighted("weighted", [](const Tensor& y, const Tensor& t) {
    return std::pair(y / t, t);  // what has no weight is not a number
  });
  weighted.update(Tensor::from({2.F, 3.F, 0.F}), Tensor::from({1.F, 2.F, 0.F}));
  weighted.update(Tensor::from({5.F}), Tensor::from({4.F}));
  CHECK(weighted.value() == Approx((2.0 + 3 + 5) / 7).epsilon(1e-7));
}

TEST_CASE("metrics: along with a step, without plans or work of their own") {
  manual_seed(3);
  nn::Sequential model{nn::Linear{6, 16}, relu, nn::Linear{16, 6}};
  const auto all = scored(64, 6, 6);
  optim::SGD sgd(model, 0.1);
  metrics::Accuracy accuracy;
  metrics::F1 f1(6);
  double right = 0, counts = 0;
  std::vector<std::uint64_t> made, evaluations;
  for (std::int64_t at = 0; at < 64; at += 8) {
    const auto x = Tensor::from(std::span(all.logits).subspan(static_cast<std::size_t>(at * 6), 48), {8, 6});
    const auto labels = Tensor::from(std::span(all.labels).subspan(static_cast<std::size_t>(at), 8), {8});
    const Tensor output = model(x);
    auto more = accuracy.update(output, labels);
    for (auto& state : f1.update(output, labels)) more.push_back(state);
    more.push_back(output);
    sgd.step(cross_entropy(output, labels), more);
    made.push_back(exec::statistics().plans_made);
    evaluations.push_back(exec::statistics().evaluations);
    const auto values = output.to_vector<float>();
    for (std::size_t i = 0; i < 8; ++i) {
      const auto label = all.labels[static_cast<std::size_t>(at) + i];
      if (label < 0) continue;
      const auto row = std::span(values).subspan(6 * i, 6);
      right += std::max_element(row.begin(), row.end()) - row.begin() == label ? 1 : 0;
      ++counts;
    }
  }
  CHECK(accuracy.value() == right / counts);
  // One evaluation a step, and one plan for all of them.
  CHECK(made.back() == made.front());
  CHECK(evaluations.back() - evaluations.front() == 7);
}

TEST_CASE("metrics: states are saved, restored, named and begun anew") {
  const auto all = scored(64, 4, 7), more = scored(30, 4, 8);
  metrics::F1 whole(4);
  give(whole, all);
  const auto state = whole.state_dict();
  const auto half = whole.value();
  give(whole, more);

  metrics::F1 rest(4);
  give(rest, more);
  rest.load_state_dict(state);
  CHECK(rest.value() == half);
  give(rest, more);
  CHECK(rest.value() == whole.value());
  CHECK(rest.result().parts.size() == 4);
  CHECK_THROWS_WITH(metrics::F1(5).load_state_dict(state),
                    Catch::Contains("the state does not fit the metric f1: counts is i64[13], not i64[16]"));
  rest.reset();
  CHECK(std::isnan(rest.value()));
  auto other = whole.named("macro_f1");
  CHECK(std::isnan(other.value()));
  CHECK(result_of(other, all).name == "macro_f1");
  CHECK(other.value() == half);
}

TEST_CASE("metrics: of several outputs, and by name") {
  const auto all = scored(20, 4, 9);
  const std::vector<Tensor> outputs{zeros({20, 3}), Tensor::from(all.logits, {20, 4})};
  const std::vector<Tensor> labels{Tensor::from(all.labels, {20})};
  std::vector<metrics::Metric> list{metrics::Accuracy().on(1, 0).named("second"), metrics::make("top2", 4).on(1, 0)};
  eval(metrics::update(list, outputs, labels));
  const auto results = metrics::results(list);
  CHECK(results[0].name == "second");
  CHECK(results[0].value == result_of(metrics::Accuracy(), all).value);
  CHECK(results[1].name == "top2");
  auto beyond = metrics::Accuracy().on(2, 0);
  CHECK_THROWS_WITH(beyond.update(outputs, labels), Catch::Contains("accuracy: is of output 2, and there are 2"));
  for (const char* name : {"accuracy", "top5", "precision", "recall", "f1", "miou", "auc", "perplexity"})
    CHECK(metrics::make(name, 7).name() == name);
  for (const char* name : {"top", "top0", "top-1", "top5x", "acc"})
    CHECK_THROWS_WITH(metrics::make(name, 7), Catch::Contains("' is no metric; known are accuracy"));
}

TEST_CASE("metrics: what does not fit is refused, with the metric's name") {
  const auto ints = Tensor::from(std::vector<std::int32_t>{0, 1});
  metrics::Accuracy accuracy;
  CHECK_THROWS_WITH(accuracy.update(zeros({3, 2}), ints), Catch::Contains("accuracy: the output is f32[3, 2] for labels i32[2]"));
  CHECK_THROWS_WITH(accuracy.update(zeros({2, 3}), zeros({2})),
                    Catch::Contains("accuracy: the labels are f32[2], expected integers"));
  CHECK_THROWS_WITH(accuracy.update(Tensor{}, ints), Catch::Contains("accuracy: an undefined tensor"));
  metrics::F1 f1(3);
  CHECK_THROWS_WITH(f1.update(zeros({2, 4}), ints), Catch::Contains("f1: is of 3 classes, and the output has 4"));
  f1.update(zeros({2, 3}), Tensor::from(std::vector<std::int32_t>{3, 1}));
  CHECK_THROWS_WITH(f1.value(), Catch::Contains("f1: 1 label is no class below 3"));
  CHECK_THROWS_WITH(metrics::F1(1), Catch::Contains("f1: of 1 classes"));
  CHECK_THROWS_WITH(metrics::TopK(0), Catch::Contains("k is 0"));
  CHECK_THROWS_WITH(metrics::AUC(1, 1), Catch::Contains("1 bins"));
  CHECK_THROWS_WITH(metrics::Mean("own", nullptr), Catch::Contains("own: made without a function"));
  struct Odd : metrics::Formula {
    std::string name() const override { return "odd"; }
    io::StateDict states() const override { return {{"sum", Tensor::from({0.F}, {})}}; }
    std::vector<Tensor> update(const std::vector<Tensor>&, std::span<const Tensor>, std::span<const Tensor>) const override {
      return {zeros({2})};
    }
    metrics::Result result(const std::vector<Tensor>&) const override { return {}; }
  };
  metrics::Metric odd(std::make_shared<Odd>());
  CHECK_THROWS_WITH(odd.update(zeros({2}), zeros({2})), Catch::Contains("odd: update() gave the state sum as f32[2], not f32[]"));
}
