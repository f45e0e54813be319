// The chains of a plan on its device: when their programs are built, and how each becomes a command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/cl/context.h"
#include "lib/cl/prebuild.h"
#include "lib/exec/batch/chains.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

class ChainCommands {
 public:
  /// What a run knows.
  struct Places {
    std::function<const ocl::BufferPtr&(std::size_t segment)> segment;
    std::function<const ocl::BufferPtr&(std::size_t root)> buffer;
    std::function<std::int64_t(ValueId leaf)> first;
    std::function<std::uint64_t(ValueId leaf)> scalar;
    std::function<bool(std::size_t command)> left_out;
  };

  /// Called once at the beginning of each run: whether it may use them; `mode` as in Options. `tail` is the first command that
  /// overwrites a leaf for good in this run. Programs that the driver has not compiled before are compiled beside a plan that
  /// runs often; until then, and where it cannot be, its launches are made one by one, with the same results. CLNET_CHAINS=now
  /// waits for them in the first run.
  bool ready(const Recording& recording, const Placement& placement, ocl::Context& device, std::optional<ChainMode> mode,
             std::size_t tail);
  /// Whether they have run for the first time since this was asked: a driver may still be compiling them.
  bool take_first_run() { return std::exchange(first_run_, false); }
  /// How many commands those are that a run spares, so far.
  std::size_t spared() const;
  /// The chain that begins with this command and ends before `tail`, or null.
  const Chain* at(std::size_t command, std::size_t tail) const;
  /// Enqueues it as one command.
  void enqueue(const Chain& chain, const Recording& recording, ocl::Context& device, const Places& places);

 private:
  enum class State : std::uint8_t { waiting, building, ready, none };
  struct Command {
    ::cl::Kernel kernel;
    ocl::BufferPtr list, counters;
    std::size_t groups = 0;
    std::vector<bool> left_out;  ///< as the list says
    bool list_known = false;
    std::vector<std::uint64_t> bases;                   ///< the buffers' ids as set, or 0
    std::vector<std::optional<std::uint64_t>> scalars;  ///< as set
    std::vector<std::uint64_t> values;                  ///< as the list says
  };

  void find(const Recording& recording, const Placement& placement, const DeviceInfo& device, std::size_t fewest,
            std::size_t tail);
  std::vector<ocl::KernelToBuild> to_build() const;
  bool pays() const;
  void make(ocl::Context& device);
  /// Of all chains.
  std::size_t launches() const;

  State state_ = State::waiting;
  bool first_run_ = false;
  std::uint64_t runs_ = 0;
  Chains chains_;
  std::vector<ocl::ProgramSource> programs_;
  std::vector<Command> commands_;
  std::unique_ptr<ocl::BuildingBeside> beside_;
};

}  // namespace clnet::exec
