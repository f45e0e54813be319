// The weights of ONNX files without their graphs: read as arrays, replaced, and laid beside a model that they make too large.
#include "lib/onnx/initializers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "lib/base/file.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

constexpr int doc_field = 12;

std::vector<double> counted(std::size_t count, double from) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from + static_cast<double>(i);
  return values;
}

/// A tensor of 4 bits, which clnet does not compute with.
std::string of_nibbles(const std::string& name) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_int64(1, 4);
  writer.add_int32(2, static_cast<std::int32_t>(Type::u4));
  writer.add_string(8, name);
  writer.add_bytes(9, "\x21\x43", 2);
  return out;
}

/// y = x a b + small: 1200, 4800 and 16 bytes.
Builder network() {
  auto a = onnx::write_tensor(HostTensor::of(Type::f32, {10, 30}, counted(300, 0)), "a");
  protozero::pbf_writer(a).add_string(doc_field, "the first");
  Builder b;
  b.raw_initializer(a).initializer("b", {30, 40}, counted(1200, -7)).initializer("small", {1, 4}, {1, 2, 3, 4});
  b.initializer("places", {200}, counted(200, -100), Type::i16);
  b.input("x", Type::f32, {-1, 10}).output("y").output("z");
  b.node("MatMul", {"x", "a"}, {"h"}).node("MatMul", {"h", "b"}, {"y"}).node("Identity", {"small"}, {"z"});
  return b;
}
constexpr std::uint64_t all_bytes = 1200 + 4800 + 16 + 400;

data::Array array_of(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  data::Array array(shape, Dtype::f32, name);
  std::copy(values.begin(), values.end(), array.values<float>().begin());
  return array;
}

std::vector<float> values_of(const std::vector<data::Array>& arrays, const std::string& name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& array) { return array.name == name; });
  REQUIRE(found != arrays.end());
  const auto values = found->values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("initializers that make a model too large lie beside it, and come back") {
  const Folder folder;
  folder.write("net.onnx", network().model());
  const auto path = [&](const char* name) { return folder / name; };
  std::vector<float> fresh(300);
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i] = 0.25F * static_cast<float>(i);
  const std::vector<data::Array> arrays{array_of("a", {10, 30}, fresh), array_of("other", {1}, {1})};

  const auto inside = onnx::replace_initializers(path("net.onnx"), arrays, path("inside.onnx"), all_bytes);
  CHECK(inside.replaced == 1);
  CHECK(inside.kept == 3);
  CHECK(inside.unknown == std::vector<std::string>{"other"});
  CHECK(inside.beside.empty());
  CHECK_FALSE(fs::exists(path("inside.onnx.data")));
  // Of a model without such data all other bytes stay: only the 300 numbers differ.
  const auto before = content(path("net.onnx")), after = content(path("inside.onnx"));
  CHECK(after.size() == before.size());
  CHECK_THAT(after, Contains("the first"));

  const auto apart = onnx::replace_initializers(path("net.onnx"), arrays, path("apart.onnx"), all_bytes - 1);
  CHECK(apart.beside == "apart.onnx.data");
  CHECK_THAT(content(path("apart.onnx")), Contains("the first"));
  // Tensors of 1 KiB and more, each from a page on.
  CHECK(fs::file_size(path("apart.onnx.data")) == 4096 + 4800);
  CHECK(fs::file_size(path("apart.onnx")) < fs::file_size(path("inside.onnx")) - 5500);

  const Tensor x = Tensor::from(std::vector<float>{1, -1, 2, 0, 0, 3, 0.5F, 0, 0, 1}, {1, 10});
  auto one = onnx::load(path("inside.onnx")), other = onnx::load(path("apart.onnx"));
  CHECK(one(x).to_vector<float>() == other(x).to_vector<float>());

  // From a model with data beside it, into one without, and over itself.
  const std::vector<data::Array> smaller{array_of("small", {1, 4}, {4, 3, 2, 1})};
  onnx::replace_initializers(path("apart.onnx"), smaller, path("back.onnx"));
  CHECK_FALSE(fs::exists(path("back.onnx.data")));
  onnx::replace_initializers(path("apart.onnx"), smaller, path("apart.onnx"), 0);
  for (const char* name : {"back.onnx", "apart.onnx"}) {
    CAPTURE(name);
    auto model = onnx::load(path(name));
    CHECK(model.run({x})[0].to_vector<float>() == one(x).to_vector<float>());
    CHECK(model.run({x})[1].to_vector<float>() == std::vector<float>{4, 3, 2, 1});
    CHECK(model.state_dict().size() == one.state_dict().size());
  }
}

