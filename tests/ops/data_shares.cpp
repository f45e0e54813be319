// Shares of batches: together they are the batches, with the same order, augmentation and number.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::data {
namespace {

using Catch::Contains;
using Counts = std::vector<std::int64_t>;

Counts counts_of(const std::vector<double>& weights, std::int64_t batch) {
  Counts counts;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto rows = rows_of({weights, i}, batch);
    CHECK(rows.first == next);
    CHECK(rows.batch == batch);
    counts.push_back(rows.count);
    next += rows.count;
  }
  CHECK(next == batch);
  return counts;
}

/// A batch as numbers, array by array.
using ShareContent = std::vector<std::vector<float>>;

ShareContent share_content(const Batch& batch) {
  ShareContent content;
  for (std::size_t i = 0; i < batch.size(); ++i) content.push_back(batch[i].to(Dtype::f32).to_vector<float>());
  return content;
}

/// The batches of all shares are put together, and are the whole ones.
void require_together(const Dataset& dataset, const BatchOptions& options) {
  std::vector<ShareContent> whole;
  std::vector<std::optional<std::string>> states;
  for (const auto& batch : batches(dataset, options)) {
    CHECK(batch.rows.first == 0);
    CHECK(batch.rows.count == batch.images.size(0));
    CHECK(batch.rows.batch == batch.rows.count);
    whole.push_back(share_content(batch));
    states.push_back(batch.stream_state);
  }
  REQUIRE_FALSE(whole.empty());
  for (const auto& weights : {std::vector<double>{1}, {1, 1}, {3, 1}, {1, 1, 1}, {0, 1}, {0.2, 0.5, 0.3}}) {
    for (const std::int64_t workers : {0, 2}) {
      std::vector<ShareContent> together(whole.size());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        auto shared = options;
        shared.share = Share{weights, i};
        shared.workers = workers;
        std::size_t at = 0;
        for (const auto& batch : batches(dataset, shared)) {
          REQUIRE(at < whole.size());
          const auto wanted = rows_of(*shared.share, batch.rows.batch);
          CHECK(batch.rows.first == wanted.first);
          CHECK(batch.rows.count == wanted.count);
          CHECK(batch.stream_state == states[at]);
          auto& all = together[at++];
          if (batch.rows.count == 0) {
            CHECK_FALSE(batch.images.defined());
            CHECK_FALSE(batch.labels.defined());
            continue;
          }
          CHECK(batch.images.size(0) == batch.rows.count);
          const auto content = share_content(batch);
          all.resize(content.size());
          for (std::size_t k = 0; k < content.size(); ++k) all[k].insert(all[k].end(), content[k].begin(), content[k].end());
        }
        CHECK(at == whole.size());
      }
      CHECK(together == whole);
    }
  }
}

/// Images of which flips and shifts show.
ArrayDataset images_of(std::int64_t count) {
  std::vector<float> pixels(static_cast<std::size_t>(count) * 12);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
  return from_arrays(std::move(pixels), {1, 3, 4}, std::move(labels), 3);
}

/// Samples that depend on their random number.
class OwnSamples : public Dataset {
 public:
  explicit OwnSamples(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  Example get(std::int64_t index, std::uint64_t seed) const override {
    if (index == broken) throw Error("is torn");
    return {Array(std::vector<float>{static_cast<float>(index), static_cast<float>(seed % 1000)}, Shape{2}), Array(index)};
  }
  static std::int64_t length(std::int64_t index) { return index * 5 % 7; }
  std::int64_t broken = -1;

 private:
  std::int64_t count_;
};

/// Counts up to an end.
class Countdown : public Dataset {
 public:
  explicit Countdown(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return unknown; }
  Example get(std::int64_t, std::uint64_t) const override { throw Error("a stream has no get()"); }
  std::unique_ptr<Stream> iterate(std::uint64_t) const override {
    struct Numbers : Stream {
      explicit Numbers(std::int64_t end) : last(end) {}
      std::optional<Example> next() override {
        if (at == last) return std::nullopt;
        return Example{Array(std::vector<float>{static_cast<float>(at++)}, Shape{1})};
      }
      std::optional<std::string> state() const override { return std::to_string(at); }
      void restore(const std::string& text) override { at = std::stoll(text); }
      std::int64_t at = 0, last;
    };
    return std::make_unique<Numbers>(count_);
  }

