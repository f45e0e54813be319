// A graph made ready to run again and again: its launches with arguments set, and a place for every value.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/exec/plan/arena.h"
#include "lib/exec/record/recorder.h"
#include "lib/exec/record/value.h"

namespace clnet::exec {

/// What a plan's leaf is this time.
struct Binding {
  std::function<std::shared_ptr<DeviceValue>()> on_device;  ///< called when a kernel needs a buffer
  const std::byte* scalar = nullptr;                        ///< the value of a host scalar
};

class Plan {
 public:
  /// Builds the recording's programs and places its values. The first values of the recording are its leaves, and `keep` are the
  /// values to return. Throws what a build throws.
  Plan(Recording recording, std::vector<ValueId> keep, ocl::Context& device);

  /// Enqueues all commands; returns the values of `keep`.
  std::vector<std::shared_ptr<DeviceValue>> replay(ocl::Context& device, Arena& arena, const std::vector<Binding>& leaves);

  std::size_t kernels() const { return kernels_; }
  std::size_t host_calls() const { return host_calls_; }
  /// Bytes of the intermediates that share the arena, and what they would take side by side.
  std::size_t planned_bytes() const { return layout_.bytes(); }
  std::size_t naive_bytes() const { return naive_bytes_; }
  /// Bytes of the buffers that every run, or the first, makes besides.
  std::size_t own_bytes() const;
  /// Arguments set so far, in all runs.
  std::uint64_t arguments_set() const { return arguments_set_; }

 private:
  class Run;
  /// Where a value lives: with the caller, in the arena, in a buffer of its own for this run, or for all runs.
  enum class Home { nowhere, leaf, arena, own, packed };

  struct BufferSlot {
    cl_uint index;  ///< of the kernel's argument; the offset's is the next
    ValueId root;
    std::int64_t offset;  ///< from the root's first element, in elements
    cl_mem memory = nullptr;
    std::int64_t set_offset = -1;
  };
  struct ScalarSlot {
    cl_uint index;
    ValueId leaf;
    Dtype dtype;
    std::uint64_t bits = 0;
    bool set = false;
  };
  /// A command, ready to be enqueued.
  struct Step {
    std::size_t command = 0;
    ::cl::Kernel kernel;
    ::cl::NDRange global, local;
    std::vector<BufferSlot> fixed, changing;  ///< in the arena or packed; all others
    std::vector<ScalarSlot> scalars;
    double bytes = 0;
    bool skipped = false;            ///< nothing to do: an empty range
    std::vector<ValueId> packs_for;  ///< leaves; while they stay the same, the launch is left out
    std::vector<ValueId> first_uses;
  };

  std::size_t root(ValueId id) const { return static_cast<std::size_t>(recording_.value(id).root); }
  /// By value: whether it is made from leaves only, and worth keeping as long as they stay the same.
  std::vector<bool> find_packed() const;
  void find_homes(const DeviceInfo& device);
  void build_programs(ocl::Context& device) const;
  void place(const ocl::Context& device);
  void prepare(const Launch& launch, Step& step, ocl::Context& device);
  std::string what() const;

  Recording recording_;
  std::vector<ValueId> keep_;
  std::vector<Home> homes_;                              ///< by root value
  std::vector<Layout::Place> places_;                    ///< by root value, where the home is the arena
  std::vector<bool> needs_buffer_;                       ///< by leaf
  std::vector<ocl::BufferPtr> packed_;                   ///< by root value, where the home is `packed`
  std::vector<std::weak_ptr<DeviceValue>> packed_from_;  ///< by leaf: what it was when its packed forms were made
  Layout layout_;
  std::vector<Step> steps_;
  std::uint64_t generation_ = 0;
  std::size_t naive_bytes_ = 0, kernels_ = 0, host_calls_ = 0;
  std::uint64_t arguments_set_ = 0;
};

}  // namespace clnet::exec
