// clnet-bench: its list, its file, the comparison, and what it refuses.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/models/process.h"
#include "tests/models/small_disk.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using Catch::Matchers::Contains;

namespace {

Outcome bench(const clnet::test::Folder& folder, std::vector<std::string> arguments,
              const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), CLNET_BENCH);
  return Process(folder.path(), std::move(arguments), environment).wait();
}

}  // namespace

TEST_CASE("clnet-bench lists the items that comparisons are made of") {
  const clnet::test::Folder folder;
  const auto outcome = bench(folder, {"--list"});
  CHECK(outcome.code == 0);
  for (const char* name : {"matmul-1024",
                           "conv-3-64-224-b16-forward",
                           "conv-512-512-7-b16-backward-weights",
                           "conv1x1-64-256-56-b16-forward",
                           "depthwise-144-56-b16-forward",
                           "keras-cnn-train-b128",
                           "cnn-train-b256",
                           "resnet18-infer-b1",
                           "resnet18-train-b16",
                           "mobilenetv2-infer-b16",
                           "mobilenetv2-train-b16",
                           "matmul-128-b64",
                           "maxpool2s2-64-112-b16-backward",
                           "adaptive-avgpool7-64-112-b16-forward",
                           "global-avgpool-64-112-b16-backward",
                           "batch-norm-64-56-b16-train",
                           "layer-norm-4096-1024-train",
                           "elementwise-mish-1m",
                           "dropout-1m",
                           "gather-1-1m",
                           "embedding-50000-512-b8192-backward",
                           "transformer-decode-t64-b8",
                           "transformer-decode-t64-b8-anew",
                           "adam-25m"})
    CHECK_THAT(outcome.out, Contains(std::string(name) + "\n"));
}

TEST_CASE("who chose a solver, in which configuration and instead of which others, is told") {
  const clnet::test::Folder folder;
  const auto chosen = [&](std::vector<std::string> environment) {
    environment.insert(environment.end(), {"CLNET_DEBUG=3", "CLNET_CACHE_DIR=" + (folder / "cache").string()});
    const auto outcome = bench(folder, {"matmul-256", "--seconds", "0.01"}, environment);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    std::istringstream lines(outcome.err);
    std::string result;
    for (std::string line; std::getline(lines, line);)
      if (line.find("matmul: solver ") != std::string::npos && line.find("refuses") == std::string::npos) result = line;
    return result;
  };
  const auto by_model = chosen({});
  CHECK_THAT(by_model, Contains("}; instead of {"));
  CHECK_THAT(by_model, !Contains("measured") && !Contains("forced"));
  CHECK_THAT(chosen({"CLNET_SOLVER=matmul:gpu{m=16}"}), Contains("matmul: solver gpu{m=16,") && Contains(", as is forced"));
  CHECK_THAT(chosen({"CLNET_SOLVER=matmul:direct"}), Contains("matmul: solver direct, as is forced"));
  chosen({"CLNET_TUNE=1"});
  CHECK_THAT(chosen({}), Contains(", as was measured"));
  CHECK_THAT(chosen({"CLNET_SOLVER=matmul:direct"}), Contains("matmul: solver direct, as is forced"));
}

TEST_CASE("names of solvers and variables from before are errors that say the new ones") {
  const clnet::test::Folder folder;
  for (const auto& [variable, error] :
       {std::pair{"CLNET_SOLVER=matmul:cpu_packed{lanes=8}",
                  "CLNET_SOLVER: matmul's solver 'cpu_packed' is called 'packed_cpu' now"},
        {"CLNET_CHAINS=always", "the variable is called CLNET_LAUNCH_BATCHES now: CLNET_LAUNCH_BATCHES=force"}}) {
    const auto outcome = bench(folder, {"matmul-256", "--seconds", "0.01"}, {variable});
    CHECK(outcome.code != 0);
    CHECK_THAT(outcome.err, Contains(error));
  }
}

TEST_CASE("clnet-bench explains what passes 100 %") {
  const clnet::test::Folder folder;
  CHECK_THAT(bench(folder, {"--help"}).out, Contains("Winograd's convolutions need less, and may pass 100 %"));
  const auto outcome = bench(folder, {"conv-64-64-56-b16-forward", "matmul-256", "--seconds", "0.01"});
  INFO(outcome.out);
  REQUIRE(outcome.code == 0);
  std::istringstream words(outcome.out);
  bool above = false;
  for (std::string word, number; words >> word; number = word)
    if (word == "%" && std::atof(number.c_str()) > 100) above = true;
  CHECK((outcome.out.find("\nabove 100 %: ") != std::string::npos) == above);
}

