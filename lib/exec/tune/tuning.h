// Solvers chosen by measuring: every candidate is checked against the oracle and timed, and the fastest is remembered for the
// device, in memory and in a file. Without CLNET_TUNE nothing is measured, but what is remembered is used.
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
#include "lib/exec/place/cached.h"

namespace clnet::exec {

/// One candidate's run of a problem.
struct Trial {
  std::string solver;         ///< and its configuration, as Choice::text()
  std::vector<float> values;  ///< what it computed
  double seconds = 0;
  std::vector<std::size_t> ends = {};  ///< of each output's values among them; empty: there is one output
};

/// The fastest of those whose values are the last one's, the oracle's, but for `tolerance` times the largest of their output (or
/// a thousandth of the largest of all). Others are discarded with a warning that names the problem.
const Trial& fastest_right(std::span<const Trial> trials, double tolerance, const std::string& problem);

/// What was chosen for each problem, kept in a file of one device, one driver and one state of the kernels.
class TuningFile {
 public:
  struct Entry {
    std::string choice;  ///< as Choice::text()
    double milliseconds = 0;
  };

  /// `identity` is all that the choices depend on; a file of another identity, or a damaged one, is ignored.
  TuningFile(std::string path, std::string identity);

  const Entry* find(const std::string& problem) const;
  void set(const std::string& problem, Entry entry) { entries_[problem] = std::move(entry); }
  bool empty() const { return entries_.empty(); }
  const std::string& path() const { return path_; }
  /// Adds the choices to those that are in the file by now. What cannot be written is not kept, with a line in the log.
  void save() const;

 private:
  std::map<std::string, Entry> load() const;

  std::string path_, identity_;
  std::map<std::string, Entry> entries_;
};

class Tuning : public Preferences {
 public:
  /// The device's file, and what CLNET_TUNE says.
  explicit Tuning(const ocl::Context& device);
  /// `seconds` to spend on a plan; nothing when nothing shall be measured.
  Tuning(TuningFile file, std::optional<double> seconds) : choices_("none"), file_(std::move(file)), budget_(seconds) {}

  /// Evaluates by Options::now(), which says the solver that is tried.
  using Evaluate = std::function<void(std::span<const Tensor>)>;
  /// Measures what is not known yet of the heavy operations, where CLNET_TUNE says so, for as long as it says.
  void tune(const Subgraph& graph, ocl::Context& device, CachedValues& cached, const Options& options, const Evaluate& evaluate);
  /// What to prefer for a node: what a checkpoint says, else what was measured; nothing when neither knows it.
  std::optional<Choice> choice(const Node& node, Packed packed = Packed::once) const override;
  /// A node was recorded with this choice.
  void note(const Node& node, const Choice& choice, Packed packed = Packed::once) const override;
  Choices& choices() const { return choices_; }

 private:
  struct Problem {
    const Node* node;
    Packed packed;
  };
  /// The problems that nobody has measured or decided.
  std::map<std::string, Problem> open_problems(const Subgraph& graph, const Options& options) const;

  std::optional<Choice> measured(const std::string& problem) const;

  mutable Choices choices_;
  std::optional<TuningFile> file_;
  std::optional<double> budget_;
  std::mutex measuring_;
  mutable std::mutex mutex_;  ///< of the file's choices
};

}  // namespace clnet::exec
