#include "lib/io/safetensors_header.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "tests/acceptance.h"
#include "tests/support/temporary.h"

namespace clnet::io {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

std::string with_length(const std::string& json, std::uint64_t length, const std::string& data = "") {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + json + data;
}

/// The text of the FileError, which must be one line without control characters.
std::string error(const std::string& json, std::uint64_t data_bytes) {
  try {
    parse_header(json, data_bytes);
  } catch (const FileError& e) {
    for (const char* c = e.what(); *c; ++c) CHECK(static_cast<unsigned char>(*c) >= 0x20);
    return e.what();
  }
  return "no error";
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + entry("w", dtype, shape, offsets) + "}";
}

TEST_CASE("a sound header is read in its order") {
  const auto header = parse_header(R"({"__metadata__":{"format":"pt","é\n":""},)" + entry("b", "F32", "[2,3]", "[8,32]") + "," +
                                       entry("a", "I64", "[]", "[0,8]") + "," + entry("z", "F16", "[0,5]", "[32,32]") + "," +
                                       entry("y", "F64", "[1]", "[32,40]") + "," + entry("x", "BOOL", "[3]", "[40,43]") + "}  ",
                                   43);
  CHECK(header.metadata == std::map<std::string, std::string>{{"format", "pt"}, {"é\n", ""}});
  REQUIRE(header.tensors.size() == 5);
  CHECK(header.tensors[0].name == "b");
  CHECK(header.tensors[0].spec == Spec{{2, 3}, Dtype::f32});
  CHECK(header.tensors[0].begin == 8);
  CHECK(header.tensors[0].end == 32);
  CHECK(header.tensors[1].spec == Spec{{}, Dtype::i64});
  CHECK(header.tensors[2].spec == Spec{{0, 5}, Dtype::f16});
  CHECK(header.tensors[3].spec == Spec{{1}, Dtype::f64});
  CHECK(header.tensors[4].spec == Spec{{3}, Dtype::boolean});
  CHECK(parse_header("{}", 0).tensors.empty());
}

TEST_CASE("every dtype of the format that clnet stores is known") {
  for (const auto& [name, bytes, dtype] : std::vector<std::tuple<std::string, int, Dtype>>{{"F32", 4, Dtype::f32},
                                                                                           {"F16", 2, Dtype::f16},
                                                                                           {"BF16", 2, Dtype::bf16},
                                                                                           {"F64", 8, Dtype::f64},
                                                                                           {"I32", 4, Dtype::i32},
                                                                                           {"I64", 8, Dtype::i64},
                                                                                           {"U8", 1, Dtype::u8},
                                                                                           {"I8", 1, Dtype::i8},
                                                                                           {"BOOL", 1, Dtype::boolean}}) {
    const auto data = static_cast<std::uint64_t>(3 * bytes);
    CHECK(parse_header(one(name, "[3]", "[0," + std::to_string(data) + "]"), data).tensors[0].spec.dtype == dtype);
  }
  CHECK_THAT(error(one("F8_E4M3", "[4]", "[0,4]"), 4), Contains("\"w\"") && Contains("F8_E4M3"));
  CHECK_THAT(error(one("f32", "[1]", "[0,4]"), 4), Contains("\"f32\" is not supported"));
}

TEST_CASE("what is not JSON, or not an object, is refused") {
  for (const std::string json : {"", " {}", "12345678", "[]", "\xef\xbb\xbf{}"})
    CHECK_THAT(error(json, 0), Contains("not a JSON object"));
  CHECK_THAT(error(std::string("{}\0 ", 4), 0), Contains("not a JSON object"));
  CHECK_THAT(error(R"({"w": oops})", 0), Contains("not valid JSON at byte"));
  CHECK_THAT(error(R"({"w":{"dtype":"F32","sha)", 0), Contains("not valid JSON at byte"));
  CHECK_THAT(error("{}{}", 0), Contains("not valid JSON at byte"));
  CHECK_THAT(error("{\"\xff\":{}}", 0), Contains("not valid JSON at byte"));
  CHECK_THAT(error("{\"" + std::string(100000, 'n'), 0), Contains("not valid JSON at byte"));
}

TEST_CASE("nesting of any depth ends at the first bracket that does not belong") {
  const std::size_t deep = 2'000'000;
  CHECK_THAT(error("{\"w\":" + std::string(deep, '['), 0), Contains("expected an object, got an array"));
  CHECK_THAT(error("{\"w\":{\"shape\":" + std::string(deep, '['), 0), Contains("got an array"));
  std::string objects = "{";
  for (std::size_t i = 0; i < deep / 4; ++i) objects += "\"w\":{";
  CHECK_THAT(error(objects, 0), Contains("unknown field \"w\""));
}

TEST_CASE("a value of the wrong kind is refused where it stands") {
  CHECK_THAT(error(R"({"w":1})", 0), Contains("tensor \"w\": expected an object, got 1"));
  CHECK_THAT(error(R"({"w":null})", 0), Contains("got null"));
  CHECK_THAT(error(R"({"w":"x"})", 0), Contains("got a string"));
  CHECK_THAT(error(R"({"w":{"dtype":1}})", 0), Contains("dtype should be a string, got 1"));
  CHECK_THAT(error(one("F32", "12", "[0,48]"), 48), Contains("shape should be an array, got 12"));
  CHECK_THAT(error(one("F32", "{}", "[0,48]"), 48), Contains("got an object"));
  CHECK_THAT(error(one("F32", "[-4,-3]", "[0,48]"), 48), Contains("shape should hold unsigned integers, got -4"));
  CHECK_THAT(error(one("F32", "[4.0,3]", "[0,48]"), 48), Contains("got a number that is not an unsigned integer"));
  CHECK_THAT(error(one("F32", "[true]", "[0,48]"), 48), Contains("got a boolean"));
  CHECK_THAT(error(one("F32", "[[1]]", "[0,48]"), 48), Contains("got an array"));
  CHECK_THAT(error(one("F32", "[4,3]", "[\"0\",\"48\"]"), 48), Contains("data_offsets should hold unsigned integers"));
  CHECK_THAT(error(one("F32", "[4,3]", "[-48,0]"), 48), Contains("got -48"));
  CHECK_THAT(error(R"({"__metadata__":{"k":5}})", 0), Contains("metadata \"k\": expected a string, got 5"));
  CHECK_THAT(error(R"({"__metadata__":[]})", 0), Contains("__metadata__: expected an object"));
}

TEST_CASE("fields that are missing, unknown or there twice are refused") {
  CHECK_THAT(error(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4), Contains("has no dtype"));
  CHECK_THAT(error(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4), Contains("has no shape"));
  CHECK_THAT(error(R"({"w":{"dtype":"F32","shape":[1]}})", 4), Contains("has no data_offsets"));
  CHECK_THAT(error(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), Contains("dtype twice"));
  CHECK_THAT(error(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4), Contains("unknown field \"x\""));
  CHECK_THAT(error("{" + entry("w", "U8", "[1]", "[0,1]") + "," + entry("w", "U8", "[1]", "[1,2]") + "}", 2),
             Contains("\"w\" appears twice"));
  CHECK_THAT(error("{" + entry("w", "U8", "[0]", "[0,0]") + "," + entry("w", "U8", "[0]", "[0,0]") + "}", 0),
             Contains("\"w\" appears twice"));
  CHECK_THAT(error(R"({"__metadata__":{},"__metadata__":{}})", 0), Contains("__metadata__ appears twice"));
  CHECK_THAT(error(R"({"__metadata__":{"a":"","a":""}})", 0), Contains("\"a\" appears twice"));
}

TEST_CASE("offsets must match shape, dtype and each other") {
  CHECK_THAT(error(one("F32", "[4,3]", "[48,0]"), 48), Contains("[48, 0] do not lie in 48 bytes"));
  CHECK_THAT(error(one("F32", "[4,3]", "[0,49]"), 48), Contains("[0, 49] do not lie in 48 bytes"));
  CHECK_THAT(error(one("F32", "[4,3]", "[0]"), 48), Contains("1 numbers, expected 2"));
  CHECK_THAT(error(one("F32", "[4,3]", "[0,48,96]"), 96), Contains("more than 2 numbers"));
  CHECK_THAT(error(one("F32", "[4,3]", "[0,44]"), 44), Contains("take 48 bytes, but data_offsets [0, 44] hold 44"));
  CHECK_THAT(error(one("F32", "[4,3]", "[0,48]"), 52), Contains("end at byte 48 of 52"));
  CHECK_THAT(error("{}", 1), Contains("end at byte 0 of 1"));
  CHECK_THAT(error("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[2,6]") + "}", 6),
             Contains("overlaps"));
  CHECK_THAT(error("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[0,4]") + "}", 4),
             Contains("overlaps"));
  CHECK_THAT(error("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[4,6]") + "}", 6), Contains("gap"));
  CHECK_THAT(error(one("U8", "[4]", "[2,6]"), 6), Contains("gap"));
  CHECK_THAT(error("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[0]", "[2,2]") + "}", 4),
             Contains("overlaps"));
}

