// How kernels are built ahead of their first launch.
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

/// From so many work-items on in a dimension a driver may compile a kernel in another way than for a single group.
constexpr std::size_t large_range = 65535;

/// What it takes to run the first group of a launch on memory of its own, filled with zeros: some drivers compile a kernel when
/// it runs.
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
  std::vector<std::size_t> global = {};  ///< work-items to run, at least large_range in a dimension; none: one group
};

/// Told several times a second how many of the kernels are through. What it throws ends the building.
using BuildProgress = std::function<void(std::size_t done)>;

/// Told of each program, on the same thread, when all of its kernels are compiled.
using ProgramBuilt = std::function<void(const ProgramSource& program)>;

/// What is noted of a kernel, by this program or earlier ones.
enum class Noted : std::uint8_t { nothing, compiled, failed, crashed };

/// Kernels that are built while the program goes on. It ends with this.
class BuildingBeside {
 public:
  BuildingBeside() = default;
  virtual ~BuildingBeside() = default;
  BuildingBeside(const BuildingBeside&) = delete;
  BuildingBeside& operator=(const BuildingBeside&) = delete;
  /// Whether it has ended, well or not.
  virtual bool done() const = 0;
};

/// Builds nothing ahead: the driver compiles in this process, when it likes to. prebuilder_for() in lib/cl/quirks.h says where
/// another serves.
class Prebuilder {
 public:
  Prebuilder() = default;
  virtual ~Prebuilder() = default;
  Prebuilder(const Prebuilder&) = delete;
  Prebuilder& operator=(const Prebuilder&) = delete;

  /// Which kernels it is to be given. `some`: clnet's own that run over no large range, to save time. `all`: the compiler may end
  /// its process, and no kernel is compiled here that was not compiled elsewhere before.
  enum class Takes : std::uint8_t { nothing, some, all };
  virtual Takes takes() const { return Takes::nothing; }
  /// Builds those that were not built before, unless they are too few for the effort: how many it has compiled. Whatever goes
  /// wrong costs time only, as the driver compiles here what is missing.
  virtual std::size_t build(const std::vector<KernelToBuild>& /*kernels*/, const BuildProgress& /*progress*/,
                            const ProgramBuilt& /*built*/) const {
    return 0;
  }

  virtual std::vector<Noted> noted(const std::vector<KernelToBuild>& kernels) const {
    return std::vector<Noted>(kernels.size(), Noted::nothing);
  }
  /// Notes those that no note tells of as compiled: this process has run them.
  virtual void note_run(const std::vector<KernelToBuild>& /*kernels*/) const {}
  /// Where the notes are; empty where there are none.
  virtual std::string notes_file() const { return {}; }
  /// Whether all of them were compiled, as far as is noted: none has failed.
  bool has_built(const std::vector<KernelToBuild>& kernels) const;

  /// How soon somebody may want what is built beside.
  enum class Haste : std::uint8_t { soon, when_idle };
  virtual bool builds_beside(Haste /*haste*/) const { return false; }
  /// Where builds_beside(); else null. Throws std::system_error where the host has no thread left.
  virtual std::unique_ptr<BuildingBeside> build_beside(std::vector<KernelToBuild> /*kernels*/, Haste /*haste*/) const {
    return nullptr;
  }
};

}  // namespace clnet::ocl
