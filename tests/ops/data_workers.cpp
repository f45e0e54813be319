// Datasets of a caller's own: workers, streams, collation, exceptions.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::data {
namespace {

using Catch::Contains;
using namespace std::chrono_literals;

/// Sample i has i % 5 + 1 numbers that depend on the seed, its length, and flags; sample `broken` throws.
class Sequences : public Dataset {
 public:
  explicit Sequences(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  static std::int64_t length(std::int64_t index) { return index % 5 + 1; }
  Example get(std::int64_t index, std::uint64_t seed) const override {
    if (index == named) throw FileError(name_of(index) + ": is missing");
    most_ = std::max(most_.load(), ++begun_ - taken_.load());
    std::this_thread::sleep_for(wait);
    if (index == broken) throw std::invalid_argument("is torn");
    const auto n = static_cast<std::size_t>(length(index));
    std::vector<float> values(n, static_cast<float>(seed % 1000));
    values[0] = static_cast<float>(index);
    const std::vector<std::uint8_t> bytes(n, static_cast<std::uint8_t>(index % 256));
    return {Array(values, Shape{length(index)}, "values"), Array(index, "index"), Array(bytes, Shape{length(index)}, "bytes"),
            Array(std::vector<bool>(n, true), Shape{length(index)}, "mask")};
  }
  std::string name_of(std::int64_t index) const override { return "line " + std::to_string(index); }

  void take(std::int64_t samples) const { taken_ += samples; }
  /// Samples that were begun and not taken, at most.
  std::int64_t most() const { return most_; }

  std::int64_t broken = -1, named = -1;  ///< samples that throw, the second with their name
  std::chrono::microseconds wait{0};

 private:
  std::int64_t count_;
  mutable std::atomic<std::int64_t> begun_ = 0, taken_ = 0, most_ = 0;
};

/// The content of all batches.
std::vector<std::vector<float>> contents(const Dataset& dataset, const BatchOptions& options) {
  std::vector<std::vector<float>> all;
  for (const auto& batch : batches(dataset, options))
    for (std::size_t i = 0; i < batch.size(); ++i) all.push_back(batch[i].to(Dtype::f32).to_vector<float>());
  return all;
}

TEST_CASE("workers: bits and order are the same for any number of them") {
  const Sequences sequences(101);
  const auto padded = pad_collate();
  for (const auto& options :
       {BatchOptions{.batch_size = 7, .collate = padded},
        BatchOptions{.batch_size = 7, .shuffle = true, .seed = 3, .epoch = 2, .start = 2, .collate = padded},
        BatchOptions{.batch_size = 7, .shuffle = true, .drop_last = true, .collate = padded, .length = Sequences::length}}) {
    auto other = options;
    other.workers = 0;
    const auto expected = contents(sequences, other);
    CHECK(static_cast<std::int64_t>(expected.size()) == 4 * batches(sequences, options).size());
    for (const int workers : {1, 2, 5}) {
      other.workers = workers;
      CHECK(contents(sequences, other) == expected);
    }
  }
  // The same of a dataset in memory, by its own path and by samples.
  std::vector<float> pixels(std::size_t{50} * 12);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i);
  const auto images = from_arrays(pixels, {1, 3, 4}, std::vector<std::int32_t>(50, 1), 2);
  BatchOptions options{.batch_size = 8, .shuffle = true, .seed = 5, .augmentation = {.flip = true, .shift = 2}, .workers = 0};
  const auto expected = contents(images, options);
  for (const int workers : {1, 2, 5}) {
    options.workers = workers;
    CHECK(contents(images, options) == expected);
  }
  options.collate = stack_collate;
  CHECK(contents(images, options) == expected);
}

TEST_CASE("workers: batches of similar lengths hold every sample once") {
  const Sequences sequences(203);
  for (const bool shuffle : {false, true}) {
    const BatchOptions options{
        .batch_size = 10, .shuffle = shuffle, .seed = 1, .workers = 2, .collate = pad_collate(), .length = Sequences::length};
    std::vector<std::int64_t> seen, lengths;
    std::int64_t padding = 0;
    for (const auto& batch : batches(sequences, options)) {
      const auto indices = batch["index"].to_vector<std::int64_t>();
      CHECK(batch["index"].dtype() == Dtype::i64);
      for (const auto index : indices) padding += batch.images.size(1) - Sequences::length(index);
      lengths.push_back(batch.images.size(1));
      seen.insert(seen.end(), indices.begin(), indices.end());
    }
    CHECK(lengths.size() == 21);
    CHECK(std::is_sorted(lengths.begin(), lengths.end()) == !shuffle);
    CHECK(padding <= 4 * 10);  // at the four borders between lengths
    std::sort(seen.begin(), seen.end());
    for (std::int64_t i = 0; i < 203; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("workers: samples in flight are bounded") {
  if (!Device::current().info().thread_safe) return;
  for (const std::int64_t workers : {1, 3}) {
    const Sequences sequences(400);
    for (const auto& batch : batches(sequences, {.batch_size = 4, .workers = workers, .prefetch = 2, .collate = pad_collate()})) {
      std::this_thread::sleep_for(1ms);
      sequences.take(batch.images.size(0));
    }
    // The batch in the consumer's hands, too.
    CHECK(sequences.most() <= 4 * (workers + 2 + 1));
  }
}

TEST_CASE("workers: an exception arrives behind the sample's name, in its place") {
  Sequences sequences(100);
  sequences.broken = 42;
  for (const int workers : {0, 1, 2, 5}) {
    std::int64_t seen = 0;
    const auto visit = [&] {
      for (const auto& batch : batches(sequences, {.batch_size = 10, .workers = workers, .collate = pad_collate()}))
        seen += batch.images.size(0);
    };
    CHECK_THROWS_WITH(visit(), "line 42: is torn");
    CHECK(seen == 40);
    try {
      visit();
    } catch (const Error& error) {
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::invalid_argument);
    }
  }
  sequences.broken = -1;
  sequences.named = 4;
  CHECK_THROWS_WITH(contents(sequences, {}), "line 4: is missing");
  CHECK_THROWS_AS(contents(sequences, {}), FileError);
  sequences.named = -1;
  CHECK_THROWS_WITH(contents(sequences, {.batch_size = 3}),
                    "batch of line 0 to line 2: sample 1 of the batch has f32[2] as array 'values', and the first has f32[1]; "
                    "pad_collate() pads");
}

TEST_CASE("workers: what length() throws arrives behind the sample's name, and what a stream's state() throws with its place") {
  const Sequences sequences(9);
  const BatchOptions options{.batch_size = 4, .collate = pad_collate(), .length = [](std::int64_t index) -> std::int64_t {
                               if (index == 5) throw std::invalid_argument("has no end");
                               return index;
                             }};
  CHECK_THROWS_WITH(contents(sequences, options), "line 5: has no end");
  struct Torn : Stream {
    std::optional<Example> next() override { return Example{Array(1.0F)}; }
    std::optional<std::string> state() const override { throw std::invalid_argument("is torn"); }
    void restore(const std::string&) override { throw std::invalid_argument("is another's"); }
  };
  struct Endless : Dataset {
    std::int64_t size() const override { return unknown; }
    std::unique_ptr<Stream> iterate(std::uint64_t) const override { return std::make_unique<Torn>(); }
  };
  const Endless endless;
  CHECK_THROWS_WITH(contents(endless, {.batch_size = 2}), "the stream's state() behind 2 samples: is torn");
  CHECK_THROWS_WITH(contents(endless, {.batch_size = 2, .stream_state = "x"}), "the stream's restore(): is another's");
}

TEST_CASE("workers: leaving a loop joins them within a second") {
  Sequences sequences(100000);
  sequences.wait = 10ms;
  for (const int workers : {1, 4}) {
    const auto range = batches(sequences, {.batch_size = 200, .workers = workers, .prefetch = 8, .collate = pad_collate()});
    auto iterator = range.begin();
    const auto before = std::chrono::steady_clock::now();
    iterator = range.end();
    CHECK(std::chrono::steady_clock::now() - before < 1s);
  }
}

/// 0..count-1, as a stream with or without a state.
class Counting : public Dataset {
 public:
  Counting(std::int64_t count, bool states) : count_(count), states_(states) {}
  std::int64_t size() const override { return unknown; }
  std::unique_ptr<Stream> iterate(std::uint64_t) const override { return std::make_unique<Pass>(count_, states_, broken); }
  std::int64_t broken = -1;

 private:
  class Pass : public Stream {
   public:
    Pass(std::int64_t count, bool states, std::int64_t broken) : count_(count), broken_(broken), states_(states) {}
    std::optional<Example> next() override {
      if (at_ == broken_) throw FileError("the disk is gone");
      if (at_ == count_) return std::nullopt;
      return Example{Array(static_cast<float>(at_)), Array(static_cast<std::int32_t>(at_++))};
    }
    std::optional<std::string> state() const override {
      if (!states_) return std::nullopt;
      return std::to_string(at_);
    }
    void restore(const std::string& state) override { at_ = std::stoll(state); }

   private:
    std::int64_t count_, broken_, at_ = 0;
    bool states_;
  };

  std::int64_t count_;
  bool states_;
};

TEST_CASE("streams: batches end where they do, the same for any number of workers") {
  for (const std::int64_t count : {0, 1, 19, 20}) {
    const Counting stream(count, false);
    for (const int workers : {0, 1, 2, 5})
      for (const bool drop_last : {false, true}) {
        std::vector<float> seen;
        for (const auto& [values, numbers] : batches(stream, {.batch_size = 5, .drop_last = drop_last, .workers = workers})) {
          CHECK(numbers.dtype() == Dtype::i32);
          const auto part = values.to_vector<float>();
          seen.insert(seen.end(), part.begin(), part.end());
        }
        CHECK(static_cast<std::int64_t>(seen.size()) == (drop_last ? count - count % 5 : count));
        for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<float>(i));
      }
  }
  const Counting three(3, false);
  CHECK(batches(three, {.batch_size = 2, .start = 1}).size() == Dataset::unknown);
}

TEST_CASE("streams: the state behind a batch leads to the next one") {
  const Counting stream(23, true);
  std::vector<Batch> all;
  for (const auto& batch : batches(stream, {.batch_size = 4, .workers = 3})) all.push_back(batch);
  REQUIRE(all.size() == 6);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto range = batches(stream, {.batch_size = 4, .workers = 2, .stream_state = all[i].stream_state});
    const auto begin = range.begin();
    if (i + 1 == all.size())
      CHECK(begin == range.end());
    else
      CHECK((*begin).labels.to_vector<std::int32_t>() == all[i + 1].labels.to_vector<std::int32_t>());
  }
  const Counting stateless(23, false);
  CHECK(!(*batches(stateless, {}).begin()).stream_state);
  CHECK((*batches(stateless, {.batch_size = 4, .start = 3}).begin()).labels.to_vector<std::int32_t>()[0] == 12);
  auto torn = stateless;
  torn.broken = 9;
  CHECK_THROWS_WITH(contents(torn, {.batch_size = 4, .workers = 3}), "sample 9 of the stream: the disk is gone");
  CHECK_THROWS_AS(contents(torn, {.batch_size = 4, .workers = 0}), FileError);
}

TEST_CASE("batches: options that a dataset cannot have") {
  const Counting stream(23, false);
  CHECK_THROWS_WITH(batches(stream, {.shuffle = true}), Contains("a stream has an order of its own"));
  const Sequences sequences(3);
  CHECK_THROWS_WITH(batches(sequences, {.augmentation = {.flip = true}}), Contains("change their samples in get()"));
  CHECK_THROWS_WITH(batches(sequences, {.stream_state = "3"}), Contains("this dataset has a size"));
  CHECK_THROWS_WITH(batches(sequences, {.workers = -1}), Contains("workers is -1, expected at least 0"));
  CHECK_THROWS_WITH(batches(sequences, {.workers = 100000}), Contains("expected at most 256"));
  CHECK_THROWS_WITH(batches(sequences, {.prefetch = -1}), Contains("prefetch is -1"));
  const auto batch = *batches(sequences, {.batch_size = 1}).begin();
  CHECK(batch.size() == 4);
  CHECK_THROWS_WITH(batch["indices"], Contains("there is no tensor 'indices' among [values, index, bytes, mask]"));
  CHECK_THROWS_WITH(batch[4], "batch: there is no tensor 4 among 4");
}

TEST_CASE("pad_collate: pads each dtype to the longest, and tells lengths") {
  std::vector<Example> samples;
  samples.push_back({Array(std::vector<float>{1, 2}, Shape{2}), Array(std::vector<std::int32_t>{1, 2}, Shape{2}),
                     Array(std::vector<std::int64_t>{1, 2}, Shape{2}), Array(std::vector<std::uint8_t>{1, 2}, Shape{2}),
                     Array(std::vector<bool>{true, true}, Shape{2}), Array(7)});
  samples.push_back({Array(std::vector<float>{3}, Shape{1}), Array(std::vector<std::int32_t>{3}, Shape{1}),
                     Array(std::vector<std::int64_t>{3}, Shape{1}), Array(std::vector<std::uint8_t>{3}, Shape{1}),
                     Array(std::vector<bool>{true}, Shape{1}), Array(8)});
  const auto result = pad_collate({.values = {0.5, -100, -1, 255, 0, 0}, .multiple = 3, .lengths = true})(samples);
  const auto list = [](const auto& span) { return std::vector(span.begin(), span.end()); };
  CHECK(result[0].shape == Shape{2, 3});
  CHECK(list(result[0].values<float>()) == std::vector<float>{1, 2, 0.5F, 3, 0.5F, 0.5F});
  CHECK(list(result[1].values<std::int32_t>()) == std::vector<std::int32_t>{1, 2, -100, 3, -100, -100});
  CHECK(list(result[2].values<std::int64_t>()) == std::vector<std::int64_t>{1, 2, -1, 3, -1, -1});
  CHECK(list(result[3].values<std::uint8_t>()) == std::vector<std::uint8_t>{1, 2, 255, 3, 255, 255});
  CHECK(list(result[4].values<bool>()) == std::vector<bool>{true, true, false, true, false, false});
  CHECK(result[5].spec() == Spec{{2}, Dtype::i32});
  CHECK(result[6].name == "lengths");
  CHECK(list(result[6].values<std::int32_t>()) == std::vector<std::int32_t>{2, 1});

  // Several dimensions, of which some samples lack elements in each.
  const std::vector<Example> planes{{Array(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, Shape{2, 3})},
                                    {Array(std::vector<std::int32_t>{7, 8, 9}, Shape{3, 1})},
                                    {Array(std::vector<std::int32_t>{}, Shape{0, 2})}};
  const auto padded = pad_collate({.value = -1})(planes);
  CHECK(padded[0].shape == Shape{3, 3, 3});
  CHECK(list(padded[0].values<std::int32_t>()) == std::vector<std::int32_t>{1,  2, 3,  4,  5,  6,  -1, -1, -1, 7,  -1, -1, 8, -1,
                                                                            -1, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1});

  const auto pad = [&](const PadOptions& options) { return pad_collate(options)(samples); };
  CHECK_THROWS_WITH(pad({.value = 0.5}), Contains("0.5 is no i32"));
  CHECK_THROWS_WITH(pad({.values = {0, 0, 0, 256, 0, 0}}), Contains("256 is no u8"));
  CHECK_THROWS_WITH(pad({.values = {0}}), Contains("1 values for 6 arrays"));
  CHECK_THROWS_WITH(pad({.arrays = {5}}), Contains("array 5 of 6"));
  CHECK_THROWS_WITH(pad({.arrays = {0}}), Contains("sample 1 of the batch has i32[1] as array 1, and the first has i32[2]"));
  CHECK_THROWS_WITH(pad_collate({.multiple = 0}), Contains("multiple is 0"));
  samples[1][0] = Array(std::vector<std::int32_t>{3}, Shape{1});
  CHECK_THROWS_AS(pad({}), DtypeError);
  samples[1].pop_back();
  CHECK_THROWS_WITH(pad({}), Contains("sample 1 of the batch has 5 arrays, and the first has 6"));
}

TEST_CASE("data::Array holds values of any dtype, and those of a tensor") {
  CHECK(Array(std::vector<double>{1, 2}, Shape{2}).dtype == Dtype::f32);
  CHECK(Array(2.5).spec() == Spec{{}, Dtype::f32});
  CHECK(Array(Tensor::from({1.0, 2.0}) + 1.0).values<float>()[1] == 3);
  CHECK_THROWS_WITH(Array(std::vector<float>{1, 2}, Shape{3}), Contains("2 values, expected 3"));
  CHECK_THROWS_AS(Array(1).values<float>(), DtypeError);
  const auto tensor = Array(std::vector<std::uint8_t>{1, 2}, Shape{2, 1}).tensor();
  CHECK(tensor.spec() == Spec{{2, 1}, Dtype::u8});
  CHECK(tensor.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 2});
  Array cut({2}, Dtype::f32);
  cut.bytes.pop_back();
  CHECK_THROWS_AS(cut.tensor(), ShapeError);
}

TEST_CASE("fingerprints differ with size, names, dtypes and shapes") {
  const Sequences ten(10);
  CHECK(ten.fingerprint() == Sequences(10).fingerprint());
  CHECK(ten.fingerprint() != Sequences(11).fingerprint());
  CHECK_THAT(ten.fingerprint(), Contains("10 samples") && Contains("valuesf32[5] indexi64[] bytesu8[5] maskbool[5]"));
  const auto arrays = from_arrays({1, 2}, {1}, std::vector<std::int32_t>{0, 1}, 2);
  CHECK(arrays.fingerprint().size() == 8);
}

}  // namespace
}  // namespace clnet::data
