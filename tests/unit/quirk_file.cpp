// What the self-test found wrong: kept for one device and state of the kernels, and not chosen from then on.
#include "lib/cl/quirk_file.h"

#include <catch2/catch.hpp>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/exec/choose/solver.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;

namespace {

DeviceInfo some_device() {
  DeviceInfo info;
  info.name = "Some Device";
  info.driver_version = "1.0";
  info.max_work_group_size = 1024;
  info.local_memory = 65536;
  info.max_allocation = 1 << 30;
  return info;
}

}  // namespace

TEST_CASE("found quirks are kept for one device, driver and vector width") {
  const clnet::test::Folder folder;
  const clnet::test::Variable cache("CLNET_CACHE_DIR", (folder / "deeper").c_str());
  const auto info = some_device();
  const auto path = quirk_file(info).value();
  CHECK(read_quirks(path, info).broken.empty());
  write_quirks(path, info,
               {{{"matmul", "cpu", "wrong"}}, {{"max_work_group_size", 128}, {"local_memory", 1 << 20}, {"max_allocation", 0}}});
  const auto found = read_quirks(path, info);
  REQUIRE(found.broken.size() == 1);
  CHECK(found.broken[0].op == "matmul");
  CHECK(found.broken[0].solver == "cpu");
  CHECK(found.broken[0].reason == "wrong");
  CHECK(found.limits.at("max_work_group_size") == 128);

  auto corrected = info;
  apply_found_quirks(corrected);
  CHECK(corrected.broken_solvers == std::vector<std::string>{"matmul:cpu"});
  CHECK(corrected.max_work_group_size == 128);
  CHECK(corrected.local_memory == info.local_memory);  // never more than the device says
  CHECK(corrected.max_allocation == info.max_allocation);

  for (auto change : {+[](DeviceInfo& other) { other.name = "Another"; }, +[](DeviceInfo& other) { other.driver_version = "2"; },
                      +[](DeviceInfo& other) { other.native_float_width = 8; }}) {
    auto other = info;
    change(other);
    CHECK(quirk_file(other) != quirk_file(info));
    CHECK(read_quirks(path, other).broken.empty());
  }
  // Replaced kernels are other kernels.
  folder.write("softmax_cpu.cl", "kernel void softmax_cpu() {}");
  const clnet::test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  CHECK(quirk_file(info) == path);
  CHECK(read_quirks(path, info).broken.empty());
}

TEST_CASE("a damaged file of quirks says nothing") {
  const clnet::test::Folder folder;
  const auto info = some_device();
  const auto path = (folder / "quirks.json").string();
  write_quirks(path, info, {{{"matmul", "cpu", "wrong"}}, {}});
  const auto whole = file::read(path, 10000);
  for (std::size_t length = 0; length < whole.size() - 2; length += 5) {
    file::replace(path, whole.substr(0, length));
    CHECK(read_quirks(path, info).broken.empty());
  }
  for (const char* content : {"[1]", R"({"for": 3})", "\xff", "{}"}) {
    file::replace(path, content);
    CHECK(read_quirks(path, info).broken.empty());
  }
  // Numbers that are no limits: the file is left out whole, in one line.
  write_quirks(path, info, {{{"matmul", "cpu", "wrong"}}, {{"local_memory", 12345}}});
  const auto good = file::read(path, 10000);
  REQUIRE(read_quirks(path, info).limits.at("local_memory") == 12345);
  for (const std::string number :
       {"-1", "-9223372036854775809", "18446744073709551616", "99999999999999999999999", "1e30", "1.5", "\"1\"", "null", "[1]"}) {
    INFO(number);
    auto text = good;
    file::replace(path, text.replace(text.find("12345"), 5, number));
    const auto read = read_quirks(path, info);
    CHECK(read.broken.empty());
    CHECK(read.limits.empty());
  }
  file::replace(path, std::string(good).replace(good.find("12345"), 5, "18446744073709551615"));
  CHECK(read_quirks(path, info).limits.at("local_memory") == 18446744073709551615U);
  CHECK_THROWS_AS(write_quirks(folder / "quirks.json/file", info, {}), FileError);
}

TEST_CASE("a solver that is broken on the device is not chosen, but for the reference solver and for who insists") {
  using Problem = int;
  const auto takes = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> { return std::nullopt; };
  const auto nothing = [](const Problem&, exec::Recorder&) {};
  const exec::SolverList<Problem> list("quirk-test",
                                       {{"first", takes, nothing}, {"second", takes, nothing}, {"reference", takes, nothing}});
  auto info = some_device();
  CHECK(list.choose(1, info).solver->name == "first");
  info.broken_solvers = {"quirk-test:first", "other:second"};
  CHECK(list.choose(1, info).solver->name == "second");
  info.broken_solvers = {"quirk-test:first", "quirk-test:second", "quirk-test:reference"};
  CHECK(list.choose(1, info).solver->name == "reference");
  {
    const exec::ForceSolver force("quirk-test", "first");
    CHECK(list.choose(1, info).solver->name == "first");
  }
}
