// The options of planning and running an evaluation, as one value: an evaluation reads it once and passes it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/debug.h"
#include "lib/exec/options/config.h"

namespace clnet::exec {

/// When a run of short launches becomes one command. off: never. automatic: where it pays, once a plan has run often. eager: the
/// same from the first run on. force: on any device that runs kernels for CPUs, for tests.
enum class LaunchBatchMode : std::uint8_t { off, automatic, eager, force };

/// The solver for an operation. Unsupported is thrown where it refuses, or lacks the configuration for the problem.
struct ForcedSolver {
  std::string op;
  Choice choice;
  /// The solver listed the configuration for a similar problem, and may lack it for this one.
  bool listed = false;
};

struct Options {
  std::vector<ForcedSolver> solvers = {};  ///< of those of one operation the last counts
  bool fuses = true;                       ///< false: every operation is a kernel of its own
  bool shares = true;                      ///< false: a buffer for every value, nothing in place or kept between runs
  bool tunes = true;                       ///< solvers may be measured where CLNET_TUNE says so
  std::optional<LaunchBatchMode> launch_batches = std::nullopt;  ///< nothing: as CLNET_LAUNCH_BATCHES says
  std::string_view refusal = {};                                 ///< why nothing may be evaluated; empty: it may
  std::optional<AnomalyOptions> anomaly = std::nullopt;          ///< DetectAnomaly looks for one

  /// This thread's options: CLNET_FUSION and CLNET_MEMORY_SHARING, changed by the scopes below.
  static const Options& now();
  /// The part of a plan's key that depends on the options.
  std::string key() const;
  /// The forced solver of an operation, or null.
  const ForcedSolver* solver(std::string_view op) const;
};

/// Sets this thread's options while it lives. The scope made last counts, in whatever order they end.
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
  /// With a configuration that the solver listed for a similar problem.
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

/// Switches memory sharing off. Kernels and results are bit-identical.
class NoMemorySharing {
 public:
  NoMemorySharing();

 private:
  OptionsScope scope_;
};

class WithLaunchBatches {
 public:
  explicit WithLaunchBatches(LaunchBatchMode mode);

 private:
  OptionsScope scope_;
};

}  // namespace clnet::exec
