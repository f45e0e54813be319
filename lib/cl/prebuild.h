// Building of kernels ahead of their first launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lib/cl/program_cache.h"

namespace clnet::ocl {

/// From this many work-items in a dimension on, a driver may compile a kernel differently than for a single group.
constexpr std::size_t large_range = 65535;

/// The data to run the first group of a launch on zeroed memory of its own: some drivers compile a kernel when it runs.
struct KernelToBuild {
  struct Buffer {
    std::size_t bytes = 0;
  };
  struct Local {
    std::size_t bytes = 0;
  };
  struct Scalar {
    std::size_t bytes = 0;
    std::uint64_t bits = 0;
  };
  using Argument = std::variant<Buffer, Local, Scalar, std::uint64_t, std::int32_t, float>;

  ProgramSource program;
  std::string function;
  std::vector<std::size_t> local;
  std::vector<Argument> arguments;
  std::vector<std::size_t> global = {};  ///< work-items to run, at least large_range in a dimension; empty: one group
};

/// Receives the number of finished kernels several times a second. An exception from it ends the building.
using BuildProgress = std::function<void(std::size_t done)>;

/// Receives each program, on the same thread, when all its kernels are compiled.
using ProgramBuilt = std::function<void(const ProgramSource& program)>;

/// The note on a kernel, by this program or earlier ones.
enum class Noted : std::uint8_t { nothing, compiled, failed, crashed };

/// A build beside the running program. The destructor ends it.
class BuildingBeside {
 public:
  BuildingBeside() = default;
  virtual ~BuildingBeside() = default;
  BuildingBeside(const BuildingBeside&) = delete;
  BuildingBeside& operator=(const BuildingBeside&) = delete;
  /// Whether it has ended, with success or not.
  virtual bool done() const = 0;
};

/// The default builds nothing ahead: the driver compiles in this process, at its own time. prebuilder_for() in lib/cl/quirks.h
/// chooses another where that helps.
class Prebuilder {
 public:
  Prebuilder() = default;
  virtual ~Prebuilder() = default;
  Prebuilder(const Prebuilder&) = delete;
  Prebuilder& operator=(const Prebuilder&) = delete;

  /// The kernels that build() expects. `some`: clnet's own without a large range, to save time. `all`: the compiler may end its
  /// process, so no kernel is compiled here before it was compiled elsewhere.
  enum class Takes : std::uint8_t { nothing, some, all };
  virtual Takes takes() const { return Takes::nothing; }
  /// Builds the new ones among `kernels`, unless they are too few for the effort, and returns their number. A failure costs time
  /// only: the driver then compiles the rest here.
  virtual std::size_t build(const std::vector<KernelToBuild>& /*kernels*/, const BuildProgress& /*progress*/,
                            const ProgramBuilt& /*built*/) const {
    return 0;
  }

  virtual std::vector<Noted> noted(const std::vector<KernelToBuild>& kernels) const {
    return std::vector<Noted>(kernels.size(), Noted::nothing);
  }
  /// Notes kernels without a note as compiled: this process has run them.
  virtual void note_run(const std::vector<KernelToBuild>& /*kernels*/) const {}
  /// The file of the notes; empty: none.
  virtual std::string notes_file() const { return {}; }
  /// Whether notes show all of them as compiled and none as failed.
  bool has_built(const std::vector<KernelToBuild>& kernels) const;

  /// How soon the kernels may be needed.
  enum class Haste : std::uint8_t { soon, when_idle };
  virtual bool builds_beside(Haste /*haste*/) const { return false; }
  /// Starts a build beside the program where builds_beside(), else returns null. Throws std::system_error where the host has no
  /// thread left.
  virtual std::unique_ptr<BuildingBeside> build_beside(std::vector<KernelToBuild> /*kernels*/, Haste /*haste*/) const {
    return nullptr;
  }
};

}  // namespace clnet::ocl
