// Programs built from the embedded kernels or from generated source: once per process in memory, and across runs on disk.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "lib/cl/kernel_source.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// Programs with this define are built for twice the registers per work-item and half the work-items: an option of Intel's
/// compilers.
constexpr std::string_view large_register_file = "LARGE_REGISTER_FILE";

/// The source of a program. Defines become sorted #define lines before the source; their values need no quoting.
struct ProgramSource {
  std::string name;    ///< a file in kernels/ without ".cl"; or a title, where `source` is given
  std::string source;  ///< empty: the embedded file (or that in CLNET_KERNEL_DIR); may use #include "x.clh"
  std::map<std::string, std::string> defines;
  bool few_builtins = false;  ///< the source calls only functions of kernels/builtins.clh, as files in kernels/ do

  /// Whether it is a user's source, which may call any OpenCL function and run for any time.
  bool users() const { return !source.empty() && !few_builtins; }

  auto operator<=>(const ProgramSource&) const = default;
};

/// A program's text: its defines and its source, with includes resolved.
std::string full_source(const ProgramSource& program);

/// The texts and compiler options for a program, to try in order until one compiles.
std::vector<std::pair<std::string, std::string>> ways_to_build(const ProgramSource& program, const DeviceInfo& device);

class ProgramCache {
 public:
  ProgramCache(cl::Context context, cl::Device device, const DeviceInfo& info);
  ~ProgramCache();

  /// A new kernel object of a program; builds the program if needed. Throws BuildError with the compiler's log and the numbered
  /// source, Unsupported where there is no such program file.
  cl::Kernel kernel(const ProgramSource& program, const std::string& function);
  /// Builds without making a kernel; several threads may build different programs at once.
  void prepare(const ProgramSource& program);
  /// Whether it is built: neither kernel() nor prepare() would wait for a compiler.
  bool has(const ProgramSource& program) const;
  /// Notes a program that is likely to be needed soon.
  void foresee(const ProgramSource& program);
  /// The noted programs that are not built.
  std::vector<ProgramSource> foreseen() const;
  /// The number of requested programs that were not foreseen.
  std::uint64_t unforeseen() const;
  /// The number of programs built from source, and loaded from disk, so far.
  std::uint64_t built() const;
  std::uint64_t loaded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clnet::ocl
