// A work over several devices: cut at its copies into parts, each of which one device computes by a plan of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/plan/plan.h"

namespace clnet::exec {

/// Which operations one device computes at a time: those that need as many copies before them. What is connected otherwise than
/// by a copy is on one device. Parts of one stage run side by side; then come the copies that the next stage reads.
class Parts {
 public:
  /// Whether a work is more than one plan: it has copies, or values on several devices.
  static bool are_needed(const Work& work, std::span<const std::shared_ptr<Value>> values);

  /// Where an evaluation on `wanted` computes each node of a work, as the constructor decides it.
  static std::vector<std::shared_ptr<ocl::Context>> devices(const Work& work, const std::shared_ptr<ocl::Context>& wanted,
                                                            std::span<const Tensor> asked);

  /// `values` of the work's leaves say where these are. What is on no device comes to `wanted`, or else to the current device;
  /// and what was `asked` for has to be on `wanted`. Throws DeviceError where an operation reads from two devices.
  Parts(const Work& work, std::span<const std::shared_ptr<Value>> values, const std::shared_ptr<ocl::Context>& wanted,
        std::span<const Tensor> asked);

  /// Whether it would be cut in the same way with other values.
  bool serves(std::span<const std::shared_ptr<Value>> values) const;

  /// Gets the values of what is wanted, then those of what was `kept` besides.
  using Finish = std::function<void(const Results& results, std::span<const Work::Result> kept)>;
  /// Runs all of them, with `leaves` and their `values` in the place of the work's own. Until `finish` is called nothing is
  /// changed: no part takes a leaf's memory, and what throws leaves everything as it was. The devices are locked while it runs.
  /// The host waits for what it copies. Any thread may call it.
  void run(std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values, const Options& options,
           const Finish& finish);

  /// What a part computes, and where; without the values of other parts.
  struct Part {
    std::shared_ptr<ocl::Context> device;
    Work work;
  };
  std::vector<const Part*> list() const;

 private:
  /// Where a value comes from: the leaves, the results of a part, or a copy.
  struct Source {
    enum class Kind : std::uint8_t { leaf, part, copy } kind;
    std::size_t of = 0;      ///< which leaf, part or copy
    std::size_t result = 0;  ///< of a part
  };
  struct Planned : Part {
    std::size_t stage = 0;
    std::vector<Source> sources;       ///< of the work's leaves
    std::vector<std::uint32_t> nodes;  ///< of the whole work, by the part's
    std::shared_ptr<Plan> plan;
  };
  struct Copy {
    std::shared_ptr<ocl::Context> device;
    std::size_t stage = 0;  ///< which it goes before
    Source from;
    Spec spec;
  };
  class Cutting;
  class Run;
  Parts() = default;

  std::vector<Planned> parts_;  ///< by stage
  std::vector<Copy> copies_;    ///< by stage, each after those that it copies
  std::vector<Source> wanted_;
  std::vector<std::pair<Work::Result, std::size_t>> kept_copies_;  ///< further results of the whole work that are copies
  std::mutex mutex_;                                               ///< of the plans
  std::vector<const ocl::Context*> homes_;                         ///< of the leaves; null: on no device
};

}  // namespace clnet::exec
