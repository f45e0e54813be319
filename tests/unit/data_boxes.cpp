// Images with boxes: lists, changes against corners mapped by hand, clipping, batches.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/support/temporary.h"
#include "tests/unit/image_files.h"

namespace clnet::data {
namespace {

using namespace clnet::test;
using Catch::Contains;

/// A BMP of 24 bits, black but for light rectangles {x1, y1, x2, y2}.
std::string bmp_of(std::int64_t height, std::int64_t width, const std::vector<std::vector<std::int64_t>>& rectangles) {
  const auto stride = (width * 3 + 3) / 4 * 4;
  std::string file(static_cast<std::size_t>(54 + stride * height), '\0');
  const auto put = [&](std::size_t at, std::int64_t value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
  };
  file[0] = 'B';
  file[1] = 'M';
  put(10, 54);
  put(14, 40);
  put(18, width);
  put(22, -height);
  put(26, 1 + (24 << 16));
  for (const auto& r : rectangles)
    for (auto y = r[1]; y < r[3]; ++y)
      for (auto x = 3 * r[0]; x < 3 * r[2]; ++x) file[static_cast<std::size_t>(54 + y * stride + x)] = '\xff';
  return file;
}

void check_corners(const Array& boxes, const std::vector<double>& expected, double margin = 1e-4) {
  const auto found = boxes.values<float>();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(margin));
}

TEST_CASE("image boxes: a list, and boxes in the sample's pixels") {
  const Folder folder;
  folder.write("1.bmp", bmp_of(40, 60, {{10, 20, 30, 36}}));
  folder.write("2.bmp", bmp_of(40, 60, {}));
  const auto list = [&](const std::string& text, const ImageOptions& options = {.height = 40, .width = 60}) {
    return image_boxes(folder.write("list.csv", text), options);
  };
  const std::string rows = "file,a,b,c,d,kind\n1.bmp,10,20,30,36,dog\r\n2.bmp,,,,,\n1.bmp,50,0.5,60,10,cat\n";
  const auto boxes = list(rows);
  CHECK(boxes.size() == 2);
  CHECK(boxes.class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK_THAT(boxes.name_of(1), Contains("2.bmp"));
  const auto sample = boxes.get(0, 0);
  REQUIRE(sample.size() == 3);
  check_corners(sample[1], {10, 20, 30, 36, 50, 0.5, 60, 10});
  CHECK(sample[2].values<std::int32_t>()[0] == 1);
  CHECK(sample[2].values<std::int32_t>()[1] == 0);
  const auto empty = boxes.get(1, 0);
  CHECK(empty[1].shape == Shape{0, 4});
  CHECK(empty[2].shape == Shape{0});
  // Stretched; and the middle 40 x 40 pixels doubled: the second box is outside, the first one is clipped.
  check_corners(list(rows, {.height = 80, .width = 30, .keep_aspect = false}).get(0, 0)[1], {5, 40, 15, 72, 25, 1, 30, 20});
  check_corners(list(rows, {.height = 80, .width = 80}).get(0, 0)[1], {0, 40, 40, 72});
  // Of the clipped box 1 / 5 remains.
  const std::string edge = "1.bmp,5,0,15,10,x\n1.bmp,8,0,13,10,y\n";
  CHECK(list(edge, {.height = 40, .width = 40, .least_box = 0.6}).get(0, 0)[2].shape == Shape{1});
  CHECK(list(edge, {.height = 40, .width = 40, .least_box = 0.2}).get(0, 0)[2].shape == Shape{2});
  CHECK(boxes.fingerprint() != list("1.bmp,10,20,30,37,dog\n").fingerprint());

  CHECK_THROWS_WITH(list("1.bmp,1,2,3,4\n"), Contains("line 1: 5 fields, expected a path, x1, y1, x2, y2 and a class"));
  CHECK_THROWS_WITH(list("1.bmp,1,2,3,4,a\n1.bmp,1,2,x3,4,a\n"), Contains("line 2: \"x3\" is no coordinate"));
  CHECK_THROWS_WITH(list("1.bmp,1,2,nan,4,a\n"), Contains("is no coordinate"));
  CHECK_THROWS_WITH(list("1.bmp,1,2,3,,a\n"), Contains("line 1: 1 empty fields"));
  CHECK_THROWS_WITH(list("1.bmp,3,2,3,4,a\n"), Contains("has no area"));
  CHECK_THROWS_WITH(list("1.bmp,1,2,2e6,4,a\n"), Contains("line 1: \"2e6\" is no coordinate, at most 1000000"));
  CHECK_THROWS_WITH(list("a,b,c,d,e,f\n"), Contains("names no images"));
  CHECK_THROWS_AS(ImageBoxes({{.image = "x", .boxes = {{.x2 = 1, .y2 = 1, .label = 1}}}}, {"a"}, {}), Error);
  CHECK_THROWS_WITH(boxes.get(2, 0), Contains("there is no sample 2"));
}

TEST_CASE("image boxes: every change moves boxes with their pixels") {
  const Folder folder;
  const auto path = folder.write("1.bmp", bmp_of(90, 120, {{40, 30, 70, 60}}));
  const auto options_of = [](auto set) {
    ImageOptions options{.height = 90, .width = 120};
    set(options);
    return options;
  };
  const std::vector<ImageOptions> all{
      options_of([](auto& o) { o.flip = true; }),
      options_of([](auto& o) { o.crop = 0.5; }),
      options_of([](auto& o) { o.rotate = 45; }),
      options_of([](auto& o) { o.translate = 0.3; }),
      options_of([](auto& o) { o.scale = 0.4, o.shear = 20; }),
      options_of([](auto& o) { o.elastic = 100, o.elastic_sigma = 6; }),
      options_of([](auto& o) { o.flip = true, o.crop = 0.7, o.rotate = 20, o.elastic = 60; }),
  };
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    const ImageBoxes boxes({{.image = path, .boxes = {{.x1 = 40, .y1 = 30, .x2 = 70, .y2 = 60}}}}, {"a"}, all[kind]);
    int moved = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto sample = boxes.get(0, seed);
      if (sample[2].shape.numel() == 0) continue;
      double left = 120, top = 90, right = 0, bottom = 0;
      for (std::int64_t y = 0; y < 90; ++y)
        for (std::int64_t x = 0; x < 120; ++x)
          if (sample[0].values<float>()[static_cast<std::size_t>(y * 120 + x)] > 0.5F) {
            left = std::min(left, static_cast<double>(x));
            right = std::max(right, static_cast<double>(x + 1));
            top = std::min(top, static_cast<double>(y));
            bottom = std::max(bottom, static_cast<double>(y + 1));
          }
      INFO("options " << kind << ", seed " << seed);
      // A turned corner has few light pixels.
      check_corners(sample[1], {left, top, right, bottom}, 2.5);
      moved += std::abs(sample[1].values<float>()[0] - 40) > 1e-3F;
    }
    CHECK(moved > 4);
  }
  // RandAugment's nearest pixels move as boxes do; colours may leave no light pixel, so only the bounds are checked.
  const ImageBoxes random({{.image = path, .boxes = {{.x1 = 40, .y1 = 30, .x2 = 70, .y2 = 60}}}}, {"a"},
                          {.height = 90, .width = 120, .rand_augment = 3, .magnitude = 15});
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const auto& sample = random.get(0, seed); const float value : sample[1].values<float>())
      CHECK((value >= 0 && value <= 120));
}

TEST_CASE("image boxes: batches are padded") {
  const Folder folder;
  folder.write("1.bmp", bmp_of(4, 4, {}));
  folder.write("2.bmp", bmp_of(4, 4, {}));
  const auto boxes =
      image_boxes(folder.write("list.csv", "1.bmp,0,0,1,1,a\n1.bmp,1,1,4,3,b\n2.bmp,,,,,\n"), {.height = 4, .width = 4});
  const auto collate = box_collate();
  const auto batch = collate({boxes.get(0, 0), boxes.get(1, 0)});
  REQUIRE(batch.size() == 3);
  CHECK(batch[0].shape == Shape{2, 3, 4, 4});
  CHECK(batch[1].shape == Shape{2, 2, 4});
  check_corners(batch[1], {0, 0, 1, 1, 1, 1, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto labels = batch[2].values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(labels.begin(), labels.end()) == std::vector<std::int32_t>{0, 1, -100, -100});
  CHECK(collate({boxes.get(1, 0)})[1].shape == Shape{1, 1, 4});
}

}  // namespace
}  // namespace clnet::data
