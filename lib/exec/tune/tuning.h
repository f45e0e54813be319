// Choice of solvers by measurement: every candidate is checked against the reference solver and timed. The fastest is kept for
// the device, in memory and in a file. Without CLNET_TUNE nothing is measured, but kept choices are used.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/choose/choices.h"
#include "lib/exec/choose/preferences.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"
#include "lib/exec/place/prepack_cache.h"

namespace clnet::exec {

/// A candidate's run of a problem.
struct Trial {
  std::string solver;         ///< solver and configuration, as Choice::text()
  std::vector<float> values;  ///< its results
  double seconds = 0;
  std::vector<std::size_t> ends = {};  ///< end of each output in `values`; empty: one output
};

/// The fastest trial whose values equal those of the last one, the reference solver. They may differ by `tolerance` times the
/// largest value of their output, or by a thousandth of the largest of all. Others are discarded with a warning that names the
/// problem.
const Trial& fastest_right(std::span<const Trial> trials, double tolerance, const std::string& problem);

/// The choice for each problem, in a file for one device, one driver and one state of the kernels.
class TuningFile {
 public:
  struct Measurement {
    std::string choice;  ///< as Choice::text()
    double milliseconds = 0;
  };

  /// `identity` is everything that the choices depend on. A file of another identity, or a damaged one, is ignored.
  TuningFile(std::string path, std::string identity);

  const Measurement* find(const std::string& problem) const;
  void set(const std::string& problem, Measurement entry) { entries_[problem] = std::move(entry); }
  bool empty() const { return entries_.empty(); }
  const std::string& path() const { return path_; }
  /// Adds the choices to those in the file. A failed write is logged, and its choices are not kept.
  void save() const;

 private:
  std::map<std::string, Measurement> load() const;

  std::string path_, identity_;
  std::map<std::string, Measurement> entries_;
};

class Tuning : public Preferences {
 public:
  /// With the device's file and the value of CLNET_TUNE.
  explicit Tuning(const ocl::Context& device);
  /// `seconds` to spend per plan; std::nullopt: no measurement.
  Tuning(TuningFile file, std::optional<double> seconds) : choices_("none"), file_(std::move(file)), budget_(seconds) {}

  /// Evaluates by Options::now(), which forces the solver of the trial.
  using Evaluate = std::function<void(std::span<const Tensor>)>;
  /// Measures the unknown heavy operations, if and as long as CLNET_TUNE allows.
  void tune(const Subgraph& graph, ocl::Context& device, PrepackCache& prepacks, const Options& options,
            const Evaluate& evaluate);
  /// The preferred choice for a node: from a checkpoint, else measured; std::nullopt: neither.
  std::optional<Choice> choice(const Node& node, Packed packed = Packed::once) const override;
  /// Notes that a node was recorded with this choice.
  void note(const Node& node, const Choice& choice, Packed packed = Packed::once) const override;
  Choices& choices() const { return choices_; }

 private:
  struct Problem {
    const Node* node;
    Packed packed;
  };
  /// The problems without a measurement or decision.
  std::map<std::string, Problem> open_problems(const Subgraph& graph, const Options& options) const;

  std::optional<Choice> measured(const std::string& problem) const;

  mutable Choices choices_;
  std::optional<TuningFile> file_;
  std::optional<double> budget_;
  std::mutex measuring_;
  mutable std::mutex mutex_;  ///< guards the file's choices
};

}  // namespace clnet::exec
