// mixup and cut-mix: shares, probabilities, rectangles, masks, refusals.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/error.h"

namespace clnet::data {
namespace {

using Catch::Contains;

/// Sample i is filled with i, of class i, or with a mask of i.
class Filled : public Dataset {
 public:
  explicit Filled(bool has_masks = false, Shape shape = {2, 20, 30}) : has_masks_(has_masks), shape_(std::move(shape)) {}
  std::int64_t size() const override { return 5; }
  Example get(std::int64_t index, std::uint64_t) const override {
    Array image(shape_, Dtype::f32, "image");
    for (auto& value : image.values<float>()) value = static_cast<float>(index);
    Array mask(Shape{20, 30}, Dtype::i32, "mask");
    for (auto& value : mask.values<std::int32_t>()) value = static_cast<std::int32_t>(index);
    if (has_masks_) return {image, mask};
    return {image, Array(static_cast<std::int32_t>(index), "label")};
  }

 private:
  bool has_masks_;
  Shape shape_;
};

TEST_CASE("mixing: mixup adds inputs and labels by the same shares") {
  const Filled filled;
  for (const double alpha : {0.2, 1.0, 3.0}) {
    const Mixed mixed(filled, {.classes = 5, .mixup = alpha});
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      const auto sample = mixed.get(2, seed);
      const auto labels = sample[1].values<float>();
      double total = 0, mean = 0;
      for (std::size_t c = 0; c < 5; ++c) {
        total += static_cast<double>(labels[c]);
        mean += static_cast<double>(labels[c]) * static_cast<double>(c);
      }
      REQUIRE(total == Approx(1));
      const auto values = sample[0].values<float>();
      REQUIRE(values[0] == Approx(mean).margin(1e-5));
      REQUIRE(values[values.size() - 1] == values[0]);
      sum += static_cast<double>(labels[2]);
      squares += static_cast<double>(labels[2]) * static_cast<double>(labels[2]);
    }
    // Beta(alpha, alpha) has the mean 1/2 and the variance 1 / (4 (2 alpha + 1)); a fifth is mixed with itself.
    constexpr double samples = 4000;
    CHECK(sum / samples == Approx(0.2 + 0.8 * 0.5).margin(0.025));
    CHECK(squares / samples == Approx(0.2 + 0.8 * (0.25 + 1 / (4 * (2 * alpha + 1)))).margin(0.025));
  }
}

TEST_CASE("mixing: cut-mix puts a rectangle in, and labels tell its area") {
  const Filled filled;
  const Mixed mixed(filled, {.classes = 5, .cutmix = 1});
  double shares = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto sample = mixed.get(4, seed);
    const auto values = sample[0].values<float>();
    std::vector<double> areas(5);
    std::int64_t left = 30, right = -1, top = 20, bottom = -1, inside = 0;
    for (std::size_t i = 0; i < 600; ++i) {
      REQUIRE(values[i] == values[600 + i]);
      areas[static_cast<std::size_t>(values[i])] += 1.0 / 600;
      if (values[i] == 4) continue;
      const auto y = static_cast<std::int64_t>(i / 30), x = static_cast<std::int64_t>(i % 30);
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
      ++inside;
    }
    if (inside > 0) REQUIRE(inside == (right - left + 1) * (bottom - top + 1));
    for (std::size_t c = 0; c < 5; ++c)
      if (inside > 0) REQUIRE(sample[1].values<float>()[c] == Approx(areas[c]).margin(1e-5));
    shares += 1 - areas[4];
    REQUIRE(mixed.get(4, seed)[0].bytes == sample[0].bytes);
  }
  CHECK(shares / 500 > 0.15);
  const Filled masks(true);
  const Mixed cut(masks, {.classes = 5, .cutmix = 1});
  const auto sample = cut.get(1, 3);
  CHECK(sample[1].spec() == Spec{{20, 30}, Dtype::i32});
  for (std::size_t i = 0; i < 600; ++i)
    REQUIRE(static_cast<float>(sample[1].values<std::int32_t>()[i]) == sample[0].values<float>()[i]);
}

TEST_CASE("mixing: some or both kinds, and refusals") {
  const Filled filled, masks(true), row(false, {7});
  const Mixed none(filled, {.classes = 6, .mixup = 1, .share = 0});
  const auto plain = none.get(3, 1);
  CHECK(plain[0].bytes == filled.get(3, 1)[0].bytes);
  CHECK(plain[1].spec() == Spec{{6}, Dtype::f32});
  CHECK(plain[1].values<float>()[3] == 1);
  CHECK(plain[1].name == "label");
  const Mixed both(filled, {.classes = 5, .mixup = 1, .cutmix = 1});
  int cut = 0, added = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto sample = both.get(2, seed);
    const auto value = sample[0].values<float>()[0];
    added += value != std::floor(value);
    cut += value == std::floor(value);
  }
  CHECK(added > 40);
  CHECK(cut > 40);
  CHECK(both.fingerprint() != none.fingerprint());
  CHECK(both.size() == 5);
  CHECK_THROWS_WITH(Mixed(filled, {.classes = 3, .mixup = 1}).get(4, 0), Contains("the label 4 is none of 3 classes"));
  CHECK_THROWS_WITH(Mixed(masks, {.classes = 5, .mixup = 1}).get(4, 0), Contains("mixup of labels of i32[20, 30]"));
  CHECK_THROWS_WITH(Mixed(row, {.classes = 5, .cutmix = 1}).get(4, 0), Contains("expected an image"));
  CHECK_THROWS_WITH(Mixed(filled, {.classes = 0, .mixup = 1}), Contains("0 classes"));
  CHECK_THROWS_WITH(Mixed(filled, {.classes = 5}), Contains("neither mixup nor cutmix"));
  CHECK_THROWS_WITH(Mixed(filled, {.classes = 5, .mixup = -1}), Contains("mixup is -1"));
  CHECK_THROWS_WITH(Mixed(filled, {.classes = 5, .mixup = 1, .share = 2}), Contains("share is 2"));
}

}  // namespace
}  // namespace clnet::data
