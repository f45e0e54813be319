#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/acceptance.h"
#include "tests/idx_writer.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

constexpr std::size_t image_bytes = 3 * 32 * 32;

/// CIFAR-10 records with the labels given; every pixel of a record is `first` + its number.
std::string records(const std::string& labels, int first = 0) {
  std::string out;
  for (std::size_t i = 0; i < labels.size(); ++i)
    out += labels[i] + std::string(image_bytes, static_cast<char>(first + static_cast<int>(i)));
  return out;
}

/// CLNET_DATA_DIR for as long as it lives.
class DataDir {
 public:
  explicit DataDir(const fs::path& path) {
    if (const char* old = std::getenv("CLNET_DATA_DIR")) old_ = old;
    path.empty() ? unsetenv("CLNET_DATA_DIR") : setenv("CLNET_DATA_DIR", path.c_str(), 1);
  }
  ~DataDir() { old_.empty() ? unsetenv("CLNET_DATA_DIR") : setenv("CLNET_DATA_DIR", old_.c_str(), 1); }
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

 private:
  std::string old_;
};

void write_idx(const fs::path& folder, const std::string& part, std::uint32_t count, const char* joint = "-") {
  const auto put = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
  };
  put(part + "-images" + joint + "idx3-ubyte", idx(0x803, {count, 2, 2}, pattern(count * 4)));
  put(part + "-labels" + joint + "idx1-ubyte", idx(0x801, {count}, std::string(count, '\3')));
}

TEST_CASE("a folder's IDX files are found under their usual names") {
  clnet::test::Folder folder;
  const char* joint = GENERATE("-", ".");
  write_idx(folder.path(), "train", 5, joint);
  write_idx(folder.path(), "t10k", 2, joint);
  CHECK(load_folder(folder.path(), Split::train).size() == 5);
  CHECK(load_folder(folder.path(), Split::test).size() == 2);
  CHECK(load_folder(folder.path() / "", Split::test).name == folder.path().filename());
}

TEST_CASE("a folder with part of a dataset says which file is missing") {
  clnet::test::Folder folder;
  write_idx(folder.path(), "train", 5);
  CHECK_THROWS_WITH(load_folder(folder.path(), Split::test),
                    Contains(folder.path().string()) && Contains("no t10k-images-idx3-ubyte"));
  fs::remove(folder / "train-labels-idx1-ubyte");
  CHECK_THROWS_WITH(load_folder(folder.path(), Split::train), Contains("no train-labels-idx1-ubyte"));
}

TEST_CASE("a folder without data, a file and nothing at all are refused") {
  clnet::test::Folder folder;
  CHECK_THROWS_WITH(load_folder(folder.path(), Split::train), Contains("holds no dataset"));
  CHECK_THROWS_AS(load_folder(folder.write("file", "x"), Split::train), FileError);
  CHECK_THROWS_WITH(load_folder(folder / "nowhere", Split::train), Contains("No such file"));
}

TEST_CASE("CIFAR-10 batches are joined in the order of their numbers") {
  clnet::test::Folder folder;
  folder.write("data_batch_10.bin", records("\x9", 30));
  folder.write("data_batch_2.bin", records("\x1\x2", 20));
  folder.write("data_batch_1.bin", records(std::string("\x0\x7", 2), 10));
  folder.write("data_batch_x.bin", "not one of them");
  folder.write("batches.meta.txt", "airplane");
  const auto train = load_folder(folder.path(), Split::train);
  CHECK(train.labels == std::vector<std::int32_t>{0, 7, 1, 2, 9});
  CHECK(train.sample_shape == Shape{3, 32, 32});
  CHECK(train.classes == 10);
  REQUIRE(train.bytes.size() == 5 * image_bytes);
  const int expected[] = {10, 11, 20, 21, 30};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(train.bytes[i * image_bytes] == expected[i]);
    CHECK(train.bytes[(i + 1) * image_bytes - 1] == expected[i]);
  }
  CHECK_THROWS_WITH(load_folder(folder.path(), Split::test), Contains("no test_batch.bin"));
  folder.write("test_batch.bin", records("\x4"));
  CHECK(load_folder(folder.path(), Split::test).labels == std::vector<std::int32_t>{4});
  fs::remove(folder / "data_batch_1.bin");
  CHECK(load_folder(folder.path(), Split::train).size() == 3);
}