TEST_CASE("shapes that overflow are refused") {
  CHECK_THAT(error(one("F32", "[4611686018427387905]", "[0,4]"), 4), Contains("more than 2147483647 elements"));
  CHECK_THAT(error(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), Contains("more than"));
  CHECK_THAT(error(one("U8", "[65536,32768]", "[0,1]"), 1), Contains("more than"));
  CHECK_THAT(error(one("U8", "[18446744073709551615]", "[0,1]"), 1), Contains("more than"));
  CHECK_THAT(error(one("U8", "[18446744073709551616]", "[0,1]"), 1), Contains("not an unsigned integer"));
  CHECK_THAT(error(one("U8", "[0,18446744073709551615]", "[0,0]"), 0), Contains("more than"));
  CHECK_THAT(error(one("U8", "[1]", "[18446744073709551615,18446744073709551616]"), 1), Contains("not an unsigned integer"));
}

TEST_CASE("names and metadata come back as they were written") {
  std::vector<StoredTensor> tensors{{"plain.weight", {{2, 3}, Dtype::f32}, 0, 24},
                                    {"é\n\"w\\\t" + std::string(1, '\0') + "x", {{}, Dtype::i64}, 24, 32},
                                    {"", {{0, 4}, Dtype::boolean}, 32, 32}};
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"", "two\nlines"}};
  const auto written = write_header(tensors, metadata);
  CHECK(written.size() % 8 == 0);
  std::uint64_t length = 0;
  std::memcpy(&length, written.data(), 8);
  REQUIRE(length == written.size() - 8);
  const auto back = parse_header(written.substr(8), 32);
  CHECK(back.metadata == metadata);
  REQUIRE(back.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(back.tensors[i].name == tensors[i].name);
    CHECK(back.tensors[i].spec == tensors[i].spec);
    CHECK(back.tensors[i].begin == tensors[i].begin);
    CHECK(back.tensors[i].end == tensors[i].end);
  }
  CHECK(write_header({}, {}) == with_length("{}      ", 8));
  tensors[0].name = "\xff";
  CHECK_THROWS_WITH(write_header(tensors, {}), Contains("not UTF-8"));
  tensors[0].name = "__metadata__";
  CHECK_THROWS_WITH(write_header(tensors, {}), Contains("__metadata__"));
}

