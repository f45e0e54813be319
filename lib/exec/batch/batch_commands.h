// The launch batches of a plan on its device: their programs' builds, and each batch's command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/cl/context.h"
#include "lib/cl/prebuild.h"
#include "lib/exec/batch/launch_batches.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

class BatchCommands {
 public:
  /// The places of a run.
  struct Places {
    std::function<const ocl::BufferPtr&(std::size_t segment)> segment;
    std::function<const ocl::BufferPtr&(std::size_t root)> buffer;
    std::function<std::int64_t(ValueId leaf)> first;
    std::function<std::uint64_t(ValueId leaf)> scalar;
    std::function<bool(std::size_t command)> left_out;
  };

  /// Whether this run may use batches; called once at its beginning. `mode` as in Options. `tail` is the first command that
  /// overwrites a leaf permanently in this run. New programs are compiled beside a plan that runs often. Until then, and where
  /// that is impossible, the launches are enqueued one by one, with the same results. CLNET_LAUNCH_BATCHES=eager waits for the
  /// programs in the first run.
  bool ready(const Recording& recording, const Placement& placement, ocl::Context& device, std::optional<LaunchBatchMode> mode,
             std::size_t tail);
  /// Whether they ran for the first time since the last call: a driver may still be compiling them.
  bool take_first_run() { return std::exchange(first_run_, false); }
  /// The number of commands that a run spares, so far.
  std::size_t spared() const;
  /// The batch that begins with this command and ends before `tail`, or null.
  const LaunchBatch* at(std::size_t command, std::size_t tail) const;
  /// Enqueues the batch as one command.
  void enqueue(const LaunchBatch& batch, const Recording& recording, ocl::Context& device, const Places& places);

 private:
  enum class State : std::uint8_t { waiting, building, ready, none };
  struct PreparedBatch {
    ::cl::Kernel kernel;
    ocl::BufferPtr list, counters;
    std::size_t groups = 0;
    std::vector<bool> left_out;  ///< those of the present list
    bool list_known = false;
    std::vector<std::uint64_t> bases;                   ///< the buffers' ids as set, or 0
    std::vector<std::optional<std::uint64_t>> scalars;  ///< as set
    std::vector<std::uint64_t> values;                  ///< those of the present list
  };

  void find(const Recording& recording, const Placement& placement, const DeviceInfo& device, std::size_t fewest,
            std::size_t tail);
  std::vector<ocl::KernelToBuild> to_build() const;
  bool pays() const;
  void make(ocl::Context& device);
  /// The number of launches in all batches.
  std::size_t launches() const;

  State state_ = State::waiting;
  bool first_run_ = false;
  std::uint64_t runs_ = 0;
  LaunchBatches batches_;
  std::vector<ocl::ProgramSource> programs_;
  std::vector<PreparedBatch> prepared_;
  std::unique_ptr<ocl::BuildingBeside> beside_;
};

}  // namespace clnet::exec
