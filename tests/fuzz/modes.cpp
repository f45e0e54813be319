#include "tests/fuzz/modes.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "tests/support/temporary.h"

namespace clnet::fuzz {

namespace {

struct Mode {
  std::string_view name;
  std::vector<std::pair<std::string, std::string>> variables;
};

/// Every operation's last solver, which accepts everything.
std::string references() {
  std::string text;
  for (const auto& op : exec::ops_with_solvers())
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", op, exec::solver_names(op).back());
  return text;
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{{"plan", {}},
                                     {"memory", {}},
                                     {"sharing-off", {{"CLNET_MEMORY_SHARING", "0"}}},
                                     {"fusion-off", {{"CLNET_FUSION", "0"}}},
                                     {"eager", {{"CLNET_EAGER", "1"}}},
                                     {"references", {{"CLNET_SOLVER", references()}}},
                                     // Also where a model of costs declines, as it does for most of what is small.
                                     {"strips", {{"CLNET_SOLVER", "conv2d_strips:cpu"}}},
                                     {"poison", {{"CLNET_POISON", "1"}}},
                                     {"launch-batches", {{"CLNET_LAUNCH_BATCHES", "force"}}},
                                     // The tool spreads the operations over them.
                                     {"two-devices", {}},
                                     // The tool runs programs on a device each in two threads.
                                     {"two-lanes", {}},
                                     // With one unit also small tensors have several elements per work-item.
                                     {"width-1", {{"CLNET_VECTOR_WIDTH", "1"}, {"POCL_MAX_PTHREAD_COUNT", "1"}}},
                                     {"width-4", {{"CLNET_VECTOR_WIDTH", "4"}}},
                                     {"width-8", {{"CLNET_VECTOR_WIDTH", "8"}}},
                                     {"width-16", {{"CLNET_VECTOR_WIDTH", "16"}}}};
  return all;
}

}  // namespace

std::string mode_names() {
  std::string text;
  for (const auto& mode : modes()) text += (text.empty() ? "" : ", ") + std::string(mode.name);
  return text;
}

bool enter_mode(const std::string& name, char** argv) {
  for (const auto& mode : modes()) {
    if (mode.name != name) continue;
    bool there = true;
    for (const auto& [variable, value] : mode.variables) {
      const char* present = std::getenv(variable.c_str());
      there = there && present && value == present;
      setenv(variable.c_str(), value.c_str(), 1);
    }
    if (there) return true;
    execv("/proc/self/exe", argv);
    std::perror("clnet-fuzz-graphs: cannot start again");
    return false;
  }
  fmt::print(stderr, "clnet-fuzz-graphs: there is no mode '{}'; there are {}\n", name, mode_names());
  return false;
}

std::map<std::uint64_t, std::uint64_t> digests_of(const std::string& mode, const std::string& own, std::uint64_t seed,
                                                  std::uint64_t count, const std::vector<std::string>& more) {
  const test::Folder folder;
  const auto path = (folder / "digests").string();
  std::vector<std::string> words{
      "clnet-fuzz-graphs", "--mode", mode,        "--seed", std::to_string(seed), "--count", std::to_string(count),
      "--shrink-seconds",  "0",      "--digests", path};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  const auto child = fork();
  if (child == 0) {
    // What this process's own mode set is not for the other; what a person set is.
    for (const auto& present : modes())
      if (present.name == own)
        for (const auto& [variable, value] : present.variables) unsetenv(variable.c_str());
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::map<std::uint64_t, std::uint64_t> result;
  std::ifstream file(path);
  for (std::uint64_t at, digest; file >> at >> digest;) result[at] = digest;
  return result;
}

}  // namespace clnet::fuzz
