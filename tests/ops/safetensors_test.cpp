#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/io/safetensors_header.h"
#include "tests/acceptance.h"
#include "tests/support/temporary.h"

namespace clnet::io {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

std::vector<char> storage(const Tensor& tensor) {
  std::vector<char> out(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(out.data(), out.size());
  return out;
}

std::string with_length(const std::string& json, const std::string& data) {
  const std::uint64_t length = json.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + json + data;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

StateDict every_dtype() {
  const std::uint16_t halves[] = {0x3c00, 0xfc00, 0x0001};
  return {{"flags", Tensor::from<bool>({true, false, true}, {3})},
          {"half", Tensor::from_bytes(halves, sizeof halves, {{3}, Dtype::f16})},
          {"conv.weight", Tensor::from<float>({1.5f, -0.0f, std::numeric_limits<float>::infinity(), 1e-42f}, {2, 2})},
          {"brain", Tensor::from_bytes(halves, sizeof halves, {{3, 1}, Dtype::bf16})},
          {"steps", Tensor::from<std::int64_t>({std::int64_t{1} << 40}, {})},
          {"bytes", Tensor::from<std::uint8_t>({1, 255, 7, 0, 9}, {5})},
          {"labels", Tensor::from<std::int32_t>({-3, 3}, {1, 2})},
          {"nothing", Tensor::from<float>({}, {0, 4})}};
}

TEST_CASE("saved tensors come back bit by bit, in their order") {
  clnet::test::Folder folder;
  const auto saved = every_dtype();
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"epoch", "3"}};
  save_safetensors(folder / "a.safetensors", saved, metadata);
  const auto loaded = load_safetensors(folder / "a.safetensors");
  CHECK(loaded.metadata == metadata);
  REQUIRE(loaded.tensors.size() == saved.size());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    INFO(saved[i].first);
    CHECK(loaded.tensors[i].first == saved[i].first);
    CHECK(loaded.tensors[i].second.spec() == saved[i].second.spec());
    CHECK(storage(loaded.tensors[i].second) == storage(saved[i].second));
  }
  // Data begin at a multiple of 8, and each tensor at a multiple of its element's size.
  const auto header = read_header(InputFile(folder / "a.safetensors"));
  CHECK(header.data_offset % 8 == 0);
  for (const auto& tensor : header.tensors) CHECK(tensor.begin % size_of(tensor.spec.dtype) == 0);

  save_safetensors(folder / "b.safetensors", loaded.tensors, loaded.metadata);
  CHECK(content(folder / "a.safetensors") == content(folder / "b.safetensors"));
}

TEST_CASE("values that are not computed yet are computed once saved") {
  clnet::test::Folder folder;
  const auto x = Tensor::from<float>({1, 2, 3}, {3});
  save_safetensors(folder / "x", {{"x", x.detach()}, {"y", copy_to(x, Device::current())}});
  CHECK(load_safetensors(folder / "x").tensors.at(1).second.to_vector<float>() == std::vector<float>{1, 2, 3});
}

TEST_CASE("unaligned and double data are read") {
  clnet::test::Folder folder;
  const std::string json =
      R"({"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"d":{"dtype":"F64","shape":[3],"data_offsets":[1,25]},)"
      R"("l":{"dtype":"I64","shape":[1],"data_offsets":[25,33]},"f":{"dtype":"F32","shape":[2],"data_offsets":[33,41]}})";
  const auto path = folder.write("f", with_length(json, bytes_of<std::uint8_t>({200}) + bytes_of<double>({0.1, -1e300, 5}) +
                                                            bytes_of<std::int64_t>({-7}) + bytes_of<float>({2.5f, -3.5f})));
  const auto tensors = load_safetensors(path).tensors;
  REQUIRE(tensors.size() == 4);
  CHECK(tensors[0].second.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{200});
  CHECK(tensors[1].second.spec() == Spec{{3}, Dtype::f64});
  CHECK(tensors[1].second.to_vector<double>() == std::vector{0.1, -1e300, 5.0});
  CHECK(tensors[2].second.to_vector<std::int64_t>() == std::vector<std::int64_t>{-7});
  CHECK(tensors[3].second.to_vector<float>() == std::vector<float>{2.5f, -3.5f});
}

TEST_CASE("a bool is 0 or 1") {
  clnet::test::Folder folder;
  const std::string json = R"({"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  CHECK_THROWS_WITH(load_safetensors(folder.write("f", with_length(json, "\1\2"))), Contains("\"b\"") && Contains("byte 2"));
}

TEST_CASE("saving refuses what it cannot write, and leaves the old file") {
  clnet::test::Folder folder;
  const auto x = Tensor::from<float>({1}, {1});
  const auto path = folder.write("old", "old content");
  CHECK_THROWS_WITH(save_safetensors(path, {{"a", x}, {"a", x}}), Contains("\"a\" is given twice"));
  CHECK_THROWS_WITH(save_safetensors(path, {{"a", Tensor()}}), Contains("\"a\" is not defined"));
  CHECK_THROWS_AS(save_safetensors(path, {{"__metadata__", x}}), Error);
  CHECK_THROWS_AS(save_safetensors(path, {{"\xff", x}}), Error);
  CHECK(content(path) == "old content");
  CHECK_THROWS_AS(save_safetensors(folder / "nowhere" / "x", {{"a", x}}), FileError);
  CHECK_THROWS_AS(save_safetensors(folder.path(), {{"a", x}}), FileError);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  save_safetensors(path, {{"a", x}});
  CHECK(load_safetensors(path).tensors.at(0).first == "a");
}

TEST_CASE("the acceptance data's sound safetensors load whole, the others do not") {
  const auto bad = acceptance("bad");
  if (!bad) return;
  const auto manifest = nlohmann::json::parse(std::ifstream(*bad / "manifest.json"));
  for (const auto& entry : manifest["cases"]) {
    if (entry["kind"] != "safetensors") continue;
    const std::string path = *bad / entry["path"].get<std::string>(), expect = entry["expect"];
    INFO(path << ": " << entry["what"]);
    const auto begin = std::chrono::steady_clock::now();
    bool loaded = true;
    try {
      for (const auto& [name, tensor] : load_safetensors(path).tensors) storage(tensor);
    } catch (const FileError&) {
      loaded = false;
    }
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
          entry.value("max_seconds", manifest["limits"]["max_seconds"].get<double>()));
    if (expect != "either") CHECK(loaded == (expect == "ok"));
  }
}

}  // namespace
}  // namespace clnet::io
