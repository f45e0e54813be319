// How evaluations are planned and run, as one value: whoever evaluates reads it once and hands it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/debug.h"
#include "lib/exec/options/config.h"

namespace clnet::exec {

/// Whether runs of short launches become one command: never; where it pays, once a plan has run often; the same from the first
/// run on; or always, by any device for which the kernels of CPUs are, as tests want it.
enum class ChainMode : std::uint8_t { off, on, now, always };

/// A solver that shall compute an operation. Where it refuses, or has no such configuration for the problem, Unsupported is
/// thrown.
struct ForcedSolver {
  std::string op;
  Choice choice;
  /// The solver listed the configuration for a like problem, and need not list it for this one.
  bool listed = false;
};

struct Options {
  std::vector<ForcedSolver> solvers = {};          ///< of those of one operation the last counts
  bool fuses = true;                               ///< false: every operation is a kernel of its own
  bool shares = true;                              ///< false: a buffer for every value, nothing in place or kept between runs
  bool tunes = true;                               ///< solvers may be measured where CLNET_TUNE says so
  std::optional<ChainMode> chains = std::nullopt;  ///< nothing: as CLNET_CHAINS says
  std::string_view refusal = {};                   ///< why nothing may be evaluated; empty: it may
  std::optional<AnomalyOptions> anomaly = std::nullopt;  ///< DetectAnomaly looks for one

  /// Those of this thread: what CLNET_FUSION and CLNET_REUSE say, but for the scopes below.
  static const Options& now();
  /// What plans depend on, as a part of their keys.
  std::string key() const;
  /// The choice for an operation; null: there is none.
  const ForcedSolver* solver(std::string_view op) const;
};

/// Other options for what this thread evaluates in its lifetime: those of the scope that was made last count, whichever ends
/// first.
class OptionsScope {
 public:
  explicit OptionsScope(Options options);
  ~OptionsScope();
  OptionsScope(const OptionsScope&) = delete;
  OptionsScope& operator=(const OptionsScope&) = delete;

 private:
  friend struct Options;
  Options options_;
  OptionsScope* outer_;
};

/// Forces a solver ("cpu", "cpu{lanes=8}").
class ForceSolver {
 public:
  ForceSolver(std::string op, const std::string& solver);
  /// With a configuration that the solver listed for a problem like those to come.
  ForceSolver(std::string op, Choice listed);

 private:
  OptionsScope scope_;
};

class NoFusion {
 public:
  NoFusion();

 private:
  OptionsScope scope_;
};

/// The kernels are the same, and so are the results, to the bit.
class NoReuse {
 public:
  NoReuse();

 private:
  OptionsScope scope_;
};

class WithChains {
 public:
  explicit WithChains(ChainMode mode);

 private:
  OptionsScope scope_;
};

}  // namespace clnet::exec
