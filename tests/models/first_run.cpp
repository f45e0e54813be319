// clnet-train on a machine that has compiled nothing yet: what is told, how it is ended, and kernels that crash the compiler.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <set>

#include "clnet/device.h"
#include "lib/cl/quirks.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using Catch::Matchers::Contains;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

namespace {

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A dataset, and empty caches.
struct Machine {
  clnet::test::Folder data, folder;
  Machine() {
    write_idx_dataset(data.path(), 64, 32);
    for (const char* name : {"pocl", "clnet"}) fs::create_directory(folder / name);
  }
  std::vector<std::string> command(const std::string& model) const {
    return clnet_train_command(
        {"--data", data.path().string(), "--model", model, "--batch-size", "32", "--epochs", "1", "--save", "weights"});
  }
  std::vector<std::string> environment(std::vector<std::string> more) const {
    more.insert(more.begin(), {"POCL_CACHE_DIR=" + (folder / "pocl").string(), "CLNET_CACHE_DIR=" + (folder / "clnet").string()});
    return more;
  }
  Outcome train(const std::string& model, const std::vector<std::string>& more) const {
    const auto variables = environment(more);
    return Process(folder.path(), command(model), variables).wait();
  }
  /// Kernels in PoCL's cache.
  int compiled() const {
    int count = 0;
    std::error_code code;
    for (fs::recursive_directory_iterator at(folder / "pocl", code), end; !code && at != end; at.increment(code))
      if (at->path().extension() == ".so") ++count;
    return count;
  }
  /// How many processes compile for it.
  int builders() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto name = content(entry.path() / "cmdline");
      if (name.find("clnet-build-kernels") == std::string::npos) continue;
      if (content(entry.path() / "environ").find((folder / "pocl").string()) != std::string::npos) ++count;
    }
    return count;
  }
};

bool compiles_in_processes() { return clnet::ocl::has_quirk(clnet::Device::current().info(), "compiles-one-at-a-time"); }

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What becomes of a program that gets Ctrl-C while two processes compile for it: it ends within a second, and these do.
Outcome interrupted(const Machine& machine, const std::vector<std::string>& command) {
  const auto variables = machine.environment({"CLNET_BUILD_PROCESSES=2"});
  Process process(machine.folder.path(), command, variables);
  REQUIRE(wait_until([&] { return machine.builders() == 2; }));
  process.signal(SIGINT);
  const auto start = Clock::now();
  auto outcome = process.wait();
  // Twice what it must take at most on a machine that nobody else uses.
  CHECK(since(start) < 2);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 130);
  CHECK(wait_until([&] { return machine.builders() == 0; }));
  return outcome;
}

}  // namespace

TEST_CASE("clnet-train: before the first step Ctrl-C ends it within a second, processes that compile included") {
  if (!compiles_in_processes()) return skip("a driver that compiles several kernels at once");
  const Machine machine;
  machine.folder.write("log.jsonl", "an older log\n");
  auto command = machine.command("cnn");
  command.insert(command.end(), {"--log", "log.jsonl"});
  const auto outcome = interrupted(machine, command);
  CHECK_THAT(outcome.out, Contains("interrupted before the first step; nothing was written"));
  CHECK_FALSE(fs::exists(machine.folder / "weights"));
  CHECK(content(machine.folder / "log.jsonl") == "an older log\n");
  // Nobody took the end of the processes for a kernel's fault.
  const auto notes = content(machine.folder / "pocl/clnet-kernels");
  CHECK(count(notes, "failed") + count(notes, "crashed") == 0);
}

TEST_CASE("clnet-info --prepare: Ctrl-C ends it, and nobody takes it for done") {
  if (!compiles_in_processes()) return skip("a driver that compiles several kernels at once");
  const Machine machine;
  const auto outcome = interrupted(machine, {CLNET_INFO, "--prepare", "char-lstm"});
  CHECK_THAT(outcome.err, Contains("clnet-info: interrupted before char-lstm was prepared\n"));
}

TEST_CASE("a program that a shell found by its bare name finds the program that compiles for it") {
  if (!compiles_in_processes()) return skip("a driver that compiles several kernels at once");
  const Machine machine;
  const auto path = fs::path(CLNET_INFO).parent_path().string() + ":" + std::getenv("PATH");
  interrupted(machine, {"/usr/bin/env", "PATH=" + path, "clnet-info", "--prepare", "char-lstm"});
}

TEST_CASE("clnet-train: before the first step Ctrl-C ends a compiler in its own process") {
  if (!compiles_in_processes()) return skip("a driver whose compiler takes long");
  const Machine machine;
  const auto variables = machine.environment({"CLNET_BUILD_PROCESSES=1", "CLNET_COMPILE_APART=0"});
  Process process(machine.folder.path(), machine.command("cnn"), variables);
  // PoCL compiles kernels as the first step runs, where nobody can be told to end; two were run before, to measure vectors.
  REQUIRE(wait_until([&] { return machine.compiled() >= 4; }));
  process.signal(SIGINT);
  const auto start = Clock::now();
  const auto outcome = process.wait();
  CHECK(since(start) < 2);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == -SIGINT);
  CHECK_FALSE(fs::exists(machine.folder / "weights"));
}

