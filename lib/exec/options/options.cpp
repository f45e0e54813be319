#include "lib/exec/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/env.h"
#include "lib/base/leave_scope.h"

namespace clnet::exec {

namespace {

thread_local OptionsScope* innermost_scope = nullptr;

/// This thread's options, changed.
template <class Change>
Options changed(const Change& change) {
  auto options = Options::now();
  change(options);
  return options;
}

Options forcing(ForcedSolver solver) {
  return changed([&](Options& options) { options.solvers.push_back(std::move(solver)); });
}

}  // namespace

const Options& Options::now() {
  if (innermost_scope) return innermost_scope->options_;
  // Never destroyed: at exit another thread may still evaluate.
  static const auto& from_environment =
      *new Options{.fuses = env::flag("CLNET_FUSION", true), .shares = env::flag("CLNET_MEMORY_SHARING", true)};
  return from_environment;
}

std::string Options::key() const {
  // Built for each evaluation: mostly two letters.
  std::string text{fuses ? 'f' : '-', shares ? 's' : '-'};
  for (const auto& [op, choice, listed] : solvers) text += fmt::format("{}:{}{},", op, listed ? "=" : "", choice.text());
  return text;
}

const ForcedSolver* Options::solver(std::string_view op) const {
  const auto found = std::find_if(solvers.rbegin(), solvers.rend(), [&](const ForcedSolver& solver) { return solver.op == op; });
  return found == solvers.rend() ? nullptr : &*found;
}

OptionsScope::OptionsScope(Options options) : options_(std::move(options)), outer_(std::exchange(innermost_scope, this)) {}
OptionsScope::~OptionsScope() { leave_scope(innermost_scope, this, &OptionsScope::outer_); }

ForceSolver::ForceSolver(std::string op, const std::string& solver)
    : scope_(forcing({std::move(op), Choice::parse(solver), false})) {}
ForceSolver::ForceSolver(std::string op, Choice listed) : scope_(forcing({std::move(op), std::move(listed), true})) {}

NoFusion::NoFusion() : scope_(changed([](Options& options) { options.fuses = false; })) {}
NoMemorySharing::NoMemorySharing() : scope_(changed([](Options& options) { options.shares = false; })) {}
WithLaunchBatches::WithLaunchBatches(LaunchBatchMode mode)
    : scope_(changed([&](Options& options) { options.launch_batches = mode; })) {}

}  // namespace clnet::exec