TEST_CASE("weights go beside a model and come out of it as they were") {
  const Folder folder;
  Builder b;
  b.input("x").output("x").initializer("a", {300}, counted(300, 0)).initializer("n", {600}, counted(600, -300), Type::i16);
  folder.write("net.onnx", b.model());
  const auto before = onnx::read_initializers(folder / "net.onnx");
  onnx::replace_initializers(folder / "net.onnx", before, folder / "apart.onnx", 0);
  const auto after = onnx::read_initializers(folder / "apart.onnx");
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].name == before[i].name);
    CHECK(after[i].dtype == before[i].dtype);
    CHECK(after[i].bytes == before[i].bytes);
  }
  CHECK(values_of(after, "a")[299] == 299);
}

TEST_CASE("tensors of types that clnet lacks stay in the model as they are") {
  const Folder folder;
  folder.write("net.onnx", network().raw_initializer(of_nibbles("nibbles")).model());
  const auto result =
      onnx::replace_initializers(folder / "net.onnx", {array_of("small", {1, 4}, {4, 3, 2, 1})}, folder / "apart.onnx", 0);
  CHECK(result.kept == 4);
  CHECK(result.beside == "apart.onnx.data");
  CHECK_THAT(content(folder / "apart.onnx"), Contains(of_nibbles("nibbles")));
}

TEST_CASE("a model that cannot be written leaves no data beside it") {
  const Folder folder;
  folder.write("net.onnx", network().model());
  const std::vector<data::Array> arrays{array_of("small", {1, 4}, {4, 3, 2, 1})};
  fs::create_directory(folder / "taken.onnx");
  folder.write("taken.onnx.data", "as before");
  CHECK_THROWS_AS(onnx::replace_initializers(folder / "net.onnx", arrays, folder / "taken.onnx", 0), FileError);
  CHECK(file::read(folder / "taken.onnx.data", 1 << 20) == "as before");

  // A copy of a model has its data in the file of the first.
  onnx::replace_initializers(folder / "net.onnx", arrays, folder / "big.onnx", 0);
  fs::copy_file(folder / "big.onnx", folder / "copy.onnx");
  const auto data = file::read(folder / "big.onnx.data", 1 << 20);
  CHECK_THROWS_WITH(onnx::replace_initializers(folder / "copy.onnx", arrays, folder / "big.onnx", 0),
                    Contains("copy.onnx") && Contains("which those of") && Contains("give the result another name"));
  CHECK(file::read(folder / "big.onnx.data", 1 << 20) == data);
  onnx::replace_initializers(folder / "big.onnx", arrays, folder / "big.onnx", 0);

  // Kept data that are not there, or fewer than they should be.
  onnx::replace_initializers(folder / "net.onnx", arrays, folder / "apart.onnx", 0);
  fs::resize_file(folder / "apart.onnx.data", 5000);
  for (const std::uint64_t most : {std::uint64_t{0}, all_bytes}) {
    CHECK_THROWS_WITH(onnx::replace_initializers(folder / "apart.onnx", arrays, folder / "next.onnx", most),
                      Contains("\"apart.onnx.data\" has 5000 bytes"));
    CHECK_FALSE(fs::exists(folder / "next.onnx"));
    CHECK_FALSE(fs::exists(folder / "next.onnx.data"));
  }

  Builder wrong;
  wrong.initializer("small", {1, 4}, {1, 2, 3, 4}).input("x").output("x");
  wrong.raw_initializer(onnx::write_external_tensor(Type::f32, {300}, "far", {"../net.onnx", 0, 1200}));
  folder.write("wrong.onnx", wrong.model());
  CHECK_THROWS_WITH(onnx::replace_initializers(folder / "wrong.onnx", arrays, folder / "next.onnx"),
                    Contains("\"far\"") && Contains("lies outside of the model's folder"));
  CHECK_FALSE(fs::exists(folder / "next.onnx"));
}