 private:
  std::int64_t count_;
};

TEST_CASE("shares are rounded by the largest remainder") {
  CHECK(counts_of({1}, 5) == Counts{5});
  CHECK(counts_of({1, 1}, 5) == Counts{3, 2});
  CHECK(counts_of({1, 1, 1}, 7) == Counts{3, 2, 2});
  CHECK(counts_of({1, 1, 1}, 8) == Counts{3, 3, 2});
  CHECK(counts_of({3, 1}, 32) == Counts{24, 8});
  CHECK(counts_of({3, 1}, 10) == Counts{8, 2});
  CHECK(counts_of({1, 3}, 10) == Counts{3, 7});
  CHECK(counts_of({1, 2}, 4) == Counts{1, 3});
  // Quotas 1 1/3, 1/3 and 1/3: equal remainders, whatever their roundings.
  CHECK(counts_of({4, 1, 1}, 2) == Counts{2, 0, 0});
  CHECK(counts_of({1, 1, 4}, 2) == Counts{1, 0, 1});
  CHECK(counts_of({1, 1}, 1) == Counts{1, 0});
  CHECK(counts_of({1, 1, 1}, 0) == Counts{0, 0, 0});
  CHECK(counts_of({0, 1, 0}, 3) == Counts{0, 3, 0});
  CHECK(counts_of({0.1, 0.2, 0.7}, 10) == Counts{1, 2, 7});
  CHECK(counts_of({1e-300, 1e300}, 1000) == Counts{0, 1000});
  CHECK(counts_of({1e307, 1e307}, std::int64_t{1} << 53) == Counts(2, std::int64_t{1} << 52));
  for (std::int64_t batch = 0; batch < 200; ++batch) (void)counts_of({0.37, 1.9, 0.001, 5}, batch);

  CHECK_THROWS_WITH(rows_of({{1, 1}, 2}, 4), "shares: there is no share 2 of 2");
  CHECK_THROWS_WITH(rows_of({{}, 0}, 4), "shares: there is no share 0 of 0");
  CHECK_THROWS_WITH(rows_of({{1, -1}, 0}, 4), "shares: -1 is no share");
  CHECK_THROWS_WITH(rows_of({{0, 0}, 0}, 4), "shares: they add up to 0");
  CHECK_THROWS_AS(rows_of({{1, std::numeric_limits<double>::quiet_NaN()}, 0}, 4), Error);
  CHECK_THROWS_AS(rows_of({{1, std::numeric_limits<double>::infinity()}, 0}, 4), Error);
  CHECK_THROWS_AS(rows_of({{1, 1}, 0}, -1), Error);
  CHECK_THROWS_AS(rows_of({{1, 1}, 0}, std::numeric_limits<std::int64_t>::max()), Error);
  const auto dataset = images_of(4);
  CHECK_THROWS_WITH(batches(dataset, {.share = Share{{1, 1}, 2}}), "shares: there is no share 2 of 2");
}

TEST_CASE("shares of a dataset in memory are its batches together") {
  // The last batch has 5 samples, then 1.
  for (const std::int64_t count : {21, 17}) {
    const auto dataset = images_of(count);
    require_together(dataset, {.batch_size = 8});
    require_together(dataset, {.batch_size = 8, .drop_last = true});
    require_together(
        dataset,
        {.batch_size = 8, .shuffle = true, .seed = 3, .epoch = 1, .start = 1, .augmentation = {.flip = true, .shift = 2}});
    require_together(dataset,
                     {.batch_size = 8, .shuffle = true, .seed = 4, .augmentation = {.flip = true}, .collate = stack_collate});
  }
}

TEST_CASE("shares of a dataset of one's own, sorted, sampled or as it is") {
  const OwnSamples dataset(30);
  require_together(dataset, {.batch_size = 7, .shuffle = true, .seed = 2, .length = OwnSamples::length});
  require_together(dataset, {.batch_size = 7, .seed = 2, .epoch = 5});
  require_together(dataset, {.batch_size = 7, .sampler = weighted_sampler(std::vector<double>(30, 1), {.samples = 20})});
  OwnSamples torn(30);
  torn.broken = 12;
  // Only the share that has the sample meets its fault.
  const auto read = [&](std::size_t index) {
    for (const auto& batch : batches(torn, {.batch_size = 10, .share = Share{{1, 1}, index}})) eval({batch.images});
  };
  CHECK_THROWS_WITH(read(0), Contains("is torn"));
  CHECK_NOTHROW(read(1));
}

TEST_CASE("shares of a stream, which is read as a whole, with its states") {
  const Countdown stream(23);
  require_together(stream, {.batch_size = 4});
  require_together(stream, {.batch_size = 4, .start = 2});
  require_together(stream, {.batch_size = 4, .drop_last = true});
  require_together(stream, {.batch_size = 4, .stream_state = "10"});
}

}  // namespace
}  // namespace clnet::data
