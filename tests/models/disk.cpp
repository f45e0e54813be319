// Every file that a program writes, on a disk that is full, read-only or gone: one clear line and an exit code for what was asked
// for, no harm where it is only a cache, and nothing lost that was there before.
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/models/process.h"
#include "tests/models/small_disk.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

struct DiskWorkplace {
  clnet::test::Folder data, folder;
  DiskWorkplace() {
    write_idx_dataset(data.path(), 100, 20);
    fs::create_directory(folder / "disk");
  }
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--data", data.path(), "--model", "mlp", "--batch-size", "20"});
    return more;
  }
  Outcome train(std::vector<std::string> more, const std::vector<std::string>& environment = {}) const {
    return clnet_train(folder.path(), arguments(std::move(more)), environment);
  }
  std::string disk(const std::string& name) const { return (folder / "disk" / name).string(); }
};

/// One line of the program that names the file, and an exit code that is an error's.
void check_refusal(const Outcome& outcome, const std::string& name) {
  INFO(name << ": " << outcome.code << "\n" << outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  int lines = 0;
  std::istringstream text(outcome.err);
  for (std::string line; std::getline(text, line);) {
    ++lines;
    CHECK(line.find(name) != std::string::npos);
  }
  CHECK(lines == 1);
}

/// What clnet-train writes because it was told to.
std::vector<std::vector<std::string>> outputs(const DiskWorkplace& place) {
  return {{"--save", place.disk("weights")},
          {"--checkpoint", place.disk("run")},
          {"--log", place.disk("log")},
          {"--plot", place.disk("plot")},
          {"--trace", place.disk("trace")}};
}

}  // namespace

TEST_CASE("a full disk is told in one line, and what was there stays") {
  const DiskWorkplace place;
  const SmallDisk disk(place.folder / "disk", "64k");
  if (!disk.mounted()) return;
  for (const char* name : {"weights", "log", "plot", "trace"}) std::ofstream(disk.path() / name) << "old";
  disk.fill();
  for (auto& output : outputs(place)) {
    const auto name = output[1];
    if (output[0] != "--save") output.insert(output.end(), {"--save", "weights"});
    output.insert(output.end(), {"--epochs", "60"});
    check_refusal(place.train(output), name);
    // A log and a trace are begun anew with the run, and take the room of the old ones.
    if (output[0] == "--save" || output[0] == "--plot") CHECK(content(name) == "old");
    if (output[0] == "--trace") CHECK(nlohmann::json::accept(content(name)));
  }
}

TEST_CASE("a read-only disk is told before anything is trained") {
  const DiskWorkplace place;
  const SmallDisk disk(place.folder / "disk", "64k");
  if (!disk.mounted()) return;
  disk.make_read_only();
  for (auto& output : outputs(place)) {
    const auto name = output[1];
    if (output[0] != "--save") output.insert(output.end(), {"--save", "weights"});
    const auto outcome = place.train(output);
    check_refusal(outcome, output[0] == "--checkpoint" ? "run" : place.disk(""));
    CHECK(outcome.out.find("epoch 1") == std::string::npos);
  }
  check_refusal(
      Process(place.folder.path(), {CLNET_BENCH, "--json", place.disk("bench.json"), "--seconds", "0.01", "matmul-256"}).wait(),
      place.disk("bench.json"));
  const auto test =
      Process(place.folder.path(), {CLNET_INFO, "--self-test", "--only", "index_add"}, {"CLNET_CACHE_DIR=" + place.disk("cache")})
          .wait();
  INFO(test.err);
  CHECK(test.code == 3);
  CHECK(test.err.find("quirks-") != std::string::npos);
}

TEST_CASE("caches on a full or read-only disk are done without") {
  const DiskWorkplace place;
  const SmallDisk disk(place.folder / "disk", "16k");
  if (!disk.mounted()) return;
  disk.fill();
  const std::vector<std::string> environment{"CLNET_CACHE_DIR=" + place.disk("cache"), "CLNET_CACHE=force", "CLNET_TUNE=1"};
  for (const bool read_only : {false, true}) {
    if (read_only) disk.make_read_only();
    const auto outcome = place.train({"--epochs", "1"}, environment);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("a folder that vanishes during training is told in one line") {
  const DiskWorkplace place;
  for (const char* option : {"--save", "--checkpoint", "--plot"}) {
    fs::create_directory(place.folder / "gone");
    fs::remove(place.folder / "log");
    const auto name = (place.folder / "gone/file").string();
    std::vector<std::string> arguments{"--epochs", "1000", "--log", "log", option, name};
    if (std::string_view(option) != "--save") arguments.insert(arguments.end(), {"--save", "weights"});
    Process process(place.folder.path(), clnet_train_command(place.arguments(arguments)));
    (void)wait_until([&] { return !content(place.folder / "log").empty(); });
    fs::remove_all(place.folder / "gone");
    process.signal(SIGTERM);
    check_refusal(process.wait(), name);
  }
}
