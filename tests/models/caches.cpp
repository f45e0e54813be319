// What is kept on disk: clnet-info --cache and --prepare, clnet-bench --programs and --cold.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// Folders of this test's own in the place of all caches.
struct Caches {
  clnet::test::Folder folder;
  std::vector<std::string> environment;
  Caches() {
    for (const char* name : {"CLNET_CACHE_DIR", "POCL_CACHE_DIR", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR", "NEO_CACHE_DIR"}) {
      fs::create_directory(folder / name);
      environment.push_back(std::string(name) + "=" + (folder / name).string());
    }
    environment.emplace_back("CLNET_BUILD_PROCESSES=2");
  }
  Outcome info(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), CLNET_INFO);
    return Process(folder.path(), arguments, environment).wait();
  }
  nlohmann::json listed(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--cache", "--json"});
    const auto outcome = info(more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out);
  }
  std::uint64_t programs() const {
    std::uint64_t sum = 0;
    const auto all = listed();
    for (const auto& cache : all["caches"]) sum += cache["programs"].get<std::uint64_t>();
    return sum;
  }
};

}  // namespace

TEST_CASE("clnet-info shows the caches, and clears what can be compiled again") {
  const Caches caches;
  fs::create_directories(caches.folder / "CLNET_CACHE_DIR/programs");
  fs::create_directories(caches.folder / "POCL_CACHE_DIR/AB/CDOPABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP/kernel/1-1-1");
  caches.folder.write("CLNET_CACHE_DIR/programs/0123.clnet-program", "program");
  caches.folder.write("CLNET_CACHE_DIR/tuning-0123.json", "measured");
  caches.folder.write("CLNET_CACHE_DIR/clnet-kernels", "noted");
  caches.folder.write("POCL_CACHE_DIR/AB/CDOPABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP/program.bc", "program");
  caches.folder.write("POCL_CACHE_DIR/AB/CDOPABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP/kernel/1-1-1/kernel.so", "kernel");
  caches.folder.write("POCL_CACHE_DIR/somebody's file", "else");
  for (const char* folder : {"CD", "DB/HOLIDAY"}) {
    fs::create_directories(caches.folder / "POCL_CACHE_DIR" / folder);
    caches.folder.write(std::string("POCL_CACHE_DIR/") + folder + "/photo.jpg", "somebody's");
  }
  caches.folder.write("POCL_CACHE_DIR/tempfile_aB3dE9.cl", "left behind");
  // None of these is a cache's own, whatever their names begin with.
  const std::vector<std::string> others{"POCL_CACHE_DIR/tempfiles-of-mine/thesis", "POCL_CACHE_DIR/tempfile_2026/thesis",
                                        "POCL_CACHE_DIR/tempfile_report.txt",      "POCL_CACHE_DIR/clnet-kernels/a.cl",
                                        "CLNET_CACHE_DIR/mine/clnet-kernels",      "CLNET_CACHE_DIR/mine/my.clnet-program"};
  for (const auto& other : others) {
    fs::create_directories((caches.folder / other).parent_path());
    caches.folder.write(other, "mine");
  }
  fs::create_directory(caches.folder / "POCL_CACHE_DIR/AC");
  caches.folder.write("CUDA_CACHE_PATH/index", "12345");
  const auto before = caches.listed()["caches"];
  // Mesa's would lie in a folder of its own within the one that is given.
  REQUIRE(before.size() == 4);
  CHECK(before[0]["whose"] == "clnet");
  CHECK(before[0]["programs"] == 1);
  CHECK(before[0]["other_files"] == 4);
  CHECK(before[0]["bytes"] == 7 + 8 + 5 + 4 + 4);
  CHECK(before[1]["whose"] == "PoCL");
  CHECK(before[1]["programs"] == 1);
  CHECK(before[1]["kernels"] == 1);
  CHECK(before[2]["folder"] == (caches.folder / "CUDA_CACHE_PATH").string());
  CHECK(before[2]["bytes"] == 5);
  CHECK_THAT(caches.info({"--cache"}).out, Contains("PoCL") && Contains("1 program, 1 kernel"));

  const auto cleared = caches.listed({"--clear"});
  CHECK(cleared["removed"] >= 5);
  CHECK(cleared["caches"][0]["programs"] == 0);
  CHECK(cleared["caches"][1]["kernels"] == 0);
  CHECK(fs::exists(caches.folder / "CLNET_CACHE_DIR/tuning-0123.json"));
  CHECK(fs::exists(caches.folder / "POCL_CACHE_DIR/CD/photo.jpg"));
  CHECK(fs::exists(caches.folder / "POCL_CACHE_DIR/DB/HOLIDAY/photo.jpg"));
  CHECK_FALSE(fs::exists(caches.folder / "CLNET_CACHE_DIR/clnet-kernels"));
  CHECK_FALSE(fs::exists(caches.folder / "POCL_CACHE_DIR/tempfile_aB3dE9.cl"));
  for (const auto& other : others) CHECK(fs::exists(caches.folder / other));
  CHECK(fs::exists(caches.folder / "POCL_CACHE_DIR/AC"));
  CHECK(fs::exists(caches.folder / "POCL_CACHE_DIR/somebody's file"));
  CHECK(fs::exists(caches.folder / "CUDA_CACHE_PATH/index"));
  CHECK(caches.listed({"--clear"})["removed"] == 0);
  fs::remove_all(caches.folder / "POCL_CACHE_DIR/clnet-kernels");
  caches.folder.write("POCL_CACHE_DIR/clnet-kernels", "noted");
  CHECK(caches.listed({"--clear"})["removed"] == 1);
}