TEST_CASE("a header's length is checked before memory is taken") {
  clnet::test::Folder folder;
  const auto text = [&](const std::string& content) {
    const auto path = folder.write("file", content);
    try {
      read_header(InputFile(path));
    } catch (const FileError& e) {
      CHECK_THAT(e.what(), Catch::StartsWith(path.string() + ": "));
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(text(""), Contains("has 0 bytes, too few"));
  CHECK_THAT(text("1234567"), Contains("has 7 bytes, too few"));
  CHECK_THAT(text(with_length("{}", 0)), Contains("not a JSON object"));
  CHECK_THAT(text(with_length("{}", 3)), Contains("is 3, expected at most 2"));
  CHECK_THAT(text(with_length("{}", (1ull << 63) + 5)), Contains("expected at most 2"));
  CHECK_THAT(text(with_length("{}", ~0ull)), Contains("expected at most 2"));
  CHECK_THAT(text(with_length("{}", 2, "x")), Contains("end at byte 0 of 1"));
  // A sparse file of 1 TiB that claims 200 MB of header.
  const auto sparse = folder.write("sparse", with_length("{}", 200'000'000));
  fs::resize_file(sparse, 1ull << 40);
  CHECK_THROWS_WITH(read_header(InputFile(sparse)), Contains("expected at most 100000000"));

  const auto json = one("U8", "[3]", "[0,3]");
  CHECK(read_header(InputFile(folder.write("good", with_length(json, json.size(), "abc")))).data_offset == 8 + json.size());
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(folder / "fifo"), Contains("not a regular file"));
}

TEST_CASE("the malformed safetensors of the acceptance data") {
  const auto bad = acceptance("bad");
  if (!bad) return;
  const auto manifest = nlohmann::json::parse(std::ifstream(*bad / "manifest.json"));
  int cases = 0;
  for (const auto& entry : manifest["cases"]) {
    if (entry["kind"] != "safetensors") continue;
    ++cases;
    const std::string path = *bad / entry["path"].get<std::string>(), expect = entry["expect"];
    INFO(path << ": " << entry["what"]);
    std::string text;
    const auto begin = std::chrono::steady_clock::now();
    try {
      read_header(InputFile(path));
    } catch (const FileError& e) {
      text = e.what();
      CHECK_THAT(text, Catch::StartsWith(path));
      CHECK(text.size() < path.size() + 400);
      CHECK(text.find('\n') == std::string::npos);
    }
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
          entry.value("max_seconds", manifest["limits"]["max_seconds"].get<double>()));
    if (expect == "ok") CHECK(text == "");
    if (expect == "error") CHECK(text != "");
  }
  CHECK(cases > 0);
}

}  // namespace
}  // namespace clnet::io
