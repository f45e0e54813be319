#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"

namespace clnet::data {
namespace {

using Catch::Contains;

static_assert(std::input_iterator<Batches::Iterator>);

ArrayDataset small_images() {
  ArrayDataset dataset;
  dataset.name = "small";
  dataset.sample_shape = {2, 1, 2};
  dataset.bytes = {0, 255, 51, 102, 1, 2, 3, 4, 250, 251, 252, 253};
  dataset.labels = {2, 0, 1};
  dataset.classes = 3;
  return dataset;
}

TEST_CASE("an epoch's order is the same everywhere") {
  CHECK(epoch_order(5, false, 1, 2) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(epoch_order(0, true, 1, 2).empty());
  CHECK(epoch_order(1, true, 1, 2) == std::vector<std::int64_t>{0});
  // Fixed numbers: another order would change every seeded training run.
  CHECK(epoch_order(10, true, 0, 0) == std::vector<std::int64_t>{0, 1, 7, 2, 5, 4, 9, 3, 8, 6});
  CHECK(epoch_order(10, true, 7, 3) == std::vector<std::int64_t>{3, 9, 8, 6, 2, 4, 5, 7, 0, 1});
}

TEST_CASE("samples in their own order need no list of them") {
  constexpr std::int64_t many = std::int64_t{1} << 61;
  EpochBatches plain(many, {.batch_size = 3, .start = 5});
  CHECK(plain.next() == std::vector<std::int64_t>{15, 16, 17});
  CHECK(plain.next() == std::vector<std::int64_t>{18, 19, 20});
  EpochBatches last(8, {.batch_size = 3, .start = 2});
  CHECK(last.next() == std::vector<std::int64_t>{6, 7});
  CHECK(last.next().empty());
  EpochBatches shuffled(many, {.shuffle = true});
  CHECK_THROWS_WITH(shuffled.next(), Contains("samples are too many for an order of them"));
}

TEST_CASE("an epoch's order is a permutation that depends on seed and epoch") {
  const auto a = epoch_order(1000, true, 1, 0);
  CHECK(a == epoch_order(1000, true, 1, 0));
  CHECK(a != epoch_order(1000, true, 1, 1));
  CHECK(a != epoch_order(1000, true, 2, 0));
  CHECK(epoch_order(1000, true, 1, 1) != epoch_order(1000, true, 2, 0));
  auto sorted = a;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == epoch_order(1000, false, 0, 0));
}

TEST_CASE("all orders are about equally likely") {
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t epoch = 0; epoch < 24000; ++epoch) ++counts[epoch_order(4, true, 5, epoch)];
  CHECK(counts.size() == 24);
  for (const auto& [order, count] : counts) CHECK(std::abs(count - 1000) < 160);  // 5 standard deviations
}

TEST_CASE("gathering converts bytes to floats and picks samples") {
  const auto dataset = small_images();
  const Gather gather(dataset);
  const std::int64_t indices[] = {2, 0, 2};
  std::vector<float> images(12);
  std::vector<std::int32_t> labels(3);
  gather.images(indices, images.data());
  gather.labels(indices, labels.data());
  CHECK(labels == std::vector<std::int32_t>{1, 2, 1});
  const int expected[] = {250, 251, 252, 253, 0, 255, 51, 102, 250, 251, 252, 253};
  for (std::size_t i = 0; i < images.size(); ++i) CHECK(images[i] == static_cast<float>(expected[i]) / 255.0f);
}

TEST_CASE("normalisation is per channel, for bytes and floats alike") {
  auto dataset = small_images();
  dataset.mean = {0.5f, 0.25f};
  dataset.std = {2.0f, 0.125f};
  auto floats = dataset;
  floats.bytes.clear();
  for (auto byte : dataset.bytes) floats.floats.push_back(static_cast<float>(byte) / 255.0f);
  const std::int64_t indices[] = {0, 1};
  std::vector<float> from_bytes(8), from_floats(8);
  Gather(dataset).images(indices, from_bytes.data());
  Gather(floats).images(indices, from_floats.data());
  CHECK(from_bytes == from_floats);
  CHECK(from_bytes[0] == -0.25f);
  CHECK(from_bytes[1] == 0.25f);
  CHECK(from_bytes[2] == Approx((0.2 - 0.25) / 0.125));
}

TEST_CASE("mean and standard deviation are exact") {
  const auto dataset = small_images();
  std::vector<float> mean, std;
  compute_normalization(dataset, mean, std);
  REQUIRE(mean.size() == 2);
  const double channel[] = {0, 255, 1, 2, 250, 251};
  double sum = 0, squares = 0;
  for (double x : channel) sum += x / 255;
  for (double x : channel) squares += (x / 255 - sum / 6) * (x / 255 - sum / 6);
  CHECK(mean[0] == Approx(sum / 6).epsilon(1e-6));
  CHECK(std[0] == Approx(std::sqrt(squares / 6)).epsilon(1e-6));

  auto floats = from_arrays({1, 5, 3, 5}, {2}, {0, 0}, 1);
  compute_normalization(floats, floats.mean, floats.std);
  CHECK(floats.mean == std::vector<float>{2, 5});
  CHECK(floats.std == std::vector<float>{1, 1});  // a constant channel: 1
  CHECK_THROWS_AS(compute_normalization(from_arrays({}, {1}, {}, 1), mean, std), Error);
}

TEST_CASE("a dataset whose parts do not fit together is refused") {
  auto dataset = small_images();
  validate(dataset);
  SECTION("values") {
    dataset.bytes.pop_back();
    CHECK_THROWS_WITH(validate(dataset), Contains("small") && Contains("need 12 values") && Contains("got 11"));
  }
  SECTION("both kinds of values") {
    dataset.floats = {1};
    CHECK_THROWS_WITH(validate(dataset), Contains("expected one of them"));
  }
  SECTION("labels") {
    dataset.labels[1] = GENERATE(-1, 3);
    CHECK_THROWS_WITH(validate(dataset), Contains("of sample 1 is not one of 3 classes"));
  }
  SECTION("mean") {
    dataset.mean = {0.5f};
    dataset.std = {0.5f};
    CHECK_THROWS_WITH(validate(dataset), Contains("expected 2, one per channel"));
  }
  SECTION("std") {
    dataset.mean = {0.5f, 0.5f};
    dataset.std = {0.5f, GENERATE(0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN())};
    CHECK_THROWS_AS(validate(dataset), Error);
  }
  SECTION("batches check it, and their options") {
    CHECK_THROWS_WITH(batches(dataset, {.batch_size = 0}), Contains("batch_size is 0"));
    CHECK_THROWS_WITH(batches(dataset, {.start = -1}), Contains("start is -1"));
    dataset.bytes.clear();
    CHECK_THROWS_AS(batches(dataset, {}), Error);
  }
  CHECK_THROWS_AS(from_arrays({1, 2, 3}, {2}, {0, 0}, 1), Error);
  CHECK_THROWS_AS(from_arrays({1, 2}, {1}, {0, 1}, 1), Error);
}

TEST_CASE("the number of batches") {
  const auto dataset = from_arrays(std::vector<float>(10), {1}, std::vector<std::int32_t>(10), 1);
  CHECK(batches(dataset, {.batch_size = 3}).size() == 4);
  CHECK(batches(dataset, {.batch_size = 3, .drop_last = true}).size() == 3);
  CHECK(batches(dataset, {.batch_size = 5}).size() == 2);
  CHECK(batches(dataset, {.batch_size = 3, .start = 3}).size() == 1);
  CHECK(batches(dataset, {.batch_size = 3, .start = 9}).size() == 0);
  CHECK(batches(dataset, {.batch_size = std::numeric_limits<std::int64_t>::max()}).size() == 1);
}

}  // namespace
}  // namespace clnet::data