TEST_CASE("clnet-bench measures several devices at once") {
  const clnet::test::Folder folder;
  const auto outcome = bench(folder, {"--lanes", "0:0,0:1", "matmul-256", "--seconds", "0.01"}, {"POCL_DEVICES=pthread basic"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("matmul-256: together ") && Contains("threads waited 0 times for one another"));
  const auto twice = bench(folder, {"--lanes", "0:0,0:0", "matmul-256"});
  CHECK(twice.code == 1);
  CHECK_THAT(twice.err, Contains("is given twice"));
}

TEST_CASE("clnet-bench trains on several devices together") {
  const clnet::test::Folder folder;
  const auto outcome = bench(folder, {"--replicas", "0:0,0:1", "keras-cnn-train-b32", "--seconds", "0.01"},
                             {"POCL_DEVICES=pthread basic", "POCL_MAX_PTHREAD_COUNT=1"});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("keras-cnn-train-b32") && Contains("samples/s, together") && Contains(" of it"));
  const auto no_network = bench(folder, {"--replicas", "0:0,0:0", "matmul-256"});
  CHECK(no_network.code == 1);
  CHECK(no_network.err == "clnet-bench: matmul-256 trains no network whose batches devices can share\n");
  const auto no_item = bench(folder, {"--replicas", "0:0,0:0"});
  CHECK(no_item.code == 2);
  CHECK(no_item.err == "clnet-bench: --programs, --cold and --replicas want names of items\n");
}

TEST_CASE("clnet-bench names each item once, and patterns choose among them") {
  const clnet::test::Folder folder;
  const auto all = bench(folder, {"--list"});
  std::istringstream lines(all.out);
  std::set<std::string> names;
  for (std::string name; std::getline(lines, name);) CHECK(names.insert(name).second);
  const auto chosen = bench(folder, {"--list", "resnet18-train-*", "matmul-*24", "matmul-1024"});
  CHECK(chosen.code == 0);
  CHECK(chosen.out == "resnet18-train-b8\nresnet18-train-b16\nresnet18-train-b16-f16\nmatmul-1024\n");
}

TEST_CASE("clnet-bench measures, writes a file and compares two") {
  const clnet::test::Folder folder;
  const auto file = (folder.path() / "a.json").string();
  const auto outcome = bench(folder, {"matmul-256", "lenet5-train-b64", "--seconds", "0.05", "--json", file});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("matmul-256") && Contains("GFLOP/s") && Contains("images/s"));
  const auto written = nlohmann::json::parse(std::ifstream(file));
  CHECK(written.at("format") == "clnet bench 1");
  const auto& results = written.at("items");
  REQUIRE(results.size() == 2);
  CHECK(results[0].at("name") == "matmul-256");
  CHECK(results[0].at("work") == 2.0 * 256 * 256 * 256);
  CHECK(results[1].at("unit") == "image");
  for (const auto& result : results) {
    CHECK(result.at("best_ms") > 0);
    CHECK(result.at("median_ms") >= result.at("best_ms"));
  }
  const auto compared = bench(folder, {"--compare", file, file});
  CHECK(compared.code == 0);
  CHECK_THAT(compared.out, Contains("1.00x"));
  const auto kept = bench(folder, {"--compare", CLNET_SOURCE_DIR "/tests/golden/formats/bench-1.json", file});
  CHECK_THAT(kept.out, Contains("matmul-256") && Contains("0.2500"));
  const auto unknown = folder.write("b.json", R"({"format": "clnet bench 9", "items": []})").string();
  const auto refused = bench(folder, {"--compare", file, unknown});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.err, Contains("b.json: is of the format \"clnet bench 9\", expected 'clnet bench 1'"));
}

