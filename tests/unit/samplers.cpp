// Class weights, samplers, subsets and splits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/epoch_order.h"

namespace clnet::data {
namespace {

using Catch::Contains;
using Indices = std::vector<std::int64_t>;
using Labels = std::vector<std::int32_t>;

/// Sample i has the value i and a label.
ArrayDataset counted(const Labels& labels) {
  std::vector<float> values;
  for (std::size_t i = 0; i < labels.size(); ++i) values.push_back(static_cast<float>(i));
  return from_arrays(values, {1}, labels, 1 + *std::max_element(labels.begin(), labels.end()));
}
float value_of(const Dataset& dataset, std::int64_t index) { return dataset.get(index, 0)[0].values<float>()[0]; }

TEST_CASE("class weights are scikit-learn's balanced ones") {
  // compute_class_weight("balanced", classes=[0, 1, 2], y=[0, 0, 0, 1, 2, 2])
  CHECK(class_weights(Labels{0, 0, 0, 1, 2, 2}, 3) == std::vector<float>{6.0F / 9, 2, 1});
  CHECK(class_weights(Labels{1}, 3) == std::vector<float>{0, 1.0F / 3, 0});
  CHECK_THROWS_WITH(class_weights(Labels{0, 3}, 3), Contains("label 3 is not one of 3"));
  CHECK_THROWS_WITH(class_weights(Labels{-1}, 3), Contains("label -1"));
  CHECK_THROWS_WITH(class_weights(Labels{}, 3), Contains("no labels"));
  CHECK_THROWS_WITH(class_weights(Labels{0}, 0), Contains("0 classes"));
}

TEST_CASE("a weighted sampler draws by weight, and the same again for seed and epoch") {
  const std::vector<double> weights{0, 1, 0, 2, 5, 0};
  const auto sampler = weighted_sampler(weights, {.samples = 8000});
  CHECK(sampler.size == 8000);
  const auto order = sampler.order(1, 2);
  std::vector<int> counts(weights.size());
  for (const auto index : order) ++counts.at(static_cast<std::size_t>(index));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / 8;
    CHECK(std::abs(counts[i] - 8000 * share) <= 5 * std::sqrt(8000 * share * (1 - share)));
  }
  CHECK(sampler.order(1, 2) == order);
  CHECK(sampler.order(1, 3) != order);
  CHECK(sampler.order(2, 2) != order);
  CHECK(weighted_sampler(weights).size == 6);
  CHECK(weighted_sampler(weights).fingerprint != sampler.fingerprint);
}

TEST_CASE("without replacement each sample comes once, the first with its weight's chance") {
  const std::vector<double> weights{0, 1, 3, 4};
  const auto sampler = weighted_sampler(weights, {.samples = 3, .replacement = false});
  std::vector<int> first(4);
  // Of the pairs (i, j) the chance is w_i / 8 * w_j / (8 - w_i).
  std::map<std::pair<std::int64_t, std::int64_t>, int> pairs;
  for (std::uint64_t epoch = 0; epoch < 8000; ++epoch) {
    const auto order = sampler.order(0, epoch);
    REQUIRE(std::set<std::int64_t>(order.begin(), order.end()) == std::set<std::int64_t>{1, 2, 3});
    ++pairs[{order[0], order[1]}];
  }
  for (const auto& [pair, count] : pairs) {
    const double a = weights[static_cast<std::size_t>(pair.first)], b = weights[static_cast<std::size_t>(pair.second)];
    const double share = a / 8 * b / (8 - a);
    CHECK(std::abs(count - 8000 * share) <= 5 * std::sqrt(8000 * share * (1 - share)));
  }
  CHECK_THROWS_WITH(weighted_sampler(weights, {.replacement = false}), Contains("4 samples without replacement, and 3 have"));
  CHECK_THROWS_WITH(weighted_sampler({1, -1}), Contains("weight -1 of sample 1"));
  CHECK_THROWS_WITH(weighted_sampler({1, NAN}), Contains("sample 1"));
  CHECK_THROWS_WITH(weighted_sampler({0, 0}), Contains("2 samples of 0 with a weight above 0"));
  CHECK_THROWS_WITH(weighted_sampler({}), Contains("0 samples of 0"));
  CHECK_THROWS_WITH(weighted_sampler({1e308, 1e308}), Contains("sum of the weights"));
}

TEST_CASE("a balanced sampler draws all classes equally often") {
  Labels labels(900, 0);
  labels.insert(labels.end(), 100, 4);
  const auto order = balanced_sampler(labels, 4000).order(0, 0);
  const auto rare = std::count_if(order.begin(), order.end(), [](std::int64_t index) { return index >= 900; });
  CHECK(std::abs(static_cast<double>(rare) - 2000) < 5 * std::sqrt(1000.0));
  CHECK(balanced_sampler(labels).size == 1000);
}

TEST_CASE("an epoch's batches are those of the sampler, also from the middle") {
  BatchOptions options{.batch_size = 3};
  options.sampler = Sampler{.order =
                                [](std::uint64_t, std::uint64_t epoch) {
                                  return Indices{4, 4, 0, static_cast<std::int64_t>(epoch)};
                                },
                            .size = 4};
  EpochBatches all(5, options);
  CHECK(all.next() == Indices{4, 4, 0});
  CHECK(all.next() == Indices{0});
  CHECK(all.next().empty());
  options.start = 1;
  options.epoch = 2;
  EpochBatches rest(5, options);
  CHECK(rest.next() == Indices{2});
  options.drop_last = true;
  CHECK(EpochBatches(5, options).next().empty());
  options = {.sampler = options.sampler};
  CHECK_THROWS_WITH(EpochBatches(4, options).next(), Contains("the sampler gave sample 4, and the dataset has 4"));
  options.sampler->size = 5;
  CHECK_THROWS_WITH(EpochBatches(5, options).next(), Contains("gave 4 samples, expected 5"));
}

TEST_CASE("options of batches that contradict a sampler are refused") {
  const auto data = counted({0, 1});
  CHECK(batches(data, {.batch_size = 1, .sampler = weighted_sampler({1, 1}, {.samples = 7})}).size() == 7);
  CHECK_THROWS_WITH(batches(data, {.shuffle = true, .sampler = weighted_sampler({1, 1})}), Contains("shuffle must be false"));
  CHECK_THROWS_WITH(batches(data, {.sampler = Sampler()}), Contains("the sampler has no order"));
}

TEST_CASE("subsets and joined datasets lead to the samples they are made of") {
  const auto data = counted({0, 1, 0, 2}), more = counted({1, 1});
  const Subset part(data, {3, 0, 3});
  CHECK(part.size() == 3);
  CHECK(value_of(part, 0) == 3);
  CHECK(value_of(part, 1) == 0);
  CHECK(labels_of(part) == Labels{2, 0, 2});
  CHECK(part.name_of(2) == "sample 3");
  CHECK(part.fingerprint() != Subset(data, {0, 3, 3}).fingerprint());
  CHECK(part.fingerprint() == Subset(data, {3, 0, 3}).fingerprint());
  const ConcatDataset joined({&part, &more, &data});
  CHECK(joined.size() == 9);
  CHECK(value_of(joined, 2) == 3);
  CHECK(value_of(joined, 3) == 0);
  CHECK(value_of(joined, 8) == 3);
  CHECK(labels_of(joined) == Labels{2, 0, 2, 1, 1, 0, 1, 0, 2});
  CHECK(joined.name_of(4) == "sample 1");
  CHECK(joined.fingerprint() != ConcatDataset({&more, &part, &data}).fingerprint());
  CHECK_THROWS_WITH(Subset(data, {4}), Contains("no sample 4 among 4"));
  CHECK_THROWS_WITH(part.get(3, 0), Contains("no sample 3 among 3"));
  CHECK_THROWS_WITH(joined.get(9, 0), Contains("no sample 9 among 9"));
  CHECK_THROWS_WITH(ConcatDataset({nullptr}), Contains("null"));
  CHECK(ConcatDataset({}).size() == 0);
}

/// Samples without labels that are known before they are read.
struct Read : Dataset {
  std::int64_t size() const override { return 4; }
  Example get(std::int64_t index, std::uint64_t /*seed*/) const override {
    Example example{Array(static_cast<float>(index))};
    if (index < 2) example.emplace_back(std::int32_t{5});
    if (index == 2) example.emplace_back(std::int64_t{6});
    return example;
  }
};

TEST_CASE("labels of a dataset of one's own are read from its samples") {
  const Read own;
  CHECK(labels_of(Subset(own, {0, 2})) == Labels{5, 6});
  CHECK_THROWS_WITH(labels_of(own), Contains("sample 3 has no label"));
  CHECK_THROWS_WITH(labels_of(from_arrays({1, 2}, {1}, std::vector<float>{1, 2}, {1})), Contains("no single label"));
}

TEST_CASE("a stratified split keeps the classes' shares") {
  Labels labels;
  for (int i = 0; i < 100; ++i) labels.push_back(i % 10 == 0 ? 1 : 0);
  labels.push_back(2);
  const auto [first, second] = stratified_split(labels, 0.2, 5);
  CHECK(first.size() == 81);
  CHECK(second.size() == 20);
  CHECK(std::count_if(second.begin(), second.end(), [&](std::int64_t i) { return labels[static_cast<std::size_t>(i)] == 1; }) ==
        2);
  CHECK(std::is_sorted(first.begin(), first.end()));
  std::set<std::int64_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  CHECK(all.size() == 101);
  CHECK(first.back() == 100);  // the only one of its class
  CHECK(stratified_split(labels, 0.2, 5).second == second);
  CHECK(stratified_split(labels, 0.2, 6).second != second);
  for (const double share : {0.0, 1.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH(stratified_split(labels, share), Contains("expected a share between 0 and 1"));
  const auto data = counted(labels);
  const Dataset& base = data;
  const auto [rest, test] = split(base, 0.2, 5);
  const auto [rest_arrays, test_arrays] = split(data, 0.2, 5);
  REQUIRE(test.size() == 20);
  REQUIRE(test_arrays.size() == 20);
  for (std::int64_t i = 0; i < 20; ++i) {
    CHECK(value_of(test, i) == static_cast<float>(second[static_cast<std::size_t>(i)]));
    CHECK(value_of(test_arrays, i) == value_of(test, i));
    CHECK(test_arrays.label_of(i) == test.label_of(i));
  }
  CHECK(rest_arrays.size() == rest.size());
  CHECK(rest_arrays.classes == 3);
  const auto [most, some] = split(from_arrays({1, 2, 3, 4}, {1}, std::vector<float>{1, 2, 3, 4}, {1}), 0.25);
  CHECK(most.targets.size() == 3);
  CHECK(some.floats == some.targets);
  CHECK_THROWS_WITH(split(from_text("abcd", "abcd", 2), 0.5), Contains("is a text"));
}

}  // namespace
}  // namespace clnet::data
