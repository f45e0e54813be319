// Several processes that start at once and find nothing compiled: together they compile what one does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/quirks.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

constexpr int starts = 4;

/// Caches that processes share, and what these said.
struct ColdStarts {
  clnet::test::Folder folder;
  std::vector<std::string> environment{"CLNET_DEBUG=1"};
  std::vector<std::unique_ptr<Process>> processes;

  explicit ColdStarts(std::vector<std::string> more) {
    for (const char* name : {"POCL_CACHE_DIR", "CLNET_CACHE_DIR"}) {
      fs::create_directory(folder / name);
      environment.push_back(std::string(name) + "=" + (folder / name).string());
    }
    environment.insert(environment.end(), more.begin(), more.end());
  }
  void start(int count) {
    for (int i = 0; i < count; ++i) {
      const auto own = folder / std::to_string(processes.size());
      fs::create_directory(own);
      processes.push_back(
          std::make_unique<Process>(own, std::vector<std::string>{CLNET_INFO, "--prepare", "mlp:1x8x8:16"}, environment));
    }
  }
  /// What those from this one on wrote, all of which must have ended well.
  std::string ended(std::size_t from = 0) {
    std::string all;
    for (auto i = from; i < processes.size(); ++i) {
      const auto outcome = processes[i]->wait();
      INFO(outcome.out << outcome.err);
      REQUIRE(outcome.code == 0);
      all += outcome.err;
    }
    return all;
  }
  /// Of programs that clnet keeps.
  std::size_t kept() const {
    std::size_t count = 0;
    std::error_code code;
    for (fs::directory_iterator at(folder / "CLNET_CACHE_DIR/programs", code), end; !code && at != end; at.increment(code))
      if (at->path().extension() == ".clnet-program") ++count;
    return count;
  }
  std::vector<std::string> notes() const {
    std::istringstream lines(content(folder / "POCL_CACHE_DIR/clnet-kernels"));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    return all;
  }
};

/// The sum of what stands in the place of a pattern's first part, or of ones where it has none.
long sum_of(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  long sum = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
    sum += at->size() > 1 ? std::stol((*at)[1]) : 1;
  return sum;
}

const std::string built = "program [^ ]+ built in", compiled = "([0-9]+) of [0-9]+ new kernels compiled by";
/// clnet's own cache, also where the driver has one.
const std::vector<std::string> own_cache{"CLNET_CACHE=force", "CLNET_BUILD_PROCESSES=1"};

bool compiles_in_processes() { return clnet::ocl::has_quirk(clnet::Device::current().info(), "compiles-one-at-a-time"); }

}  // namespace

TEST_CASE("cold starts: of several processes that need a program one builds it") {
  ColdStarts alone(own_cache), together(own_cache);
  alone.start(1);
  const auto of_one = sum_of(alone.ended(), built);
  REQUIRE(of_one > 3);
  together.start(starts);
  CHECK(sum_of(together.ended(), built) == of_one);
  CHECK(together.kept() == alone.kept());
  // No more than one file of locks.
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(together.folder / "CLNET_CACHE_DIR"))
    if (entry.path().extension() == ".lock") names.insert(entry.path().filename().string());
  CHECK(names == std::set<std::string>{"programs.lock"});
}

TEST_CASE("cold starts: who is killed while it builds stops nobody") {
  ColdStarts together(own_cache);
  together.start(1);
  REQUIRE(wait_until([&] { return together.kept() > 0; }));
  together.start(starts - 1);
  together.processes[0]->signal(SIGKILL);
  CHECK(together.processes[0]->wait().code == -SIGKILL);
  CHECK(sum_of(together.ended(1), built) > 3);
}

TEST_CASE("cold starts: of several processes one has a kernel compiled elsewhere") {
  if (!compiles_in_processes()) return skip("a driver that compiles several kernels at once");
  ColdStarts alone({"CLNET_BUILD_PROCESSES=2"}), together({"CLNET_BUILD_PROCESSES=2"});
  alone.start(1);
  const auto of_one = sum_of(alone.ended(), compiled);
  REQUIRE(of_one > 3);
  together.start(starts);
  CHECK(sum_of(together.ended(), compiled) == of_one);
  auto notes = together.notes();
  std::sort(notes.begin(), notes.end());
  CHECK(std::set<std::string>(notes.begin(), notes.end()).size() == alone.notes().size());
}

TEST_CASE("cold starts: who is killed while kernels are compiled for it stops nobody") {
  if (!compiles_in_processes()) return skip("a driver that compiles several kernels at once");
  ColdStarts together({"CLNET_BUILD_PROCESSES=2"});
  together.start(1);
  REQUIRE(wait_until([&] { return !together.notes().empty(); }));
  together.start(starts - 1);
  together.processes[0]->signal(SIGKILL);
  CHECK(together.processes[0]->wait().code == -SIGKILL);
  CHECK(sum_of(together.ended(1), compiled) > 3);
}
