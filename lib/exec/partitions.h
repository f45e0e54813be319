// A work on several devices, cut at its copies into partitions. One device computes each partition by its own plan.
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

/// The partition of a work. A partition has operations of one device with the same number of copies before them; everything
/// connected without a copy is on one device. Partitions of one stage run side by side. Then come the copies that the next stage
/// reads.
class Partitions {
 public:
  /// Whether a work needs several plans: it has copies, values on several devices, or values on another device than `wanted` (or
  /// the current one) beside operations that depend on none of them.
  static bool are_needed(const Work& work, std::span<const std::shared_ptr<Value>> values,
                         const std::shared_ptr<ocl::Context>& wanted);

  /// Where an evaluation on `wanted` computes each node of a work, as the constructor decides it.
  static std::vector<std::shared_ptr<ocl::Context>> devices(const Work& work, const std::shared_ptr<ocl::Context>& wanted,
                                                            std::span<const Tensor> asked);

  /// Whether speculative values that the work reads or was asked for decide about a device: without them a node would be on
  /// another one, or an operation would read from two. `walk` is that of the work.
  static bool depend_on(std::span<const std::pair<Tensor, std::shared_ptr<DeviceValue>>> speculative, const Work& work,
                        const std::shared_ptr<ocl::Context>& wanted, std::span<const Tensor> asked, Walk& walk);

  /// `values` are those of the work's leaves, on their devices. Nodes without a device get `wanted`, or else the current device.
  /// The tensors in `asked` have to be on `wanted`. Throws DeviceError where an operation reads from two devices.
  Partitions(const Work& work, std::span<const std::shared_ptr<Value>> values, const std::shared_ptr<ocl::Context>& wanted,
             std::span<const Tensor> asked);

  /// Whether the partition is the same with these values and the current device.
  bool serves(std::span<const std::shared_ptr<Value>> values) const;

  /// Receives the wanted values, then those of the `speculative` outputs.
  using Finish = std::function<void(const Results& results, std::span<const Work::Result> speculative)>;
  /// Runs all partitions with `leaves` and their `values` in place of the work's own. Nothing changes before the last one, which
  /// may overwrite leaves as the work allows; an exception before it leaves everything as before, and one in it as
  /// Plan::replay(). The devices are locked during `finish`. The host waits for its copies. Any thread may call it.
  void run(std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values, const Options& options,
           Placements& placements, const Finish& finish);

  /// The operations and the device of a partition, without the values of other partitions.
  struct Partition {
    std::shared_ptr<ocl::Context> device;
    Work work;
  };
  std::vector<const Partition*> list() const;

 private:
  /// The source of a value: a leaf, a result of a partition, or a copy.
  struct Source {
    enum class Kind : std::uint8_t { leaf, partition, copy } kind;
    std::size_t of = 0;      ///< index of the leaf, partition or copy
    std::size_t result = 0;  ///< of a partition
  };
  struct Planned : Partition {
    std::size_t stage = 0;
    std::vector<Source> sources;       ///< of the work's leaves
    std::vector<std::uint32_t> nodes;  ///< node numbers of the whole work, by the partition's
    std::shared_ptr<Plan> plan;
  };
  struct Copy {
    std::shared_ptr<ocl::Context> device;
    std::size_t stage = 0;  ///< the stage after it
    Source from;
    Spec spec;
  };
  class Cutting;
  class Run;
  Partitions() = default;

  std::vector<Planned> partitions_;  ///< by stage
  std::optional<std::size_t> last_;  ///< the one that may overwrite leaves
  std::vector<Copy> copies_;         ///< by stage, each after its source
  std::vector<Source> wanted_;
  std::vector<std::pair<Work::Result, std::size_t>> speculative_copies_;  ///< further results of the whole work that are copies
  std::mutex mutex_;                                                      ///< of the plans
  std::vector<const ocl::Context*> leaf_devices_;                         ///< devices of the leaves; null: none
  std::shared_ptr<ocl::Context> current_;                                 ///< where it was chosen for some; null: for none
};

}  // namespace clnet::exec
