#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/cl/context.h"
#include "lib/cl/disk_cache.h"
#include "lib/cl/quirks.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;
namespace fs = std::filesystem;

namespace {

const ProgramSource answer{"answer", "kernel void answer(global int* x) { x[0] = VALUE; }", {{"VALUE", "(40 + 2)"}}};

ProgramCache empty_programs() {
  const auto context = context_of(Device::current());
  return {context->context(), context->device(), context->info()};
}

int run(ProgramCache& programs, const ProgramSource& program) {
  const auto context = context_of(Device::current());
  const BufferPtr out = context->memory().allocate(4, "out");
  context->fill(*out, 0, out->bytes(), 0xff);
  cl::Kernel kernel = programs.kernel(program, "answer");
  kernel.setArg(0, out->memory());
  context->launch(kernel, cl::NDRange(1), cl::NullRange, {"answer", "", 4, 0});
  int value = 0;
  context->read(*out, 0, &value, 4);
  return value;
}

/// A cache folder and the mode that uses it on every device.
struct Cache {
  clnet::test::Folder folder;
  test::Variable directory{"CLNET_CACHE_DIR", folder.path().c_str()};
  test::Variable mode{"CLNET_CACHE", "force"};
  fs::path programs() const { return folder.path() / "programs"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    if (fs::exists(programs())) {
      for (const auto& entry : fs::directory_iterator(programs())) result.push_back(entry.path());
    }
    return result;
  }
};

}  // namespace

TEST_CASE("equal programs are built once, different ones are not mixed up") {
  const test::Variable off("CLNET_CACHE", "off");
  ProgramCache programs = empty_programs();
  CHECK(run(programs, answer) == 42);
  CHECK(run(programs, answer) == 42);
  CHECK(programs.built() == 1);
  ProgramSource other = answer;
  other.defines.at("VALUE") = std::to_string(7);
  CHECK(run(programs, other) == 7);
  CHECK(programs.built() == 2);
  CHECK(programs.loaded() == 0);
}

TEST_CASE("threads that want the same program build it once") {
  if (!Device::current().info().thread_safe) return clnet::test::skip("the device takes one thread only");
  const test::Variable off("CLNET_CACHE", "off");
  ProgramCache programs = empty_programs();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      ProgramSource program = answer;
      program.defines["VALUE"] = std::to_string(100 + i % 2);
      programs.prepare(program);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(programs.built() == 2);
}

TEST_CASE("a program that does not compile is an error with log and numbered source") {
  ProgramCache programs = empty_programs();
  const ProgramSource wrong{"wrong", "kernel void answer(global int* x) {\n  x[0] = undeclared_name;\n}", {{"A", "1"}}};
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      programs.prepare(wrong);
      FAIL("expected an error");
    } catch (const BuildError& error) {
      const std::string text = error.what();
      CHECK(text.find("program wrong does not compile") == 0);
      CHECK(text.find("CL_BUILD_PROGRAM_FAILURE") != std::string::npos);
      // A line more comes first where halves are converted by hand.
      const int line = text.find("    1 | #define CLNET_HALVES_BY_HAND\n") == std::string::npos ? 1 : 2;
      CHECK_THAT(text, Catch::Contains(fmt::format("    {} | #define A 1\n    {} | kernel void answer", line, line + 1)));
      CHECK_THAT(text, Catch::Contains(fmt::format("    {} |   x[0] = undeclared_name;", line + 2)));
      // Once more than in the source: the compiler's log.
      const auto first = text.find("undeclared_name");
      CHECK(text.find("undeclared_name", first + 1) != std::string::npos);
    }
  }
  CHECK(programs.built() == 0);
}

TEST_CASE("a function that clnet does not declare comes from the compiler's own declarations") {
  ProgramCache programs = empty_programs();
  const auto unknown = std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  CHECK(run(programs, {"rare",
                       "kernel void answer(global int* x) { x[0] = (int)popcount(VALUE); }",
                       {{"VALUE", "255u"}, {"NO_CACHE_KNOWS", unknown}},
                       true}) == 8);
  CHECK(programs.built() == 1);
}

TEST_CASE("a compiler's warnings do not reach the user's screen") {
  // PoCL says "1 warning generated." of its own accord. The value makes a program that no cache knows.
  const auto value = std::chrono::steady_clock::now().time_since_epoch().count() % 1000000007;
  auto programs = empty_programs();
  const clnet::test::Folder folder;
  const auto path = folder.write("stderr", "");
  std::fflush(stderr);
  const int screen = ::dup(2), into = ::open(path.c_str(), O_WRONLY);
  ::dup2(into, 2);
  const int got = run(
      programs,
      {"answer", "kernel void answer(global int* x) { x[0] = x[0] == x[0] ? VALUE : 0; }", {{"VALUE", std::to_string(value)}}});
  std::fflush(stderr);
  ::dup2(screen, 2);
  ::close(screen);
  ::close(into);
  CHECK(got == value);
  CHECK(file::read(path, 1000).empty());
}

TEST_CASE("a kernel that a program does not have is an error that names both") {
  ProgramCache programs = empty_programs();
  CHECK_THROWS_WITH(programs.kernel(answer, "question"),
                    Catch::StartsWith("kernel question of program answer: CL_INVALID_KERNEL_NAME"));
  CHECK_THROWS_AS(programs.prepare({"no_such_file", "", {}}), Unsupported);
}

