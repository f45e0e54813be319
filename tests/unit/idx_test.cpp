#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/idx_writer.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

constexpr std::uint32_t images = 0x803, labels = 0x801;

/// Images and labels of a small sound dataset, for tests that damage one of them.
struct Idx {
  clnet::test::Folder folder;
  std::string pixels = pattern(3 * 4 * 5), digits{"\1\7\0", 3};
  std::string image_file = idx(images, {3, 4, 5}, pixels), label_file = idx(labels, {3}, digits);

  ArrayDataset load(std::int64_t classes = 10) const {
    return load_idx(folder.write("images", image_file), folder.write("labels", label_file), classes);
  }
  /// The text of the FileError; its first part must be the path of the file at fault, and it must be one line.
  std::string error(const char* culprit) const {
    try {
      load();
    } catch (const FileError& e) {
      const std::string text = e.what(), path = folder / culprit;
      CHECK(text.substr(0, path.size()) == path);
      CHECK(text.find('\n') == std::string::npos);
      return text;
    }
    return "no error";
  }
};

void check_content(const ArrayDataset& dataset, const Idx& idx) {
  CHECK(dataset.sample_shape == Shape{1, 4, 5});
  CHECK(dataset.labels == std::vector<std::int32_t>{1, 7, 0});
  CHECK(dataset.classes == 10);
  CHECK(std::string(dataset.bytes.begin(), dataset.bytes.end()) == idx.pixels);
  CHECK(dataset.floats.empty());
}

TEST_CASE("IDX files load plain, compressed and in several members") {
  Idx files;
  check_content(files.load(), files);
  files.label_file = gzip(files.label_file);
  check_content(files.load(), files);
  const auto plain = files.image_file;
  files.image_file = gzip(plain);
  check_content(files.load(), files);
  for (std::size_t cut : {1u, 16u, 30u}) {
    files.image_file = gzip(plain.substr(0, cut)) + gzip("") + gzip(plain.substr(cut));
    check_content(files.load(), files);
  }
}

