// Kernels compiled before their first launch by several processes: for drivers that compile one at a time in a process and keep
// what they compiled on disk (the quirk pocl-builds), and for drivers whose compiler may end the process (compiler-aborts).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/program_cache.h"

namespace clnet::ocl {

/// What a process of its own needs to run the first group of a launch on memory of its own, filled with zeros: the driver
/// compiles a kernel when it runs.
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
  std::vector<std::size_t> global = {};  ///< work-items to run; none: one group
};

/// How the processes are made; what is not given is found.
struct BuildProcesses {
  std::string program;  ///< clnet-build-kernels
  std::string folder;   ///< where the driver keeps what it compiled; which kernels are there is noted in a file of clnet's
  std::int64_t count = 1;
  bool apart = false;  ///< the driver's compiler may end its process: no kernel is compiled elsewhere before it was here
  bool idle = false;   ///< they run when nothing else does
  std::chrono::seconds patience{60};  ///< without a program built; they are killed then
};

/// The processes for a device; a count of 1, and not `apart`, where they are of no use: drivers that need none, one core, no
/// cache on disk, no program (in the folder `clnet` beside the library), or CLNET_BUILD_PROCESSES=1.
BuildProcesses build_processes(const DeviceInfo& device);

/// Told several times a second how many of the kernels the processes are through with. What it throws ends them.
using BuildProgress = std::function<void(std::size_t done)>;

/// Told of each program, on the same thread, when all of its kernels are compiled.
using ProgramBuilt = std::function<void(const ProgramSource& program)>;

/// Has those kernels compiled that were not before, unless they are too few for the effort: how many the processes compiled.
/// Whatever goes wrong there costs time only, as the driver compiles in this process what is missing. Where they compile apart
/// the processes wait some seconds for the next plan.
std::size_t build_ahead(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes,
                        const BuildProgress& progress = {}, const ProgramBuilt& built = {});

/// Ends those that wait. Called while the process ends, or the library is unloaded.
void end_build_processes();

/// What is noted there of a kernel, by processes of this program or earlier ones.
enum class Noted : std::uint8_t { nothing, compiled, failed, crashed };
std::vector<Noted> noted(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes);
/// Notes those that no note tells of as compiled: this process has run them.
void note_run(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes);
/// The file with the notes.
std::string notes_file(const BuildProcesses& processes);

/// Whether processes have compiled all of them, as far as is noted there: none has failed.
bool is_built(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes);

/// One process that compiles kernels while this one goes on. It ends with this.
class BuildBeside {
 public:
  BuildBeside(const DeviceInfo& device, std::vector<KernelToBuild> kernels, BuildProcesses processes);
  ~BuildBeside();
  BuildBeside(const BuildBeside&) = delete;
  BuildBeside& operator=(const BuildBeside&) = delete;
  /// Whether it has ended, well or not.
  bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clnet::ocl
