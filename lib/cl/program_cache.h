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

/// Programs that define it are built for twice the registers per work-item and half the work-items, as Intel's compilers offer.
constexpr std::string_view large_register_file = "LARGE_REGISTER_FILE";

/// What a program is built from. Defines stand as #define lines, sorted, before the source, where their values need no quoting.
struct ProgramSource {
  std::string name;    ///< of a file in kernels/ without ".cl"; or a title, when `source` is given
  std::string source;  ///< empty: the embedded file (or the one in CLNET_KERNEL_DIR); may use #include "x.clh" either way
  std::map<std::string, std::string> defines;
  bool few_builtins = false;  ///< the source calls only what kernels/builtins.clh declares, as files in kernels/ do

  /// Whether it may call any of OpenCL's functions, and run for as long as it likes.
  bool users() const { return !source.empty() && !few_builtins; }

  auto operator<=>(const ProgramSource&) const = default;
};

/// A program's text: its defines, and its source with what that includes.
std::string full_source(const ProgramSource& program);

/// The texts that a program may be built from and their compiler's options: where the first does not compile, the next one.
std::vector<std::pair<std::string, std::string>> ways_to_build(const ProgramSource& program, const DeviceInfo& device);

class ProgramCache {
 public:
  ProgramCache(cl::Context context, cl::Device device, const DeviceInfo& info);
  ~ProgramCache();

  /// A new kernel object of a program, which is built if need be. Throws BuildError with the compiler's log and the numbered
  /// source; Unsupported when there is no such program file.
  cl::Kernel kernel(const ProgramSource& program, const std::string& function);
  /// Builds without making a kernel; several threads may build different programs at once.
  void prepare(const ProgramSource& program);
  /// Whether it is there: neither kernel() nor prepare() would wait for a compiler.
  bool has(const ProgramSource& program) const;
  /// Notes a program that nobody needs yet, but somebody is likely to.
  void foresee(const ProgramSource& program);
  /// Those of them that are not there.
  std::vector<ProgramSource> foreseen() const;
  /// How many others were asked for.
  std::uint64_t unforeseen() const;
  /// Programs built from source, and loaded from disk, so far.
  std::uint64_t built() const;
  std::uint64_t loaded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clnet::ocl