TEST_CASE("clnet-bench --tune discards a solver that fails, loudly, and remembers the others") {
  const clnet::test::Folder folder, kernels;
  kernels.write("matmul_skinny_cpu.cl", "this is no kernel");
  kernels.write("matmul_cpu.cl", "nor is this");
  const auto tuned = [&](const std::vector<std::string>& arguments) {
    return bench(folder, arguments, {"CLNET_KERNEL_DIR=" + kernels.path().string(), "CLNET_CACHE_DIR=" + folder.path().string()});
  };
  const auto outcome = tuned({"matmul-256", "--seconds", "0.01", "--tune"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("tuning: matmul transpose_a=false"));
  // A device for whose kind there are no such solvers does not try them.
  if (outcome.err.find("FAILS") != std::string::npos) {
    CHECK_THAT(outcome.err,
               Contains("solver cpu{") && Contains("FAILS on this device and is discarded") && Contains("does not compile"));
    CHECK(tuned({"matmul-256", "--seconds", "0.01"}).code == 0);
    // Other kernels, other choices: with clnet's own ones nothing is known yet.
    const auto plain =
        bench(folder, {"matmul-256", "--seconds", "0.01", "--tune"}, {"CLNET_CACHE_DIR=" + folder.path().string()});
    CHECK(plain.code == 0);
    CHECK_THAT(plain.err, Contains("tuning: 1 problems") && !Contains("FAILS"));
  }
}

TEST_CASE("clnet-bench refuses names and files that it does not know") {
  const clnet::test::Folder folder;
  const auto unknown = bench(folder, {"matmul-1025"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err == "clnet-bench: there is no item named 'matmul-1025'; --list prints the names\n");
  CHECK(bench(folder, {"matmul-1025*"}).code == 2);
  CHECK(bench(folder, {"--list", "--compare", "a.json", "b.json"}).code == 2);
  std::ofstream(folder.path() / "bad.json") << "{\"name\": 1}";
  const auto bad = bench(folder, {"--compare", "bad.json", "bad.json"});
  CHECK(bad.code == 1);
  CHECK_THAT(bad.err, Contains("bad.json") && Contains("not a list"));
}

TEST_CASE("clnet-bench fails when the trace that CLNET_TRACE asks for cannot be written in full") {
  const clnet::test::Folder folder;
  const auto full = bench(folder, {"matmul-256", "--seconds", "0.05"}, {"CLNET_TRACE=/dev/full"});
  CHECK(full.code == 1);
  CHECK_THAT(full.err, Contains("/dev/full") && Contains("No space left"));
  // A disk that fills up while the program runs.
  std::filesystem::create_directory(folder.path() / "small");
  const clnet::test::SmallDisk disk(folder.path() / "small", "8k");
  if (!disk.mounted()) return;
  const auto limited = bench(folder, {"matmul-256", "--seconds", "0.5"}, {"CLNET_TRACE=small/cut.json"});
  CHECK(limited.code == 1);
  CHECK_THAT(limited.err, Contains("cut.json: trace is cut short"));
}

TEST_CASE("a mistake in any variable is one line, never an abort") {
  const clnet::test::Folder folder;
  for (const char* wrong : {"CLNET_EAGER=2", "CLNET_FUSION=garbage", "CLNET_TUNE=fast", "CLNET_DEBUG=9", "CLNET_WINOGRAD=x",
                            "CLNET_CACHE=maybe", "CLNET_MEMORY_LIMIT=-1", "CLNET_KERNEL_DIR=/nonexistent"}) {
    const auto outcome = bench(folder, {"matmul-256", "--seconds", "0.01"}, {wrong});
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, Contains(std::string("clnet-bench: ") + wrong + ": expected"));
    CHECK(bench(folder, {"--list"}, {wrong}).code == 0);
  }
}

TEST_CASE("a solver that is not there any more is no reason to stop: what was measured is passed over with a warning") {
  const clnet::test::Folder folder;
  const std::vector<std::string> environment{"CLNET_CACHE_DIR=" + folder.path().string()};
  REQUIRE(bench(folder, {"matmul-256", "--seconds", "0.01", "--tune"}, environment).code == 0);
  std::string path, text;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("tuning-")) path = entry.path().string();
  }
  REQUIRE_FALSE(path.empty());
  text = content(path);
  const std::string before = "\"solver\": \"";
  const auto at = text.find(before);
  REQUIRE(at != std::string::npos);
  const auto first = at + before.size();
  text.replace(first, text.find('"', first) - first, "retired");
  std::ofstream(path) << text;
  const auto outcome = bench(folder, {"matmul-256", "--seconds", "0.01"}, environment);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("there is no solver 'retired'"));
}
