// A file of each format that needs no device is read here; an unknown version is one line. The kept files' identities ("for") are
// replaced by this machine's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/cl/capability_probe.h"
#include "lib/cl/disk_cache.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/vector_rate.h"
#include "lib/exec/tune/tuning.h"
#include "lib/pocl/notes.h"
#include "tests/support/captured.h"
#include "tests/support/kept_file.h"
#include "tests/support/temporary.h"

namespace clnet {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

constexpr const char* of_this_device = "THIS DEVICE";

DeviceInfo kept_device() {
  DeviceInfo info;
  info.name = "Some Device";
  info.driver_version = "1.0";
  return info;
}

/// Replaces the value of "for" in a JSON file of the cache.
std::string with_identity(const std::string& json, const std::string& identity) {
  const std::string begin = "\"for\": \"";
  const auto at = json.find(begin) + begin.size();
  return json.substr(0, at) + identity + json.substr(json.find('"', at));
}

int lines_in(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST_CASE("kept tuning files are read, and unknown versions are ignored") {
  const test::Folder folder;
  const auto content = test::kept_file("tuning-1.json", [](const fs::path& path) {
    fs::remove(path);
    exec::TuningFile file(path.string(), of_this_device);
    file.set("matmul 4x4", {"cpu{lanes=8}", 0.25});
    file.save();
  });
  const exec::TuningFile file(folder.write("a.json", content).string(), of_this_device);
  REQUIRE(file.find("matmul 4x4"));
  CHECK(file.find("matmul 4x4")->choice == "cpu{lanes=8}");
  const auto newer = folder.write("b.json", test::replaced(content, "clnet tuning 1", "clnet tuning 9"));
  CHECK(exec::TuningFile(newer.string(), of_this_device).empty());
}

TEST_CASE("kept findings of a self-test are read, and an unknown version is one line") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto info = kept_device();
  const auto content = test::kept_file("quirks-1.json", [&](const fs::path& path) {
    ocl::write_quirks(path.string(), info, {{{"matmul", "cpu", "wrong"}}, {{"local_memory", 1024}}});
    file::replace(path, with_identity(test::content(path), of_this_device));
  });
  // This machine's identity is in a file that it writes.
  const auto own = (folder / "own.json").string();
  ocl::write_quirks(own, info, {});
  const auto text = test::content(own), begin = std::string("\"for\": \"");
  const auto at = text.find(begin) + begin.size();
  const auto mine = with_identity(content, text.substr(at, text.find('"', at) - at));
  const auto found = ocl::read_quirks(folder.write("a.json", mine).string(), info);
  REQUIRE(found.broken.size() == 1);
  CHECK(found.broken[0].solver == "cpu");
  CHECK(found.limits.at("local_memory") == 1024);
  const auto newer = folder.write("b.json", test::replaced(mine, "clnet quirks 1", "clnet quirks 9")).string();
  const auto said = test::written_on_stderr([&] { CHECK(ocl::read_quirks(newer, info).broken.empty()); });
  CHECK_THAT(said, Contains("b.json: is of the format \"clnet quirks 9\", expected 'clnet quirks 1'"));
  CHECK(lines_in(said) == 1);
}

TEST_CASE("kept results of probes and measurements are read, and unknown versions are not") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto info = kept_device();
  const auto probe = test::kept_file("probe-1.json", [](const fs::path& path) {
    file::replace(path, "{\n \"fault\": \"wrong sums\",\n \"for\": \"THIS DEVICE\",\n \"format\": \"clnet probe 1\"\n}\n");
  });
  const auto probe_path = ocl::probe_file(info, "sub-groups").value();
  file::replace(probe_path, with_identity(probe, ocl::identity(info)));
  CHECK(ocl::kept_capability_fault(info, "sub-groups") == "wrong sums");
  auto other = info;
  other.name = "Another Device";
  file::replace(ocl::probe_file(other, "sub-groups").value(),
                test::replaced(with_identity(probe, ocl::identity(other)), "probe 1", "probe 9"));
  CHECK_FALSE(ocl::kept_capability_fault(other, "sub-groups"));

  const auto rate = test::kept_file("vector-rate-1.json", [&](const fs::path& path) {
    CHECK(ocl::kept_vector_rate(info, ocl::VectorRate::half) == ocl::VectorRate::half);
    file::replace(path, test::content(ocl::vector_rate_file(info).value()));
  });
  file::replace(ocl::vector_rate_file(info).value(), rate);
  CHECK(ocl::known_vector_rate(info) == ocl::VectorRate::half);
  file::replace(ocl::vector_rate_file(info).value(), test::replaced(rate, "vector rate 1", "vector rate 9"));
  CHECK_FALSE(ocl::known_vector_rate(info));
}

TEST_CASE("a kept program and kept notes of kernels are read, and unknown versions begin anew") {
  const test::Folder folder;
  const ocl::DiskCache programs(folder.path().string());
  const auto program = test::kept_file("program-1", [&](const fs::path& path) {
    programs.store("a key", "a program");
    file::replace(path, test::content(programs.path("a key")));
  });
  file::replace(programs.path("a key"), program);
  CHECK(programs.load("a key") == "a program");
  file::replace(programs.path("a key"), test::replaced(program, "clnet-program-1", "clnet-program-9"));
  CHECK_FALSE(programs.load("a key"));

  const auto notes = test::kept_file("kernels-1", [](const fs::path& path) {
    fs::remove(path);
    pocl::Notes made(path.string());
    made.add("0123456789abcdef", ocl::Noted::compiled);
    made.add("fedcba9876543210", ocl::Noted::crashed);
  });
  const auto path = folder.write("notes", notes).string();
  CHECK(pocl::Notes(path).of("0123456789abcdef") == ocl::Noted::compiled);
  CHECK(pocl::Notes(path).of("fedcba9876543210") == ocl::Noted::crashed);
  folder.write("notes", test::replaced(notes, "kernels 1", "kernels 9"));
  CHECK(pocl::Notes(path).of("0123456789abcdef") == ocl::Noted::nothing);
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a kept tokenizer is read, and an unknown version is one line") {
  const test::Folder folder;
  const auto content = test::kept_file("tokenizer-1", [](const fs::path& path) { data::Tokenizer::words("a b a").save(path); });
  CHECK(data::Tokenizer::load(folder.write("a", content)).size() == 3);
  CHECK_THROWS_WITH(data::Tokenizer::load(folder.write("b", test::replaced(content, "tokenizer 1", "tokenizer 9"))),
                    Catch::StartsWith((folder / "b").string()) && Contains("9"));
}

}  // namespace
}  // namespace clnet