TEST_CASE("damaged CIFAR-10 files are refused by name") {
  clnet::test::Folder folder;
  const auto good = records("\x1\x2\x3");
  CHECK_THROWS_WITH(load_cifar10({folder.write("short.bin", good.substr(1))}),
                    Contains("short.bin") && Contains("9218 bytes, expected a multiple of 3073"));
  CHECK_THROWS_WITH(load_cifar10({folder.write("long.bin", good + "x")}), Contains("expected a multiple"));
  CHECK_THROWS_WITH(load_cifar10({folder.write("empty.bin", "")}), Contains("has 0 bytes"));
  CHECK_THROWS_WITH(load_cifar10({folder.write("good.bin", good), folder.write("label.bin", records("\x1\xa"))}),
                    Contains("label.bin") && Contains("label 10 of record 1"));
  CHECK_THROWS_WITH(load_cifar10({folder.path()}), Contains("is a folder"));
  CHECK_THROWS_AS(load_cifar10({}), Error);
  // A sparse file whose size fits, but which is larger than any batch.
  fs::resize_file(folder / "long.bin", 3073ull << 30);
  CHECK_THROWS_WITH(load_cifar10({folder / "long.bin"}), Contains("too many"));
}

TEST_CASE("CLNET_DATA_DIR names the folder of the well-known datasets") {
  clnet::test::Folder folder;
  fs::create_directories(folder / "fashion-mnist");
  fs::create_directories(folder / "mnist");
  write_idx(folder / "fashion-mnist", "train", 7);
  write_idx(folder / "mnist", "t10k", 3);
  const DataDir set(folder.path());
  const auto fashion = fashion_mnist(Split::train);
  CHECK(fashion.size() == 7);
  CHECK(fashion.name == "fashion-mnist");
  CHECK(fashion.class_names.size() == 10);
  CHECK(mnist(Split::test).size() == 3);
  CHECK_THROWS_WITH(cifar10(Split::train), Contains((folder / "cifar10").string()));
  const DataDir unset({});
  CHECK_THROWS_WITH(mnist(Split::test), Contains("set CLNET_DATA_DIR"));
}

TEST_CASE("Fashion-MNIST as Debian packages it") {
  if (!fs::exists("/usr/share/datasets/fashion-mnist")) {
    clnet::test::skip("Debian's package dataset-fashion-mnist is not installed");
    return;
  }
  const DataDir unset({});
  const auto train = fashion_mnist(Split::train), test = fashion_mnist(Split::test);
  CHECK(train.size() == 60000);
  CHECK(test.size() == 10000);
  CHECK(train.sample_shape == Shape{1, 28, 28});
  std::vector<float> mean, std;
  compute_normalization(train, mean, std);
  CHECK(mean[0] == Approx(0.2860405969887955).epsilon(1e-6));  // as published for the dataset
  CHECK(std[0] == Approx(0.3530242445149223).epsilon(1e-6));
}

TEST_CASE("the malformed IDX and CIFAR-10 folders of the acceptance data") {
  const auto bad = acceptance("bad");
  if (!bad) return;
  const auto manifest = nlohmann::json::parse(std::ifstream(*bad / "manifest.json"));
  const std::chrono::duration<double> limit(manifest["limits"]["max_seconds"].get<double>());
  int cases = 0;
  for (const auto& entry : manifest["cases"]) {
    if (entry["kind"] != "idx" && entry["kind"] != "cifar") continue;
    ++cases;
    const std::string path = *bad / entry["path"].get<std::string>(), expect = entry["expect"];
    INFO(path << ": " << entry["what"]);
    std::string error;
    const auto begin = std::chrono::steady_clock::now();
    try {  // a training run needs both halves
      load_folder(path, Split::train);
      load_folder(path, Split::test);
    } catch (const FileError& e) {
      error = e.what();
    }
    CHECK(std::chrono::steady_clock::now() - begin < limit);
    if (expect == "ok") CHECK(error == "");
    if (expect == "error") CHECK(error != "");
    if (!error.empty()) {
      CHECK_THAT(error, Contains(path));
      CHECK(error.find('\n') == std::string::npos);
    }
  }
  CHECK(cases > 0);
}

}  // namespace
}  // namespace clnet::data