TEST_CASE("clnet-train: what it compiles is told by one line in logs, by a bar on a terminal, and not again") {
  if (!compiles_in_processes()) return skip("a driver that tells what it has compiled");
  const std::string text = "for this network, once";
  const Machine log, terminal;
  const auto first = log.train("mlp", {"CLNET_BUILD_PROCESSES=2"});
  INFO(first.out << first.err);
  REQUIRE(first.code == 0);
  // One for training, and perhaps one for the test set.
  CHECK((count(first.out, text + "\n") == 1 || count(first.out, text + "\n") == 2));
  CHECK_THAT(first.out, Contains("\ncompiling "));
  CHECK(first.err.find(text) == std::string::npos);
  const auto second = log.train("mlp", {"CLNET_BUILD_PROCESSES=2"});
  CHECK(second.out.find(text) == std::string::npos);

  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE((::grantpt(master) == 0 && ::unlockpt(master) == 0));
  auto command = terminal.command("mlp");
  command.insert(command.begin(), {"/bin/sh", "-c", std::string("exec \"$0\" \"$@\" 2>") + ::ptsname(master)});
  const auto variables = terminal.environment({"CLNET_BUILD_PROCESSES=2"});
  Process process(terminal.folder.path(), command, variables);
  std::string drawn;
  const auto read = [&] {
    pollfd waiting{master, POLLIN, 0};
    char buffer[4096];
    if (::poll(&waiting, 1, 100) <= 0) return;
    const auto size = ::read(master, buffer, sizeof buffer);
    if (size > 0) drawn.append(buffer, static_cast<std::size_t>(size));
  };
  REQUIRE(wait_until([&] {
    read();
    return drawn.find("epoch 1/1: train loss") != std::string::npos;
  }));
  CHECK(process.wait().code == 0);
  ::close(master);
  const std::regex bar(R"(compiling ([0-9]+) kernels for this network, once \(([0-9]+) of \1\) \[=*>? *\])");
  std::set<int> done;
  for (std::sregex_iterator at(drawn.begin(), drawn.end(), bar), end; at != end; ++at) done.insert(std::stoi((*at)[2]));
  CHECK(done.size() >= 2);
}

namespace {

/// Trains with a compiler that crashes over these kernels.
Outcome train_without(const Machine& machine, const std::string& functions, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"CLNET_COMPILE_APART=1", "CLNET_BUILD_PROCESSES=2", "FAULT_ABORT=" + functions,
                           std::string("LD_PRELOAD=") + OPENCL_FAULTS});
  return machine.train("mlp", more);
}

std::string notes_on(const Machine& machine) {
  const auto text = content(machine.folder / "pocl/clnet-kernels");
  return text.empty() ? content(machine.folder / "clnet/clnet-kernels") : text;
}

}  // namespace

TEST_CASE("a kernel that crashes the compiler ends a process of its own, once, and the next solver is taken") {
  if (!clnet::Device::current().info().prefers_vector_kernels) return skip("a device that takes cross_entropy:cpu first");
  const Machine machine;
  const auto other = train_without(machine, "none", {"CLNET_SOLVER=cross_entropy:gpu"});
  INFO(other.out << other.err);
  REQUIRE(other.code == 0);
  CHECK(count(notes_on(machine), "crashed") == 0);
  const auto weights = content(machine.folder / "weights");

  std::string noted;
  for (int run = 0; run < 2; ++run) {
    const auto outcome = train_without(machine, "cross_entropy_cpu");
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(count(outcome.err, "\n") == 1);
    CHECK_THAT(outcome.err,
               Contains("cross_entropy_cpu crashes the compiler of ") && Contains(": without cross_entropy:cpu there\n"));
    CHECK(count(notes_on(machine), "crashed") == 1);
    // The second time nobody tries it again.
    if (run == 1) CHECK(notes_on(machine) == noted);
    noted = notes_on(machine);
    CHECK(content(machine.folder / "weights") == weights);
  }
}

TEST_CASE("generated kernels that crash the compiler are made anew without fusion; where nothing is left, that is an error") {
  const clnet::test::Folder folder;
  // With a driver that compiles nothing this is soon known.
  const auto run = [&](const std::string& function) {
    return Process(folder.path(), {CLNET_BENCH, "--programs", "cnn-train-b256"},
                   {std::string("OCL_ICD_VENDORS=") + NULL_ICD, "NULL_OPENCL_DEVICE=cpu8",
                    "CLNET_CACHE_DIR=" + (folder / function).string(), "CLNET_COMPILE_APART=1", "FAULT_ABORT=" + function,
                    std::string("LD_PRELOAD=") + OPENCL_FAULTS})
        .wait();
  };
  const auto unfused = run("fused_div_expand");
  INFO(unfused.out << unfused.err);
  CHECK(unfused.code == 0);
  CHECK(count(unfused.err, "\n") == 1);
  CHECK_THAT(unfused.err,
             Contains("fused_div_expand crashes the compiler of ") && Contains(": each operation gets a kernel of its own\n"));
  const auto nothing = run("optimizer_update");
  INFO(nothing.out << nothing.err);
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.err, Contains("clnet-bench: optimizer_update crashes the compiler of ") &&
                              Contains("optimizer_update: no solver takes this problem\n"));
}

TEST_CASE("a user's kernel that crashes the compiler ends a process of its own, and is an error") {
  const clnet::test::Folder folder;
  for (int run = 0; run < 2; ++run) {
    const auto outcome = Process(folder.path(), {USER_OWN_KERNEL},
                                 {std::string("OCL_ICD_VENDORS=") + NULL_ICD, "NULL_OPENCL_DEVICE=cpu8",
                                  "CLNET_CACHE_DIR=" + (folder / "cache").string(), "CLNET_COMPILE_APART=1", "FAULT_ABORT=snake",
                                  std::string("LD_PRELOAD=") + OPENCL_FAULTS})
                             .wait();
    INFO(outcome.out << outcome.err);
    // The program does not catch the error.
    CHECK(outcome.code == -SIGABRT);
    CHECK_THAT(outcome.err, Contains("what():  snake crashes the compiler of ") && Contains(" notes\n"));
  }
}
