// Image files: decoding and resizing against Pillow's bytes, damage, folders, lists and pairs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/image_changes.h"
#include "lib/data/pixels.h"
#include "tests/support/temporary.h"
#include "tests/unit/image_files.h"

namespace clnet::data {
namespace {

using namespace clnet::test;
using Catch::Contains;

Pixels decoded(std::string_view digits, Decoding decoding = Decoding::colours) { return decode(bytes_of(digits), "x", decoding); }

void check(const Pixels& image, std::int64_t height, std::int64_t width, std::int64_t channels, const Bytes& bytes) {
  CHECK(image.height == height);
  CHECK(image.width == width);
  CHECK(image.channels == channels);
  CHECK(image.bytes == bytes);
}

void write(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// What a file of the format throws in a build without the library.
bool is_left_out(std::string_view format, std::string_view digits, std::string_view package) {
  if (reads_images(format)) return false;
  CHECK_THROWS_WITH(decoded(digits), Contains(std::string(package)));
  return true;
}

/// The colours of palette_png's indices i % 4.
Bytes palette_colours(bool with_indices) {
  const Bytes colours{10, 20, 30, 255, 0, 0, 0, 255, 0, 1, 2, 3};
  Bytes result;
  for (std::size_t i = 0; i < 18; ++i) {
    if (with_indices) result.push_back(static_cast<std::uint8_t>(i % 4));
    for (std::size_t c = 0; c < 3 && !with_indices; ++c) result.push_back(colours[i % 4 * 3 + c]);
  }
  return result;
}

Bytes every_third(std::uint8_t value) {
  Bytes result(18);
  for (std::size_t i = 0; i < result.size(); i += 3) result[i] = value;
  return result;
}

TEST_CASE("images: PNG of all kinds") {
  if (is_left_out("png", rgb_png, "libpng-dev")) return;
  check(decoded(rgb_png), 4, 5, 3, pattern(4, 5, 3).bytes);
  check(decoded(interlaced_png), 4, 5, 3, pattern(4, 5, 3).bytes);
  check(decoded(grey_png), 3, 3, 1, pattern(3, 3, 1).bytes);
  check(decoded(palette_png), 3, 6, 3, palette_colours(false));
  check(decoded(palette_png, Decoding::indices), 3, 6, 1, palette_colours(true));
  check(decoded(bits_png), 2, 9, 1, every_third(255));
  check(decoded(bits_png, Decoding::indices), 2, 9, 1, every_third(1));
  check(decoded(rgba_png), 2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  check(decoded(grey16_png), 2, 3, 1, {0, 1, 128, 255, 1, 156});
  CHECK_THROWS_WITH(decoded(grey16_png, Decoding::indices), Contains("x: has colours or 16 bits"));
  CHECK_THROWS_WITH(decoded(rgb_png, Decoding::indices), Contains("has colours"));
}

TEST_CASE("images: JPEG gives Pillow's bytes, turned by EXIF") {
  if (is_left_out("jpeg", turned_jpeg, "libjpeg62-turbo-dev")) return;
  check(decoded(turned_jpeg), 12, 8, 3, bytes_of(turned_jpeg_pixels));
  check(with_channels(decoded(turned_jpeg), 1), 12, 8, 1, bytes_of(turned_jpeg_grey));
  check(decoded(grey_jpeg), 8, 12, 1, bytes_of(grey_jpeg_pixels));
  check(decoded(progressive_jpeg), 8, 12, 3, bytes_of(progressive_jpeg_pixels));
  const auto cmyk = decoded(cmyk_jpeg);
  const auto expected = bytes_of(cmyk_jpeg_pixels);
  REQUIRE(cmyk.bytes.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(int{cmyk.bytes[i]} - int{expected[i]}) <= 1);
  CHECK_THROWS_WITH(decoded(grey_jpeg, Decoding::indices), Contains("is a JPEG, whose pixels are no exact numbers"));
}

TEST_CASE("images: BMP") {
  check(decoded(rgb_bmp), 4, 5, 3, pattern(4, 5, 3).bytes);
  check(decoded(palette_bmp), 3, 6, 3, palette_colours(false));
  check(decoded(palette_bmp, Decoding::indices), 3, 6, 1, palette_colours(true));
  check(with_channels(decoded(bits_bmp), 1), 2, 9, 1, every_third(255));
  check(decoded(rgba_bmp), 2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  auto upside_down = bytes_of(rgb_bmp);
  for (std::size_t i = 22; i < 26; ++i) upside_down[i] = static_cast<std::uint8_t>(i == 22 ? 256 - 4 : 255);
  const auto rows = pattern(4, 5, 3).bytes;
  CHECK(Bytes(rows.end() - 15, rows.end()) == [&] {
    const auto found = decode(upside_down, "x", Decoding::colours).bytes;
    return Bytes(found.begin(), found.begin() + 15);
  }());
}

TEST_CASE("images: BMP in runs") {
  check(decoded(rle8_bmp, Decoding::indices), 3, 6, 1, {2, 2, 1, 0, 3, 3, 1, 2, 3, 0, 1, 1, 1, 1, 1, 2, 2, 3});
  check(decoded(rle4_bmp, Decoding::indices), 3, 6, 1, {2, 0, 0, 3, 1, 3, 1, 2, 3, 0, 1, 2, 1, 2, 1, 2, 1, 2});
  const auto colours = decoded(rle8_bmp).bytes;
  CHECK(Bytes(colours.begin(), colours.begin() + 12) == Bytes{0, 255, 0, 0, 255, 0, 255, 0, 0, 10, 20, 30});
  const auto begin = bytes_of(rle8_bmp).size() - 32;
  const auto with = [&](const Bytes& runs, std::uint8_t width = 6) {
    auto file = bytes_of(rle8_bmp);
    file[18] = width;
    file.resize(begin);
    file.insert(file.end(), runs.begin(), runs.end());
    return decode(file, "x", Decoding::indices);
  };
  CHECK(with({0, 1}).bytes == Bytes(18));
  CHECK_THROWS_WITH(with({7, 1, 0, 1}), Contains("x: is a damaged BMP: a run leaves the image"));
  CHECK_THROWS_WITH(with({0, 2, 0, 3, 1, 1, 0, 1}), Contains("a run leaves the image"));
  CHECK_THROWS_WITH(with({0, 5, 1, 1, 1}), Contains("its runs end early"));
  CHECK_THROWS_WITH(with({6, 1}), Contains("its runs end early"));
  CHECK_THROWS_WITH(with({0, 1}, 255), Contains("2 bytes of pixels, expected 5"));
  auto file = bytes_of(rle8_bmp);
  file[30] = 2;
  CHECK_THROWS_WITH(decode(file, "x", Decoding::colours), Contains("compression 2 and 8 bits"));
}

TEST_CASE("images: 16 bits kept") {
  const Folder folder;
  const auto read = [&](const Bytes& bytes, std::int64_t channels) {
    write(folder / "x", bytes);
    const auto image = read_image16(folder / "x", channels);
    const auto values = image.values<std::int32_t>();
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  const auto wide = pattern(4, 5, 3).bytes;
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(read(bytes_of(rgb_bmp), 3)[20 + i] == 257 * wide[3 * i + 1]);
    CHECK(std::abs(read(bytes_of(rgb_bmp), 1)[i] - 257 * luma(&wide[3 * i])) <= 129);
  }
  if (!reads_images("png")) return;
  CHECK(read(bytes_of(grey16_png), 1) == std::vector<std::int32_t>{0, 257, 32896, 65535, 300, 40000});
  CHECK(read(bytes_of(grey16_png), 3).size() == 18);
  CHECK(read(bytes_of(turned_png), 1) == std::vector<std::int32_t>{4 * 257, 257, 5 * 257, 2 * 257, 6 * 257, 3 * 257});
  CHECK(read(bytes_of(palette_png), 3)[0] == 10 * 257);
}

TEST_CASE("images: EXIF orientation of PNG") {
  if (!reads_images("png")) return;
  check(decoded(turned_png), 3, 2, 1, {4, 1, 5, 2, 6, 3});
  check(decoded(turned_png, Decoding::indices), 3, 2, 1, {4, 1, 5, 2, 6, 3});
  auto damaged = bytes_of(turned_png);
  damaged[60] ^= 1;  // a chunk with a wrong check sum says nothing
  check(decode(damaged, "x", Decoding::colours), 2, 3, 1, {1, 2, 3, 4, 5, 6});
}

TEST_CASE("images: the eight orientations") {
  const Pixels image{.height = 2, .width = 3, .channels = 1, .bytes = {1, 2, 3, 4, 5, 6}};
  const std::vector<Bytes> expected{{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
                                    {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation)
    check(oriented(image, orientation), orientation < 5 ? 2 : 3, orientation < 5 ? 3 : 2, 1,
          expected[static_cast<std::size_t>(orientation - 1)]);
}

TEST_CASE("images: damage is an error, and costs no memory") {
  for (const auto digits : {rgb_png, palette_png, grey16_png, turned_jpeg, progressive_jpeg, cmyk_jpeg, rgb_bmp, palette_bmp,
                            rle8_bmp, rle4_bmp, turned_png}) {
    const auto whole = bytes_of(digits);
    // Cut anywhere in front of the pixels' last bytes, and with a bit changed anywhere: an error or an image, and nothing else.
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      if (size < whole.size() / 2) CHECK_THROWS_AS(decode(cut, "x", Decoding::colours), FileError);
      for (const int bit : {0, 3, 7}) {
        auto changed = whole;
        changed[size] = static_cast<std::uint8_t>(changed[size] ^ (1 << bit));
        try {
          decode(changed, "x", Decoding::colours);
        } catch (const FileError&) {
          continue;
        }
      }
    }
  }
  auto huge = bytes_of(rgb_bmp);
  for (const std::size_t at : {18U, 19U, 20U, 22U, 23U, 24U}) huge[at] = 255;
  CHECK_THROWS_WITH(decode(huge, "x", Decoding::colours), Contains("x: is a BMP of 16777215 x 16777215 pixels, expected 1 to"));
  CHECK_THROWS_WITH(decode(Bytes{'G', 'I', 'F', '8'}, "x", Decoding::colours), "x: is no PNG, JPEG or BMP");
  if (reads_images("png")) {
    auto png = bytes_of(rgb_png);
    png[20] = 100;  // a height of 1.6 billion; the header's check sum is not its own any more
    CHECK_THROWS_AS(decode(png, "x", Decoding::colours), FileError);
  }
}

TEST_CASE("images: resizing gives Pillow's bytes") {
  const auto image = pattern(9, 13, 3, 5);
  const Box whole{.height = 9, .width = 13};
  check(resized(image, whole, 4, 5), 4, 5, 3, bytes_of(resized_4_5));
  check(resized(image, whole, 17, 20), 17, 20, 3, bytes_of(resized_17_20));
  check(resized(image, whole, 3, 13), 3, 13, 3, bytes_of(resized_3_13));
  check(resized(image, whole, 1, 1), 1, 1, 3, bytes_of(resized_1_1));
  check(resized(image, {.top = 0.25, .left = 1.5, .height = 8.5, .width = 9}, 6, 6), 6, 6, 3, bytes_of(resized_box));
  CHECK(resized(image, whole, 9, 13).bytes == image.bytes);
  CHECK_THROWS_WITH(resize_image(Array(Shape{2, 2}, Dtype::u8), 1, 1), Contains("expected u8[channels, height, width]"));
  CHECK_THROWS_AS(resize_image(Array(Shape{1, 2, 2}, Dtype::u8), 0, 1), Error);
}

TEST_CASE("images: what is written is read") {
  const Folder folder;
  for (const std::int64_t channels : {1, 3})
    for (const char* name : {"a.png", "a.bmp"}) {
      if (!reads_images("png") && std::string_view(name) == "a.png") {
        CHECK_THROWS_WITH(write_image(folder / name, Array(Shape{1, 1, 1}, Dtype::u8)), Contains("libpng-dev"));
        continue;
      }
      Array image(Shape{channels, 5, 7}, Dtype::u8);
      for (std::size_t i = 0; i < image.bytes.size(); ++i)
        image.values<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 31 % 256);
      write_image(folder / name, image);
      CHECK(read_image(folder / name, channels).bytes == image.bytes);
    }
  CHECK_THROWS_WITH(write_image(folder / "a.gif", Array(Shape{1, 1, 1}, Dtype::u8)), Contains("expected .png or .bmp"));
  CHECK_THROWS_WITH(write_image(folder / "a.bmp", Array(Shape{2, 1, 1}, Dtype::u8)), Contains("expected u8[1 or 3"));
  CHECK_THROWS_WITH(write_image(folder / "a.bmp", Array(Shape{3, 0, 1}, Dtype::u8)), Contains("0 x 1 pixels"));
  CHECK_THROWS_AS(write_image(folder / "none" / "a.bmp", Array(Shape{3, 1, 1}, Dtype::u8)), FileError);
}

TEST_CASE("images: turning") {
  const auto turned = [](const Pixels& image, double degrees, std::uint8_t fill, bool smooth) {
    const Point centre{static_cast<double>(image.width) / 2, static_cast<double>(image.height) / 2};
    return warped(image, affine_of({.degrees = -degrees}, centre), fill, smooth);
  };
  const Pixels image{.height = 2, .width = 2, .channels = 1, .bytes = {1, 2, 3, 4}};
  CHECK(turned(image, 90, 0, false).bytes == Bytes{2, 4, 1, 3});
  CHECK(turned(image, 90, 0, true).bytes == Bytes{2, 4, 1, 3});
  CHECK(turned(image, 180, 0, false).bytes == Bytes{4, 3, 2, 1});
  CHECK(turned({.height = 1, .width = 3, .channels = 1, .bytes = {1, 2, 3}}, 90, 9, false).bytes == Bytes{9, 2, 9});
  auto twice = pattern(3, 5, 3);
  mirror(twice);
  CHECK(twice.bytes[0] == pattern(3, 5, 3).bytes[12]);
  mirror(twice);
  CHECK(twice.bytes == pattern(3, 5, 3).bytes);
}

TEST_CASE("images: a folder by class, split") {
  const Folder folder;
  for (int i = 0; i < 10; ++i) {
    write(folder / "dog" / (std::to_string(i) + ".bmp"), bytes_of(rgb_bmp));
    write(folder / "cat" / "deep" / (std::to_string(i) + ".BMP"), bytes_of(palette_bmp));
  }
  write(folder / "cat" / "notes.txt", {1});
  write(folder / ".hidden" / "1.bmp", {1});
  const auto images = image_folder(folder.path(), {.height = 2, .width = 2});
  CHECK(images.size() == 20);
  CHECK(images.class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK_THAT(images.name_of(0), Contains("cat/deep/0.BMP"));
  const auto sample = images.get(19, 1);
  CHECK(sample[0].spec() == Spec{{3, 2, 2}, Dtype::f32});
  CHECK(sample[1].values<std::int32_t>()[0] == 1);
  const auto [train, test] = images.split(0.2, 7);
  CHECK(train.size() == 16);
  CHECK(test.size() == 4);
  CHECK(std::count_if(test.files().begin(), test.files().end(), [](const auto& file) { return file.label == 1; }) == 2);
  CHECK(images.fingerprint() != train.fingerprint());
  CHECK(images.fingerprint() != images.with({.height = 3, .width = 2}).fingerprint());
  CHECK_THROWS_WITH(image_folder(folder / "cat" / "deep"), Contains("holds no folders of images"));
  CHECK_THROWS_WITH(image_folder(folder / "bird"), Contains("bird"));
  CHECK_THROWS_WITH(images.split(1), Contains("a split of 1"));
  for (const auto& wrong : {ImageOptions{.height = 0}, ImageOptions{.channels = 2}, ImageOptions{.mean = {1}, .std = {1}},
                            ImageOptions{.crop = 0}, ImageOptions{.rotate = -1}, ImageOptions{.contrast = 2}})
    CHECK_THROWS_AS(images.with(wrong), Error);
  write(folder / "cat" / "deep" / "5.BMP", {'B', 'M', 0});
  CHECK_THROWS_WITH(images.get(5, 0), Contains("5.BMP: is a damaged BMP"));
  CHECK_THROWS_WITH(images.name_of(20), "images: there is no sample 20 among 20");
  std::filesystem::create_directories(folder / "cow");
  CHECK_THROWS_WITH(image_folder(folder.path()), Contains("cow: is the folder of a class and holds no"));
  std::filesystem::remove(folder / "cow");
  auto deep = folder / "cat";
  for (int i = 0; i < 17; ++i) deep /= "x";
  write(deep / "1.bmp", {1});
  CHECK_THROWS_WITH(image_folder(folder.path()), Contains("more than 16 levels"));
}

TEST_CASE("images: a list") {
  const Folder folder;
  write(folder / "a, b.bmp", bytes_of(rgb_bmp));
  write(folder / "c.bmp", bytes_of(rgb_bmp));
  const auto list = [&](const std::string& text) {
    std::ofstream(folder / "list.csv", std::ios::binary) << text;
    return image_list(folder / "list.csv", {.height = 4, .width = 5});
  };
  const auto images = list("file,kind\r\n\"a, b.bmp\",\"the \"\"big\"\" ones\"\r\n\r\nc.bmp,small\n");
  CHECK(images.size() == 2);
  CHECK(images.class_names() == std::vector<std::string>{"small", "the \"big\" ones"});
  CHECK(images.files()[0].label == 1);
  CHECK(images.get(1, 0)[0].values<float>()[1] == 37 / 255.0F);
  CHECK_THROWS_WITH(list("c.bmp,small\nd.bmp,small\n"), Contains("line 2: there is no file"));
  CHECK_THROWS_WITH(list("c.bmp,small,3\n"), Contains("line 1: 3 fields"));
  CHECK_THROWS_WITH(list("c.bmp,\"small\n"), Contains("line 1: a quote is not closed"));
  CHECK_THROWS_WITH(list("file,kind\n"), Contains("names no images"));
}

TEST_CASE("images: pairs of image and mask change together") {
  const Folder folder;
  write(folder / "images" / "1.bmp", bytes_of(rgb_bmp));
  write(folder / "images" / "sub" / "2.bmp", bytes_of(palette_bmp));
  write(folder / "masks" / "sub" / "2.bmp", bytes_of(palette_bmp));
  CHECK_THROWS_WITH(image_pairs(folder / "images", folder / "masks", 4), Contains("1.bmp: has no mask of its name"));
  std::filesystem::remove(folder / "images" / "1.bmp");
  const ImageOptions options{.height = 3, .width = 6};
  const auto pairs = image_pairs(folder / "images", folder / "masks", 4, options);
  const auto sample = pairs.get(0, 0);
  CHECK(sample[1].spec() == Spec{{3, 6}, Dtype::i32});
  for (std::size_t i = 0; i < 18; ++i) CHECK(sample[1].values<std::int32_t>()[i] == static_cast<std::int32_t>(i % 4));
  // The red of an image is 255 where its mask has class 1, wherever both went.
  const auto changed = pairs.with({.height = 3, .width = 6, .flip = true});
  bool flipped = false;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto other = changed.get(0, seed);
    for (std::size_t i = 0; i < 18; ++i)
      CHECK((other[0].values<float>()[i] == 1.0F) == (other[1].values<std::int32_t>()[i] == 1));
    flipped = flipped || other[1].values<std::int32_t>()[0] != 0;
    CHECK(changed.get(0, seed)[0].bytes == other[0].bytes);
  }
  CHECK(flipped);
  const auto turned = pairs.with({.height = 3, .width = 6, .rotate = 90}).get(0, 3);
  const auto classes = turned[1].values<std::int32_t>();
  CHECK(std::find(classes.begin(), classes.end(), -100) != classes.end());
  const auto erased = pairs.with({.height = 3, .width = 6, .erase = 1}).get(0, 3);
  std::int64_t without_class = 0;
  for (std::size_t i = 0; i < 18; ++i) {
    if (erased[1].values<std::int32_t>()[i] != -100) continue;
    ++without_class;
    for (std::size_t c = 0; c < 3; ++c) CHECK(erased[0].values<float>()[18 * c + i] == 0);
  }
  CHECK(without_class > 0);
  CHECK_THROWS_WITH(image_pairs(folder / "images", folder / "masks", 2, options).get(0, 0),
                    Contains("2.bmp: a pixel has the class 2, expected 0 to 1"));
  write(folder / "masks" / "sub" / "2.bmp", bytes_of(bits_bmp));
  CHECK_THROWS_WITH(pairs.get(0, 0), Contains("is a mask of 2 x 9 x 1, and its image has 3 x 6 pixels"));
}

TEST_CASE("images: light, cuts and normalisation") {
  const Folder folder;
  write(folder / "a" / "1.bmp", bytes_of(rgb_bmp));
  const auto images = image_folder(folder.path(), {.height = 4, .width = 4});
  // The middle of 5 columns begins half a pixel from the left.
  const auto plain = images.get(0, 0)[0];
  CHECK(plain.values<float>()[0] == Approx((0 + 37) / 2.0 / 255).margin(1 / 255.0));
  const auto normalised = images.with({.height = 4, .width = 4, .mean = {0.5F, 0, 0}, .std = {0.25F, 1, 1}}).get(0, 0)[0];
  for (std::size_t i = 0; i < 48; ++i)
    CHECK(normalised.values<float>()[i] == (i < 16 ? (plain.values<float>()[i] - 0.5F) / 0.25F : plain.values<float>()[i]));
  const auto varied = images.with({.height = 4, .width = 4, .crop = 0.3, .brightness = 0.5, .contrast = 0.5});
  CHECK(varied.get(0, 1)[0].bytes != varied.get(0, 2)[0].bytes);
  CHECK(varied.get(0, 1)[0].bytes == varied.get(0, 1)[0].bytes);
  const auto one = varied.get(0, 1)[0];
  for (const float value : one.values<float>()) CHECK((value >= 0 && value <= 1));
  CHECK(images.with({.height = 4, .width = 4, .channels = 1}).get(0, 0)[0].shape == Shape{1, 4, 4});
}

}  // namespace
}  // namespace clnet::data