TEST_CASE("clnet-info compiles ahead what a network or a program needs") {
  const Caches caches;
  const auto first = caches.info({"--prepare", "mlp:1x8x8:16"});
  INFO(first.out << first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Contains(" new programs, in "));
  const auto programs = caches.programs();
  CHECK(programs > 3);
  CHECK_THAT(caches.info({"--prepare", "mlp:1x8x8:16"}).out, Contains("no program was new"));
  // Whoever trains it then finds everything.
  write_idx_dataset(caches.folder / "data", 16, 16);
  std::vector<std::string> words{"--prepare", CLNET_TRAIN, "--data", "data", "--model", "mlp", "--batch-size", "16"};
  words.insert(words.end(), {"--steps", "1"});
  const auto program = caches.info(words);
  INFO(program.out << program.err);
  REQUIRE(program.code == 0);
  CHECK_THAT(program.out, Contains("test accuracy") && Contains("no program was new"));
  CHECK(caches.programs() == programs);
}

TEST_CASE("clnet-info --prepare refuses what it cannot compile") {
  const Caches caches;
  const auto refused = [&](std::vector<std::string> words, int code, const std::string& text) {
    words.insert(words.begin(), "--prepare");
    const auto outcome = caches.info(words);
    CHECK(outcome.code == code);
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({}, 2, "--prepare: expected the name of a network");
  refused({"no-such-network"}, 1, "is none of the networks mlp, ");
  refused({"cnn:28x28"}, 1, "'28x28' is not of the form CxHxW");
  refused({"cnn:1x28xa"}, 1, "'a' is not a size");
  refused({"char-gpt:1x28x28"}, 1, "takes no images");
  refused({"/bin/false"}, 1, "ended with 1");
  refused({"mlp", "lenet5"}, 1, "nothing may follow the name of a network, as 'lenet5' does");
  CHECK(caches.info({"--clear"}).code == 2);
  CHECK(caches.info({"--cache", "--prepare", "cnn"}).code == 2);
}

TEST_CASE("clnet-bench counts an item's programs, and measures the first step of a process that finds none") {
  const Caches caches;
  const auto bench = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CLNET_BENCH);
    arguments.insert(arguments.end(), {"--json", "out.json"});
    const auto outcome = Process(caches.folder.path(), arguments, caches.environment).wait();
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(content(caches.folder / "out.json")).at("items")[0];
  };
  const auto counted = bench({"--programs", "elementwise-mish-1m"});
  CHECK(counted["name"] == "elementwise-mish-1m");
  CHECK(counted["programs"] >= 1);
  CHECK(bench({"--programs", "elementwise-mish-1m"}) == counted);
  const auto cold = bench({"--cold", "elementwise-mish-1m"});
  CHECK(cold["programs"] >= 1);
  CHECK(cold["warm_s"] > 0);
  CHECK(cold["cold_s"] > cold["warm_s"]);

  const auto code = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CLNET_BENCH);
    return Process(caches.folder.path(), arguments, caches.environment).wait().code;
  };
  CHECK(code({"--programs"}) == 2);
  CHECK(code({"--cold", "no-such-item"}) == 2);
  CHECK(code({"--cold", "--programs", "adam-25m"}) == 2);
}

TEST_CASE("how fast vectors are is measured without a kernel where PoCL runs them") {
  const Caches caches;
  // Its lanes depend on it.
  const auto outcome =
      Process(caches.folder.path(), {CLNET_BENCH, "--programs", "depthwise-192-28-b16-forward"}, caches.environment).wait();
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  std::size_t kept = 0, probes = 0, kernels = 0;
  for (const auto& entry : fs::recursive_directory_iterator(caches.folder.path())) {
    const auto name = entry.path().filename().string();
    kept += name.starts_with("vector-rate-");
    probes += name == "multiply_16";
    kernels += name.starts_with("conv2d_depthwise");
  }
  if (kept == 0 || kernels == 0) return skip("PoCL on vectors of 16 lanes");
  CHECK(probes == 0);
}
