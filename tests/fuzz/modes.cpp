#include "tests/fuzz/modes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/exec/choose/solver.h"

namespace clnet::fuzz {

namespace {

struct Mode {
  std::string_view name;
  std::vector<std::pair<std::string, std::string>> variables;
};

/// Every operation's last solver, which accepts everything.
std::string oracles() {
  std::string text;
  for (const auto& op : exec::ops_with_solvers()) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", op, exec::solver_names(op).back());
  return text;
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{{"plan", {}},
                                     {"reuse-off", {{"CLNET_REUSE", "0"}}},
                                     {"fusion-off", {{"CLNET_FUSION", "0"}}},
                                     {"eager", {{"CLNET_EAGER", "1"}}},
                                     {"oracles", {{"CLNET_SOLVER", oracles()}}},
                                     {"poison", {{"CLNET_POISON", "1"}}},
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

}  // namespace clnet::fuzz
