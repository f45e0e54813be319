// Competing ways to compute one operation. Each list ends with the oracle: it accepts everything, and every other solver is
// checked against it.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/export.h"
#include "lib/base/log.h"

namespace clnet::exec {

class Recorder;

template <class Problem>
struct Solver {
  std::string_view name;
  /// Why it cannot take the problem on this device; nothing when it can.
  std::optional<std::string> (*rejects)(const Problem& problem, const DeviceInfo& device);
  void (*lower)(const Problem& problem, Recorder& recorder);
  /// Why one further down the list is likely to be faster, by a model of costs; nothing when it is not. Who asks for the solver
  /// by name gets it all the same.
  std::optional<std::string> (*declines)(const Problem& problem, const DeviceInfo& device) = nullptr;
};

/// The solver that the user (CLNET_SOLVER=conv2d:direct,matmul:clblast), a ForceSolver or a PreferSolver asked for, by operation.
struct Forced {
  std::string solver;
  bool strict = false;    ///< a refusal is an error instead of a warning and the next solver
  bool measured = false;  ///< by a PreferSolver: no person insists on it
};
CLNET_API std::optional<Forced> forced_solver(std::string_view op);
/// All that ForceSolvers on this thread ask for; plans made under another choice do not serve.
std::string forced_solvers();

/// Forces a solver for the operations recorded in its lifetime, on this thread. Where it refuses, Unsupported is thrown.
class CLNET_API ForceSolver {
 public:
  ForceSolver(std::string op, std::string solver);
  ~ForceSolver();
  ForceSolver(const ForceSolver&) = delete;
  ForceSolver& operator=(const ForceSolver&) = delete;
};

/// Prefers a solver, as measuring chose it, for the operations recorded in its lifetime on this thread, unless one is forced.
class PreferSolver {
 public:
  PreferSolver(std::string op, std::string solver);
  ~PreferSolver();
  PreferSolver(const PreferSolver&) = delete;
  PreferSolver& operator=(const PreferSolver&) = delete;
};

/// The names of an operation's solvers, in order of preference; empty when it has only one way.
CLNET_API std::vector<std::string> solver_names(std::string_view op);
/// The operations that have solvers.
CLNET_API std::vector<std::string> ops_with_solvers();
/// Whether clnet-info --self-test found a solver wrong on this device.
CLNET_API bool is_broken(const DeviceInfo& device, std::string_view op, std::string_view solver);
CLNET_API void register_solvers(std::string_view op, std::vector<std::string> names);

template <class Problem>
class SolverList {
 public:
  SolverList(std::string_view op, std::vector<Solver<Problem>> solvers) : op_(op), solvers_(std::move(solvers)) {
    std::vector<std::string> names;
    for (const auto& solver : solvers_) names.emplace_back(solver.name);
    register_solvers(op_, std::move(names));
  }

  /// Records the problem with the solver that was forced, else with the first that does not refuse.
  void lower(const Problem& problem, const DeviceInfo& device, Recorder& recorder) const {
    choose(problem, device).lower(problem, recorder);
  }

  const Solver<Problem>& choose(const Problem& problem, const DeviceInfo& device) const {
    if (const auto forced = forced_solver(op_)) {
      const Solver<Problem>* found = nullptr;
      for (const auto& solver : solvers_)
        if (solver.name == forced->solver) found = &solver;
      if (!found) throw Error(fmt::format("{}: there is no solver named '{}'", op_, forced->solver));
      auto reason = found->rejects(problem, device);
      const bool broken = is_broken(device, op_, found->name) && found != &solvers_.back();
      if (!reason && broken && forced->measured) reason = broken_text;
      if (!reason) {
        if (broken && !forced->strict) logging::warn_once(fmt::format("{}: forced solver {} {}", op_, found->name, broken_text));
        return *found;
      }
      if (forced->strict) throw Unsupported(fmt::format("{}: solver {} refuses: {}", op_, forced->solver, *reason));
      logging::warn_once(
          fmt::format("{}: forced solver {} refuses: {}; the default order decides", op_, forced->solver, *reason));
    }
    for (const auto& solver : solvers_) {
      auto reason = solver.rejects(problem, device);
      if (!reason && solver.declines) reason = solver.declines(problem, device);
      // The oracle is all that is left.
      if (!reason && &solver != &solvers_.back() && is_broken(device, op_, solver.name)) reason = broken_text;
      if (!reason) {
        logging::print(logging::Level::solver, "{}: solver {}", op_, solver.name);
        return solver;
      }
      logging::print(logging::Level::solver, "{}: solver {} refuses: {}", op_, solver.name, *reason);
    }
    throw Unsupported(fmt::format("{}: no solver takes this problem", op_));
  }

 private:
  static constexpr std::string_view broken_text = "is wrong on this device, as clnet-info --self-test found";

  std::string op_;
  std::vector<Solver<Problem>> solvers_;
};

/// The oracle's `rejects`.
template <class Problem>
std::optional<std::string> accepts_everything(const Problem&, const DeviceInfo&) {
  return std::nullopt;
}

}  // namespace clnet::exec
