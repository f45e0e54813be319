#include "lib/exec/choose/solver.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "lib/base/env.h"

namespace clnet::exec {

namespace {

std::map<std::string, std::vector<std::string>, std::less<>>& registry() {
  static std::map<std::string, std::vector<std::string>, std::less<>> names;
  return names;
}

thread_local std::vector<std::pair<std::string, std::string>> forced_here, preferred_here;

std::map<std::string, std::string, std::less<>> parse(const std::string& text) {
  std::map<std::string, std::string, std::less<>> result;
  std::size_t start = 0;
  while (start <= text.size()) {
    const auto end = std::min(text.find(',', start), text.size());
    const auto item = text.substr(start, end - start);
    const auto colon = item.find(':');
    if (colon == std::string::npos) throw Error(fmt::format("CLNET_SOLVER: '{}' is not of the form operation:solver", item));
    const auto op = item.substr(0, colon), solver = item.substr(colon + 1);
    const auto known = registry().find(op);
    if (known == registry().end()) throw Error(fmt::format("CLNET_SOLVER: no operation named '{}' has solvers", op));
    if (std::find(known->second.begin(), known->second.end(), solver) == known->second.end())
      throw Error(
          fmt::format("CLNET_SOLVER: {} has no solver named '{}'; there are: {}", op, solver, fmt::join(known->second, ", ")));
    result[op] = solver;
    start = end + 1;
  }
  return result;
}

}  // namespace

std::optional<Forced> forced_solver(std::string_view op) {
  for (auto entry = forced_here.rbegin(); entry != forced_here.rend(); ++entry)
    if (entry->first == op) return Forced{.solver = entry->second, .strict = true};
  static const auto from_environment = [] {
    const auto text = env::text("CLNET_SOLVER");
    return text ? parse(*text) : std::map<std::string, std::string, std::less<>>{};
  }();
  const auto found = from_environment.find(op);
  if (found != from_environment.end()) return Forced{.solver = found->second};
  for (const auto& [preferred, solver] : preferred_here)
    if (preferred == op) return Forced{.solver = solver, .measured = true};
  return std::nullopt;
}

std::string forced_solvers() {
  std::string text;
  for (const auto& [op, solver] : forced_here) text += fmt::format("{}:{},", op, solver);
  return text;
}

ForceSolver::ForceSolver(std::string op, std::string solver) { forced_here.emplace_back(std::move(op), std::move(solver)); }
ForceSolver::~ForceSolver() { forced_here.pop_back(); }

PreferSolver::PreferSolver(std::string op, std::string solver) { preferred_here.emplace_back(std::move(op), std::move(solver)); }
PreferSolver::~PreferSolver() { preferred_here.pop_back(); }

std::vector<std::string> solver_names(std::string_view op) {
  const auto found = registry().find(op);
  return found == registry().end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> ops_with_solvers() {
  std::vector<std::string> result;
  for (const auto& [op, names] : registry()) result.push_back(op);
  return result;
}

bool is_broken(const DeviceInfo& device, std::string_view op, std::string_view solver) {
  const auto& broken = device.broken_solvers;
  return !broken.empty() && std::find(broken.begin(), broken.end(), fmt::format("{}:{}", op, solver)) != broken.end();
}

void register_solvers(std::string_view op, std::vector<std::string> names) { registry()[std::string(op)] = std::move(names); }

}  // namespace clnet::exec
