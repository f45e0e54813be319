// kill -9 at random moments: a run that goes on from its checkpoint ends with the log and the weights of one that was never
// stopped, and files are whole, the old one or the new one. CLNET_KILL_ROUNDS says how often.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "lib/base/file.h"
#include "lib/cl/disk_cache.h"
#include "lib/cl/quirk_file.h"
#include "lib/exec/tune/tuning.h"
#include "tests/models/process.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

int rounds() {
  const char* text = std::getenv("CLNET_KILL_ROUNDS");
  return text ? std::atoi(text) : 20;
}

}  // namespace

TEST_CASE("kill -9: training goes on as if it had not been stopped") {
  const clnet::test::Folder data, folder;
  write_idx_dataset(data.path(), 200, 40);
  const auto arguments = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", data.path(), "--model", "mlp", "--batch-size", "20", "--epochs", "100", "--log",
                               name + ".jsonl", "--save", name + ".safetensors"});
    return more;
  };
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(clnet_train(folder.path(), arguments("whole", {})).code == 0);
  const auto whole_time = std::chrono::steady_clock::now() - start;
  const auto want = log_without_times(folder / "whole.jsonl");
  REQUIRE(want.size() == 1100);

  // The programs are built by now: a run takes less than the first, and much of it is starting.
  std::mt19937 random(1);
  std::uniform_real_distribution<double> moment(0.1, 1.1);
  const auto resumed = arguments("parts", {"--checkpoint", "run", "--checkpoint-steps", "7", "--resume"});
  int killed = 0, completed = 0;
  while (killed < rounds() || completed == 0) {
    Process process(folder.path(), clnet_train_command(resumed));
    if (killed < rounds()) {
      std::this_thread::sleep_for(whole_time * moment(random));
      process.signal(SIGKILL);
      ++killed;
    }
    const auto outcome = process.wait();
    INFO(outcome.out << outcome.err);
    if (outcome.code == -SIGKILL) continue;
    REQUIRE(outcome.code == 0);
    CHECK(log_without_times(folder / "parts.jsonl") == want);
    CHECK(content(folder / "parts.safetensors") == content(folder / "whole.safetensors"));
    // What the killed ones left half-written is gone.
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      CHECK(entry.path().filename().string().find(".tmp-") == std::string::npos);
    fs::remove_all(folder / "run");
    ++completed;
  }
}

TEST_CASE("kill -9: files of caches, tuning and quirks are whole") {
  const clnet::test::Folder folder;
  DeviceInfo device;
  device.name = "Some Device";
  const auto tuning = (folder / "tuning.json").string(), quirks = (folder / "quirks.json").string();
  const ocl::DiskCache cache(folder / "programs");
  std::mt19937 random(2);
  std::uniform_int_distribution<int> microseconds(0, 20000);
  for (int round = 0; round < rounds(); ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        exec::TuningFile file(tuning, "device");
        file.set(fmt::format("problem {}", i % 50), {"cpu", 1.0 * i});
        file.save();
        ocl::write_quirks(quirks, device, {{{"matmul", "cpu", std::string(static_cast<std::size_t>(i % 100), 'x')}}, {}});
        cache.store("key", std::string(static_cast<std::size_t>(1000 + i), 'y'));
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    INFO("round " << round);
    if (fs::exists(tuning)) CHECK_FALSE(exec::TuningFile(tuning, "device").empty());
    if (fs::exists(quirks)) CHECK(ocl::read_quirks(quirks, device).broken.size() == 1);
    if (fs::exists(folder / "programs") && !fs::is_empty(folder / "programs")) {
      bool whole = false;
      for (const auto& entry : fs::directory_iterator(folder / "programs"))
        whole = whole || entry.path().extension() == ".clnet-program";
      if (whole) CHECK(cache.load("key"));
    }
  }
  exec::TuningFile(tuning, "device").save();
  ocl::write_quirks(quirks, device, {});
  cache.store("key", "last");
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    CHECK(entry.path().filename().string().find(".tmp-") == std::string::npos);
}