TEST_CASE("an IDX file larger than the reader's buffers loads unchanged") {
  Idx files;
  files.pixels = pattern(3 * 1000 * 1000);
  files.image_file = gzip(idx(images, {3, 1000, 1000}, files.pixels));
  const auto dataset = files.load();
  CHECK(std::equal(dataset.bytes.begin(), dataset.bytes.end(), files.pixels.begin(), files.pixels.end(),
                   [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
}

TEST_CASE("an IDX header that is wrong is refused by name") {
  Idx files;
  SECTION("magic of the labels") {
    files.image_file = idx(labels, {3, 4, 5}, files.pixels);
    CHECK_THAT(files.error("images"), Contains("0x801, expected 0x803"));
  }
  SECTION("element type") {
    files.image_file = idx(0xd03, {3, 4, 5}, files.pixels);
    CHECK_THAT(files.error("images"), Contains("0xd03"));
  }
  SECTION("swapped files") {
    std::swap(files.image_file, files.label_file);
    CHECK_THAT(files.error("images"), Contains("expected 0x803"));
  }
  SECTION("magic of the images in the label file") {
    files.label_file = idx(images, {3}, files.digits);
    CHECK_THAT(files.error("labels"), Contains("expected 0x801"));
  }
  SECTION("no images") {
    files.image_file = idx(images, {0, 4, 5}, "");
    CHECK_THAT(files.error("images"), Contains("0 images"));
  }
  SECTION("no pixels") {
    files.image_file = idx(images, {3, 4, 0}, "");
    CHECK_THAT(files.error("images"), Contains("4 x 0 pixels"));
  }
  SECTION("fewer labels than images") {
    files.label_file = idx(labels, {2}, files.digits.substr(0, 2));
    CHECK_THAT(files.error("labels"), Contains("2 labels, expected 3"));
  }
  SECTION("cut") {
    for (std::size_t bytes : {0u, 1u, 3u, 10u, 15u}) {
      files.image_file = idx(images, {3, 4, 5}, files.pixels).substr(0, bytes);
      CHECK_THAT(files.error("images"), Contains("ends after " + std::to_string(bytes) + " bytes"));
      files.image_file = gzip(files.image_file);
      CHECK_THAT(files.error("images"), Contains("ends after " + std::to_string(bytes) + " bytes"));
    }
  }
}

TEST_CASE("sizes that overflow or exceed the data are refused before memory is taken") {
  Idx files;
  const auto sizes = GENERATE(std::vector<std::uint32_t>{0x80000000, 0x80000000, 4},  // 2^64
                              std::vector<std::uint32_t>{0x10000, 0x100, 0x100},      // 2^32
                              std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff},
                              std::vector<std::uint32_t>{0xffffffff, 1, 0x7fffffff}, std::vector<std::uint32_t>{3, 4, 6});
  const bool compressed = GENERATE(false, true);
  files.image_file = idx(images, sizes, files.pixels);
  files.label_file = idx(labels, {sizes[0]}, files.digits);
  if (compressed) files.image_file = gzip(files.image_file);
  // The labels of the huge ones end too early, whichever file is looked at first.
  CHECK_THROWS_AS(files.load(), FileError);
}

TEST_CASE("data that end early or go on are refused") {
  Idx files;
  const auto plain = files.image_file;
  const auto packed = gzip(plain);
  SECTION("plain") {
    files.image_file = plain.substr(0, plain.size() - 1);
    CHECK_THAT(files.error("images"), Contains("would take 60 bytes"));
    files.image_file = plain + "x";
    CHECK_THAT(files.error("images"), Contains("goes on behind the images"));
    files.image_file = plain;
    files.label_file += "x";
    CHECK_THAT(files.error("labels"), Contains("goes on behind the labels"));
  }
  SECTION("compressed") {
    files.image_file = gzip(plain.substr(0, plain.size() - 1));
    CHECK_THAT(files.error("images"), Contains("the images end after 59 bytes, expected 60"));
    files.image_file = gzip(plain + "x");
    CHECK_THAT(files.error("images"), Contains("goes on behind the images"));
    files.image_file = packed + gzip("x");
    CHECK_THAT(files.error("images"), Contains("goes on behind the images"));
  }
  SECTION("the stream itself") {
    for (std::size_t cut = 2; cut < packed.size(); ++cut) {
      files.image_file = packed.substr(0, cut);
      CHECK_THAT(files.error("images"), Contains("gzip data end too early"));
    }
    files.image_file = packed + "garbage";
    CHECK_THAT(files.error("images"), Contains("not gzip behind"));
    files.image_file = packed + "\x1fgarbage";
    CHECK_THAT(files.error("images"), Contains("damaged gzip data"));
  }
  SECTION("a flipped bit, wherever it is in the compressed data or the check sums") {
    for (std::size_t i = 10; i < packed.size(); ++i) {
      if (i == packed.size() - 9) continue;  // the last byte before the check sums may end in bits that mean nothing
      files.image_file = packed;
      files.image_file[i] = static_cast<char>(files.image_file[i] ^ 0x10);
      CHECK_THROWS_AS(files.load(), FileError);
    }
  }
}

TEST_CASE("labels must be below the number of classes") {
  Idx files;
  files.digits[1] = '\xff';
  files.label_file = idx(labels, {3}, files.digits);
  CHECK_THAT(files.error("labels"), Contains("label 255 of sample 1 is not one of 10 classes"));
  CHECK(files.load(256).labels[1] == 255);
  CHECK_THROWS_AS(files.load(255), FileError);
  CHECK_THROWS_AS(files.load(0), Error);
}

TEST_CASE("a small file that inflates to half a gigabyte costs no memory") {
  Idx files;
  const std::string zeros(std::size_t{1} << 26, '\0');
  auto bomb = gzip(idx(images, {3, 4, 5}, zeros));
  const auto member = gzip(zeros);
  for (int i = 0; i < 7; ++i) bomb += member;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  files.image_file = bomb;
  CHECK_THAT(files.error("images"), Contains("goes on behind the images"));
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 100 * 1024);
}

TEST_CASE("what is not a regular file is refused without waiting for it") {
  Idx files;
  files.load();
  const auto read = [&](const char* name) { return load_idx(files.folder / name, files.folder / "labels"); };
  REQUIRE(::mkfifo((files.folder / "fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read("fifo"), Contains("is not a regular file"));
  fs::create_directory(files.folder / "folder");
  CHECK_THROWS_WITH(read("folder"), Contains("is a folder"));
  fs::create_symlink("/dev/zero", files.folder / "zero");
  CHECK_THROWS_WITH(read("zero"), Contains("is not a regular file"));
  fs::create_symlink("fifo", files.folder / "link");
  CHECK_THROWS_WITH(read("link"), Contains("is not a regular file"));
  fs::create_symlink("nowhere", files.folder / "dangling");
  CHECK_THROWS_WITH(read("dangling"), Contains("cannot open: No such file"));
  fs::create_symlink("images", files.folder / "good");
  CHECK(read("good").size() == 3);
}

}  // namespace
}  // namespace clnet::data
