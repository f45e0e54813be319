#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/data/epoch_order.h"

namespace clnet::data {
namespace {

/// `count` samples of two values, n and -n, with label n % 7.
ArrayDataset counted(std::int64_t count) {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (std::int64_t n = 0; n < count; ++n) {
    values.push_back(static_cast<float>(n));
    values.push_back(-static_cast<float>(n));
    labels.push_back(static_cast<std::int32_t>(n % 7));
  }
  return from_arrays(std::move(values), {1, 2}, std::move(labels), 7);
}

/// The samples' numbers in the order in which the batches gave them, and the sizes of the batches.
struct Visit {
  std::vector<std::int64_t> samples, sizes;
};

Visit visit(const ArrayDataset& dataset, const BatchOptions& options) {
  Visit out;
  for (const auto& [images, labels] : batches(dataset, options)) {
    const auto n = images.size(0);
    CHECK(images.spec() == Spec{{n, 1, 2}, Dtype::f32});
    CHECK(labels.spec() == Spec{{n}, Dtype::i32});
    out.sizes.push_back(n);
    const auto values = images.to_vector<float>();
    const auto classes = labels.to_vector<std::int32_t>();
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto sample = static_cast<std::int64_t>(values[2 * i]);
      CHECK(values[2 * i + 1] == -values[2 * i]);
      CHECK(classes[i] == sample % 7);
      out.samples.push_back(sample);
    }
  }
  CHECK(static_cast<std::int64_t>(out.sizes.size()) == batches(dataset, options).size());
  return out;
}

TEST_CASE("batches hold every sample once, in order") {
  const auto dataset = counted(10);
  auto seen = visit(dataset, {.batch_size = 4});
  CHECK(seen.samples == epoch_order(10, false, 0, 0));
  CHECK(seen.sizes == std::vector<std::int64_t>{4, 4, 2});
  seen = visit(dataset, {.batch_size = 4, .drop_last = true});
  CHECK(seen.sizes == std::vector<std::int64_t>{4, 4});
  CHECK(visit(dataset, {.batch_size = 5}).sizes == std::vector<std::int64_t>{5, 5});
  CHECK(visit(dataset, {.batch_size = 100}).sizes == std::vector<std::int64_t>{10});
  CHECK(visit(dataset, {.batch_size = 100, .drop_last = true}).sizes.empty());
  CHECK(visit(counted(0), {}).sizes.empty());
}

TEST_CASE("shuffled batches follow seed and epoch, and start skips") {
  const auto dataset = counted(50);
  const BatchOptions options{.batch_size = 8, .shuffle = true, .seed = 3, .epoch = 2};
  const auto whole = visit(dataset, options).samples;
  CHECK(whole == epoch_order(50, true, 3, 2));
  for (std::int64_t start : {1, 6, 7, 100}) {
    auto later = options;
    later.start = start;
    const auto skipped = static_cast<std::size_t>(std::min<std::int64_t>(50, 8 * start));
    CHECK(visit(dataset, later).samples == std::vector(whole.begin() + static_cast<std::ptrdiff_t>(skipped), whole.end()));
  }
}

TEST_CASE("bytes become floats from 0 to 1, normalised where asked") {
  ArrayDataset dataset;
  dataset.sample_shape = {2, 1, 1};
  dataset.bytes = {0, 255, 51, 102};
  dataset.labels = {0, 0};
  dataset.classes = 1;
  CHECK((*batches(dataset, {}).begin()).images.to_vector<float>() == std::vector<float>{0, 1, 51 / 255.0f, 102 / 255.0f});
  dataset.mean = {0.5f, 0.0f};
  dataset.std = {0.5f, 2.0f};
  const auto normalised = (*batches(dataset, {}).begin()).images.to_vector<float>();
  CHECK(normalised == std::vector<float>{-1, 0.5f, (51 / 255.0f - 0.5f) / 0.5f, 102 / 255.0f / 2});
}

TEST_CASE("a batch stays as it was when later ones are made") {
  const auto dataset = counted(1000);
  std::vector<Batch> kept;
  for (auto batch : batches(dataset, {.batch_size = 10})) kept.push_back(batch);
  REQUIRE(kept.size() == 100);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].images.to_vector<float>()[0] == static_cast<float>(10 * i));
}

TEST_CASE("batches that are left early end their thread, and can be started again") {
  const auto dataset = counted(100000);
  const auto before = std::chrono::steady_clock::now();
  const auto range = batches(dataset, {.batch_size = 2});
  for (int i = 0; i < 50; ++i) {
    int seen = 0;
    for (const auto& [images, labels] : range) {
      CHECK(images.to_vector<float>()[0] == static_cast<float>(2 * seen));
      if (++seen == i % 5) break;
      if (seen > 5) break;
    }
    range.begin();  // not even looked at
  }
  // Finishing even one epoch of 50000 batches would take longer.
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(10));
}

TEST_CASE("copies of an iterator share the epoch") {
  const auto dataset = counted(4);
  const auto range = batches(dataset, {.batch_size = 2});
  auto a = range.begin();
  auto b = a;
  CHECK(a == b);
  CHECK(a != range.begin());
  ++a;
  CHECK((*b).images.to_vector<float>()[0] == 2);
  ++b;
  CHECK(a == range.end());
  CHECK_THROWS_AS(++a, Error);
  CHECK_THROWS_AS(*b, Error);
}

TEST_CASE("what goes wrong in the thread is thrown to the consumer") {
  const auto dataset = counted(1000);
  auto device = Device::current();
  device.trim();
  // Room for nothing: the thread's first upload fails.
  device.set_memory_limit(device.memory().in_use + 1);
  struct Restore {
    Device& device;
    ~Restore() { device.set_memory_limit(0); }
  } restore{device};
  CHECK_THROWS_AS(batches(dataset, {.batch_size = 500}).begin(), DeviceError);
}

}  // namespace
}  // namespace clnet::data