TEST_CASE("a kernel that would need more local memory than there is does not get to a driver that aborts") {
  const auto& info = Device::current().info();
  if (!has_quirk(info, "local-memory-aborts")) return clnet::test::skip("only PoCL aborts there");
  const auto program = [](const char* name, std::size_t count) {
    return ProgramSource{name,
                         "kernel void f(global float* x) { local float t[N]; const uint i = get_local_id(0); t[i] = x[i];"
                         "barrier(CLK_LOCAL_MEM_FENCE); x[i] = t[N - 1 - i]; }",
                         {{"N", std::to_string(count)}}};
  };
  ProgramCache programs = empty_programs();
  const auto small = programs.kernel(program("small", 64), "f");
  const auto told = small.getWorkGroupInfo<CL_KERNEL_LOCAL_MEM_SIZE>(context_of(Device::current())->device());
  if (told == 0) return clnet::test::skip("PoCL 6.0 does not tell how much a kernel uses");
  CHECK_THROWS_WITH(programs.kernel(program("large", info.local_memory / 4 + 1), "f"),
                    Catch::Contains("kernel f of program large uses"));
}

TEST_CASE("a kernel file on disk is used, with its includes") {
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  file::replace(folder / "value.clh", "#define SUM (VALUE + 1)\n");
  file::replace(folder / "answer_from_disk.cl", "#include \"value.clh\"\nkernel void answer(global int* x) { x[0] = SUM; }");
  ProgramCache programs = empty_programs();
  CHECK(run(programs, {"answer_from_disk", "", {{"VALUE", "12"}}}) == 13);
}

TEST_CASE("a built program is kept on disk and loaded by the next process") {
  const Cache cache;
  ProgramCache first = empty_programs();
  CHECK(run(first, answer) == 42);
  CHECK(first.built() == 1);
  REQUIRE(cache.files().size() == 1);
  ProgramCache second = empty_programs();
  CHECK(run(second, answer) == 42);
  CHECK(second.built() == 0);
  CHECK(second.loaded() == 1);
}

TEST_CASE("a damaged cache file is ignored and written again") {
  const Cache cache;
  {
    ProgramCache programs = empty_programs();
    programs.prepare(answer);
  }
  REQUIRE(cache.files().size() == 1);
  const std::string path = cache.files()[0].string(), good = file::read(path, 1 << 28);
  std::vector<std::string> damages{"", "x", good.substr(0, good.size() / 2), good + good, std::string(good.size(), '\xff')};
  for (const std::size_t at :
       {std::size_t{3}, std::size_t{18}, std::size_t{30}, std::size_t{60}, good.size() / 2, good.size() - 1}) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    damages.push_back(changed);
  }
  for (const std::string& damage : damages) {
    file::replace(path, damage);
    ProgramCache programs = empty_programs();
    CHECK(run(programs, answer) == 42);
    CHECK(programs.built() == 1);
    CHECK(file::read(path, 1 << 28).size() > 100);
    ProgramCache after = empty_programs();
    after.prepare(answer);
    CHECK(after.loaded() == 1);
  }
}

TEST_CASE("a cache file that is whole but not ours, or that the driver refuses, is ignored") {
  const Cache cache;
  {
    ProgramCache programs = empty_programs();
    programs.prepare(answer);
  }
  const fs::path path = cache.files().at(0);
  const DiskCache disk(cache.programs().string());
  // Stored under another key, then put where ours is looked for: as if two keys had one hash.
  disk.store("another key", "another binary");
  fs::rename(disk.path("another key"), path);
  {
    ProgramCache programs = empty_programs();
    CHECK(run(programs, answer) == 42);
    CHECK(programs.built() == 1);
  }
  if (has_quirk(Device::current().info(), "rusticl-foreign-binary"))
    return clnet::test::skip("the driver aborts when it is given a binary that is none");
  // The right key with a binary that is none.
  std::string text = file::read(path, 1 << 28);
  const auto number = [&](std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value |= std::uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
    return value;
  };
  const std::string key = text.substr(32, number(16));
  disk.store(key, "not a program");
  REQUIRE(disk.load(key) == "not a program");
  ProgramCache programs = empty_programs();
  CHECK(run(programs, answer) == 42);
  CHECK(programs.built() == 1);
  CHECK(programs.loaded() == 0);
}

TEST_CASE("a cache folder that cannot be written is no error") {
  const Cache cache;
  // A file where the folder should be: fails for root as well.
  file::replace(cache.programs(), "in the way");
  ProgramCache programs = empty_programs();
  CHECK(run(programs, answer) == 42);
  CHECK(programs.built() == 1);
  CHECK(file::read(cache.programs(), 100) == "in the way");
}

TEST_CASE("the disk is left alone when switched off, and where the driver keeps programs itself") {
  const Cache cache;
  {
    const test::Variable off("CLNET_CACHE", "off");
    ProgramCache programs = empty_programs();
    programs.prepare(answer);
  }
  const auto context = context_of(Device::current());
  {
    const test::Variable on("CLNET_CACHE", "on");
    DeviceInfo info = context->info();
    info.caches_programs = true;
    ProgramCache programs(context->context(), context->device(), info);
    programs.prepare(answer);
    CHECK(cache.files().empty());
    info.caches_programs = false;
    ProgramCache keeping(context->context(), context->device(), info);
    keeping.prepare(answer);
    CHECK(cache.files().size() == 1);
  }
  const test::Variable wrong("CLNET_CACHE", "maybe");
  CHECK_THROWS_WITH(empty_programs(), "CLNET_CACHE=maybe: expected on, off or force");
}

TEST_CASE("another driver does not get the binary") {
  const Cache cache;
  const auto context = context_of(Device::current());
  DeviceInfo info = context->info();
  ProgramCache(context->context(), context->device(), info).prepare(answer);
  info.driver_version += "-newer";
  ProgramCache newer(context->context(), context->device(), info);
  newer.prepare(answer);
  CHECK(newer.built() == 1);
  CHECK(cache.files().size() == 2);
}
