// Solvers: competing ways to compute one operation. Each list ends with the reference solver, which accepts everything; every
// other solver is checked against it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/exec/launch/choosing.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

class Recorder;

/// Sets the recorder's solver and configuration while it lives, and restores the former ones. The recorder notes the origin of
/// launches.
class Configured {
 public:
  Configured(Recorder& recorder, std::string_view op, std::string_view solver, const Config& config);
  ~Configured();
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;

 private:
  Recorder& recorder_;
  const Config* outer_;
  const std::optional<std::size_t> outer_pen_;
};

/// The devices that a solver is made for. On others it is neither chosen nor measured, but a choice by name still gets it.
enum class MadeFor : std::uint8_t { all, gpus };
inline bool suits(MadeFor kind, const DeviceInfo& device) { return kind == MadeFor::all || device.type != DeviceType::cpu; }

template <class Problem>
struct Solver {
  std::string_view name;
  /// Why it cannot compute the problem on this device; std::nullopt: it can.
  std::optional<std::string> (*rejects)(const Problem& problem, const DeviceInfo& device);
  /// Records the launches; the configuration is recorder.config().
  void (*lower)(const Problem& problem, Recorder& recorder);
  /// Why a later solver of the list is likely to be faster, by a cost model; std::nullopt: none is. A choice by name still gets
  /// this one.
  std::optional<std::string> (*declines)(const Problem& problem, const DeviceInfo& device) = nullptr;
  /// The useful configurations for a problem that it does not reject, the likely best first. Null: one empty configuration.
  std::vector<Config> (*configs)(const Problem& problem, const DeviceInfo& device) = nullptr;
  MadeFor made_for = MadeFor::all;
  /// Its kernels compute f64 in double. The reference solver always does.
  bool computes_f64 = false;
};

/// The requested solver: from the options, the user (CLNET_SOLVER=conv2d:direct,matmul:clblast), or Choosing::preferred.
struct Forced {
  Choice choice;
  bool strict = false;    ///< a refusal throws, instead of a warning and the next solver
  bool measured = false;  ///< from a preference, not from a person
  bool exact = false;     ///< the configuration is the solver's for a similar problem, and may be missing here
};
std::optional<Forced> forced_solver(std::string_view op, const Options& options = Options::now());
std::optional<Forced> forced_solver(std::string_view op, const Choosing& choosing);

bool is_avoided(std::string_view op, std::string_view solver, const Choosing& choosing);

/// Collects the possible choices, as Choice::text(), of the operations of a work during lowering. These are every configuration
/// of every solver that does not reject, each solver's default first.
class ListChoices {
 public:
  /// The possible choices of an operation.
  std::vector<std::string> of(std::string_view op) const;
  /// The choice for its first problem; empty: there was none.
  std::string chosen(std::string_view op) const;

  void note_choice(std::string_view op, std::string choice) { choices_.emplace_back(op, std::move(choice)); }
  void note_chosen(std::string_view op, std::string choice) { chosen_.emplace_back(op, std::move(choice)); }

 private:
  std::vector<std::pair<std::string, std::string>> choices_, chosen_;
};

/// The names of an operation's solvers, in order of preference; empty when it has only one way.
std::vector<std::string> solver_names(std::string_view op);
/// The operations that have solvers.
std::vector<std::string> ops_with_solvers();
/// The error of a name that none of an operation's solvers has.
std::string no_such_solver(std::string_view op, std::string_view solver);
/// Whether clnet-info --self-test found a solver wrong on this device.
bool is_broken(const DeviceInfo& device, std::string_view op, std::string_view solver);
void register_solvers(std::string_view op, std::vector<std::string> names);
const Choosing& choosing_of(const Recorder& recorder);
/// Recorder::computes_f64().
bool has_f64(const Recorder& recorder);

template <class Problem>
class SolverList {
 public:
  SolverList(std::string_view op, std::vector<Solver<Problem>> solvers) : op_(op), solvers_(std::move(solvers)) {
    std::vector<std::string> names;
    for (const auto& solver : solvers_) names.emplace_back(solver.name);
    register_solvers(op_, std::move(names));
  }

  /// Records the problem with the forced solver and configuration, else with the first solver that does not reject.
  void lower(const Problem& problem, const DeviceInfo& device, Recorder& recorder) const {
    const auto& choosing = choosing_of(recorder);
    const bool f64 = has_f64(recorder);
    if (choosing.list) note_choices(problem, device, *choosing.list, f64);
    const auto [solver, config] = choose(problem, device, choosing, f64);
    if (choosing.list) choosing.list->note_chosen(op_, std::string(solver->name) + config.text());
    const Configured configured(recorder, op_, solver->name, config);
    solver->lower(problem, recorder);
  }

  /// Whether the choice is the last solver, in a list whose last solver means another way to record. Collects the possible
  /// choices, as lower() does.
  bool leaves(const Problem& problem, const DeviceInfo& device, const Choosing& choosing) const {
    if (choosing.list) note_choices(problem, device, *choosing.list, false);
    return choose(problem, device, choosing).solver == &solvers_.back();
  }

