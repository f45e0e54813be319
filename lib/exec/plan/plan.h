// A plan: a graph ready to run many times, with set arguments and a place for every value.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/cl/prebuild.h"
#include "lib/exec/batch/batch_commands.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/place/arena.h"
#include "lib/exec/place/placement.h"
#include "lib/exec/place/prepack_cache.h"

namespace clnet::exec {

/// A plan's leaf in one run.
struct Binding {
  std::function<std::shared_ptr<DeviceValue>()> on_device;  ///< called when a kernel needs a buffer
  const std::byte* scalar = nullptr;                        ///< the value of a host scalar
  MayOverwrite may_overwrite = MayOverwrite::nothing;
};

/// A run failed that cannot be made again.
class NotRepeatable : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// A launch failed after others had overwritten leaves, which are lost.
class LostInPlace : public NotRepeatable {
 public:
  using NotRepeatable::NotRepeatable;
};

/// Kernels that crash the driver's compiler, with their origins.
class KernelsCrash : public DeviceError {
 public:
  /// `compiler`: the driver, and the file with the note.
  KernelsCrash(std::set<std::string> kernels, std::string compiler, std::vector<Maker> makers);
  static std::string text(const std::set<std::string>& kernels, const std::string& compiler);
  const std::set<std::string>& kernels() const { return kernels_; }
  const std::string& compiler() const { return compiler_; }
  const std::vector<Maker>& makers() const { return makers_; }

 private:
  std::set<std::string> kernels_;
  std::string compiler_;
  std::vector<Maker> makers_;
};

class Plan {
 public:
  /// Places the recording's values and builds its programs. The first values of the recording are its leaves; `keep` are the
  /// values to return. Throws as building does, and KernelsCrash before a kernel would end the process.
  Plan(Recording recording, std::vector<ValueId> keep, ocl::Context& device, const PlacementOptions& options);

  /// The results of a run.
  struct RunResult {
    std::vector<std::shared_ptr<DeviceValue>> results;      ///< values of `keep`
    std::vector<std::shared_ptr<DeviceValue>> overwritten;  ///< overwritten leaves' values, permanently
  };
  /// Enqueues all commands; `mode` as in Options. The context's lock is held. After any exception the next run is right. A leaf
  /// given beyond rewriting (MayOverwrite::all) is unchanged, or marked as overwritten; in that case the exception is
  /// LostInPlace. A DeviceError behind a host call that runs once is NotRepeatable. A call that the driver refuses is repeated
  /// first.
  RunResult replay(ocl::Context& device, Arena& arena, PrepackCache& prepacks, const std::vector<Binding>& leaves,
                   std::optional<LaunchBatchMode> mode);

  /// Call it when the first run is done.
  void note_first_run(const ocl::Context& device);

  std::size_t kernels() const { return kernels_; }
  std::size_t host_calls() const { return host_calls_; }
  /// See BatchCommands.
  bool take_first_run() { return batches_.take_first_run(); }
  /// The number of commands of a run like the last one.
  std::size_t commands() const { return kernels_ + host_calls_ - std::min(kernels_, batches_.spared()); }
  /// Bytes of the intermediates with the arena's sharing, and without.
  std::size_t planned_bytes() const { return placement_.layout.bytes(); }
  std::size_t naive_bytes() const { return placement_.naive_bytes; }
  /// Bytes of further buffers of every run, or of the first; and the part of the prepacked values.
  std::size_t own_bytes() const { return bytes_at(Home::per_run) + prepacked_bytes(); }
  std::size_t prepacked_bytes() const { return bytes_at(Home::prepacked); }
  /// Tells holders to ask for a new plan.
  void retire() { retired_ = true; }
  bool is_retired() const { return retired_; }
  /// Whether it was made for little memory.
  bool is_shrunk() const { return shrunk_; }
  /// The number of operations that each run then computes twice.
  std::size_t repeated() const { return repeated_; }
  void set_shrunk(std::size_t repeated) {
    shrunk_ = true;
    repeated_ = repeated;
  }
  /// Speculative outputs, returned after the requested ones.
  const std::vector<Work::Result>& speculative() const { return speculative_; }
  void set_speculative(std::vector<Work::Result> outputs) { speculative_ = std::move(outputs); }
  /// The number of arguments set so far, in all runs.
  std::uint64_t arguments_set() const { return arguments_set_; }

 private:
  class Run;
  friend struct PlanBreaker;  // for tests that break a plan: the verifier must find each fault

  /// The known state of an argument; unknown while memory is 0 or the offset negative.
  struct BoundBuffer {
    cl_uint index;  ///< index of the kernel's argument; the offset's is the next
    ValueId root;
    std::int64_t offset;       ///< from the root's first element, in elements
    std::uint64_t memory = 0;  ///< see Buffer::id()
    std::int64_t set_offset = -1;
  };
  struct BoundScalar {
    cl_uint index;
    ValueId leaf;
    Dtype dtype;
    std::uint64_t bits = 0;
    bool set = false;
  };
  /// A command, ready to be enqueued.
  struct PreparedCommand {
    std::size_t command = 0;
    ::cl::Kernel kernel;
    ::cl::NDRange global, local;
    std::vector<BoundBuffer> fixed, changing;  ///< in the arena; all others
    std::vector<BoundScalar> scalars;
    double bytes = 0;
    bool skipped = false;             ///< an empty range
    std::uint64_t arena_version = 0;  ///< the arena's version that its fixed arguments were set for
  };

  std::size_t root(ValueId id) const { return static_cast<std::size_t>(recording_.value(id).root); }
  void build(ocl::Context& device);
  void prepare(const Launch& launch, PreparedCommand& prepared, ocl::Context& device);
  std::size_t bytes_at(Home home) const;
  std::string what() const;

  Recording recording_;
  std::vector<ValueId> keep_;
  Placement placement_;
  std::vector<PreparedCommand> prepared_;
  BatchCommands batches_;
  std::vector<ocl::KernelToBuild> compiled_by_run_;  ///< kernels compiled by the first run, in this process
  std::size_t kernels_ = 0, host_calls_ = 0, repeated_ = 0;
  std::uint64_t arguments_set_ = 0;
  bool shrunk_ = false;
  std::atomic<bool> retired_ = false;
  std::vector<Work::Result> speculative_;
};

}  // namespace clnet::exec