  struct Chosen {
    const Solver<Problem>* solver;
    Config config;
  };
  /// f64: an operand or result of the operation is.
  Chosen choose(const Problem& problem, const DeviceInfo& device, const Choosing& choosing = {.options = Options::now()},
                bool f64 = false) const {
    if (const auto forced = forced_solver(op_, choosing)) {
      const auto& name = forced->choice.solver;
      const auto& wanted = forced->choice.config;
      const Solver<Problem>* found = nullptr;
      for (const auto& solver : solvers_)
        if (solver.name == name) found = &solver;
      if (!found) throw Error(no_such_solver(op_, name));
      auto reason = refusal(*found, problem, device, f64);
      const bool broken = is_broken(device, op_, found->name) && found != &solvers_.back();
      if (!reason && broken && forced->measured) reason = broken_text;
      if (!reason && is_avoided(op_, found->name, choosing)) reason = crash_text;
      if (!reason) {
        const std::string_view why = forced->measured ? ", as was measured" : ", as is forced";
        if (forced->exact) return chosen(*found, wanted, {}, why);
        const auto configs = configs_of(*found, problem, device);
        const auto agrees = [&](const Config& config) { return config.agrees(wanted); };
        auto config = std::find_if(configs.begin(), configs.end(), agrees);
        // Measured with other cores or another cost model: the solver remains the choice.
        if (config == configs.end() && forced->measured) config = configs.begin();
        if (config != configs.end()) {
          if (broken && !forced->strict)
            logging::warn_once(fmt::format("{}: forced solver {} {}", op_, found->name, broken_text));
          return chosen(*found, *config, configs, why);
        }
        std::string has;
        for (const auto& other : configs) has += " " + other.text();
        reason = fmt::format("it has no configuration {} here, but{}", wanted.text(), configs[0].empty() ? " only one" : has);
      }
      if (forced->strict) throw Unsupported(fmt::format("{}: solver {} refuses: {}", op_, name, *reason));
      logging::warn_once(fmt::format("{}: {} solver {} refuses: {}; the default order decides", op_,
                                     forced->measured ? "measured" : "forced", name, *reason));
    }
    for (const auto& solver : solvers_) {
      auto reason = refusal(solver, problem, device, f64);
      if (!reason && !suits(solver.made_for, device)) reason = "it is made for GPUs";
      if (!reason && solver.declines) reason = solver.declines(problem, device);
      // The reference solver is the last resort.
      if (!reason && &solver != &solvers_.back() && is_broken(device, op_, solver.name)) reason = broken_text;
      if (!reason && is_avoided(op_, solver.name, choosing)) reason = crash_text;
      if (!reason) {
        const auto configs = configs_of(solver, problem, device);
        return chosen(solver, configs[0], configs, "");
      }
      logging::print(logging::Level::solver, "{}: solver {} refuses: {}", op_, solver.name, *reason);
    }
    throw Unsupported(fmt::format("{}: no solver takes this problem", op_));
  }

 private:
  static constexpr std::string_view broken_text = "is wrong on this device, as clnet-info --self-test found";
  static constexpr std::string_view crash_text = "a kernel of it crashes the driver's compiler";

  static std::vector<Config> configs_of(const Solver<Problem>& solver, const Problem& problem, const DeviceInfo& device) {
    return solver.configs ? solver.configs(problem, device) : std::vector<Config>(1);
  }

  Chosen chosen(const Solver<Problem>& solver, const Config& config, const std::vector<Config>& of, std::string_view why) const {
    if (logging::enabled(logging::Level::solver)) {
      std::string others;
      for (const auto& other : of)
        if (other.text() != config.text()) others += " " + other.text();
      logging::write(fmt::format("{}: solver {}{}{}{}{}", op_, solver.name, config.text(), why,
                                 others.empty() ? "" : "; instead of", others));
    }
    return {&solver, config};
  }

  std::optional<std::string> refusal(const Solver<Problem>& solver, const Problem& problem, const DeviceInfo& device,
                                     bool f64) const {
    if (f64 && !solver.computes_f64 && &solver != &solvers_.back()) return "it does not compute in f64";
    return solver.rejects(problem, device);
  }

  void note_choices(const Problem& problem, const DeviceInfo& device, ListChoices& list, bool f64) const {
    for (const auto& solver : solvers_) {
      if (!suits(solver.made_for, device) || refusal(solver, problem, device, f64)) continue;
      for (const auto& config : configs_of(solver, problem, device))
        list.note_choice(op_, std::string(solver.name) + config.text());
    }
  }

  std::string op_;
  std::vector<Solver<Problem>> solvers_;
};

/// The reference solver's `rejects`.
template <class Problem>
std::optional<std::string> accepts_everything(const Problem&, const DeviceInfo&) {
  return std::nullopt;
}

}  // namespace clnet::exec
