#include "lib/cl/quirks.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/env.h"
#include "lib/pocl/door.h"

namespace clnet::ocl {

namespace {

using pocl::is_pocl;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
/// PoCL's driver for CPUs without threads of its own: the thread that waits runs the kernels.
bool pocl_basic(const DeviceInfo& info) {
  return is_pocl(info) && (info.name.starts_with("basic") || info.name.starts_with("cpu-minimal"));
}
bool pocl_on_cpu(const DeviceInfo& info) { return is_pocl(info) && info.type == DeviceType::cpu; }
bool pocl_workers(const DeviceInfo& info) { return pocl_on_cpu(info) && !pocl_basic(info); }

/// The number before the first point of its version; 0 where there is none.
int pocl_release(const DeviceInfo& info) {
  int release = 0;
  std::from_chars(info.driver_version.data(), info.driver_version.data() + info.driver_version.size(), release);
  return release;
}

constexpr std::array table{
    Quirk{"local-memory-aborts",
          "more than 1 MiB of local memory aborts the process: it is capped at that, and kernels that use more are refused",
          pocl_on_cpu, [](DeviceInfo& info) { info.local_memory = std::min(info.local_memory, std::size_t{1} << 20); }},
    Quirk{
        "compiles-when-run",
        "compiles a kernel when it first runs, also while the process exits and LLVM is torn down: clnet waits for the first run "
        "of each plan",
        [](const DeviceInfo& info) { return pocl_on_cpu(info) || info.platform == "rusticl"; }, [](DeviceInfo&) {}},
    Quirk{
        "compiles-one-at-a-time",
        "compiles one kernel at a time in a process: several processes compile those of a plan into its cache on disk before the "
        "first run",
        pocl_on_cpu, [](DeviceInfo&) {}},
    Quirk{"costly-commands",
          "a command takes longer than many a kernel: short launches of plans that run often become one command "
          "(CLNET_LAUNCH_BATCHES)",
          pocl_on_cpu, [](DeviceInfo&) {}},
    Quirk{"compiler-aborts",
          "with LLVM 18 the compiler ends the process over some kernels (pocl#1608): new kernels are compiled in other processes "
          "first, and what crashes one is not used (CLNET_COMPILE_APART)",
          [](const DeviceInfo& info) { return pocl_on_cpu(info) && pocl_release(info) >= 5; }, [](DeviceInfo&) {}},
    Quirk{"pocl-wakes",
          "each command wakes all worker threads, which take the cores from the host that is about to enqueue the next: the "
          "commands of a short plan are held back until the last of them is enqueued",
          pocl_workers, [](DeviceInfo&) {}},
    Quirk{
        "pocl-basic",
        "the driver without workers (POCL_DEVICES=basic) locks up over commands that wait for the host, another queue or another "
        "thread: nothing is held back, clnet's own background threads leave it alone, and a program should use it from one "
        "thread",
        pocl_basic, [](DeviceInfo& info) { info.thread_safe = false; }},
    Quirk{"pocl-affinity",
          "on virtual machines the worker threads pile up on one core unless POCL_AFFINITY=1 is set; on a shared machine pinning "
          "can hurt, so clnet leaves the choice to the user",
          pocl_workers, [](DeviceInfo&) {}},
    Quirk{"driver-caches-programs",
          "PoCL and NVIDIA keep built programs on disk themselves, and PoCL compiles an extra variant when asked for a binary: "
          "clnet's own cache stays off",
          [](const DeviceInfo& info) { return is_pocl(info) || contains(info.platform, "NVIDIA CUDA"); },
          [](DeviceInfo& info) { info.caches_programs = true; }},
    Quirk{"nvidia-groups",
          "refuses more than 65535 work-groups in a launch's second or third dimension, which OpenCL has no question for: larger "
          "launches are enqueued in pieces",
          [](const DeviceInfo& info) { return contains(info.platform, "NVIDIA CUDA"); },
          [](DeviceInfo& info) { info.max_groups_across = 65535; }},
    Quirk{
        "nvidia-reads",
        "a read into ordinary memory that does not block takes 52 microseconds instead of 17, as another thread copies: clnet's "
        "reads block",
        [](const DeviceInfo& info) { return contains(info.platform, "NVIDIA CUDA"); }, [](DeviceInfo&) {}},
    Quirk{
        "nvidia-halves",
        "does not report cl_khr_fp16 and has vload_half nevertheless, in one instruction: kernels call it, where others without "
        "the extension convert halves by hand",
        [](const DeviceInfo& info) { return contains(info.platform, "NVIDIA CUDA"); }, [](DeviceInfo&) {}},
    Quirk{"pocl-declarations",
          "reads a header of 18,000 lines for every program, which is much of the time that building takes: clnet's kernels are "
          "built with declarations of their own (kernels/builtins.clh), on the versions this was tried on, 3.1 and 6.0",
          [](const DeviceInfo& info) {
            return is_pocl(info) && (info.driver_version.starts_with("3.1") || info.driver_version.starts_with("6.0"));
          },
          [](DeviceInfo&) {}},
    Quirk{"attention-miscompiled",
          "PoCL 6 does not make the same machine code of attention's kernel for GPUs each time, and some of it is wrong: it is "
          "refused there",
          [](const DeviceInfo& info) { return pocl_on_cpu(info) && pocl_release(info) == 6; }, [](DeviceInfo&) {}},
    Quirk{"llvmpipe-scalar",
          "reports a CPU but runs one work-item per SIMD lane: vector kernels crawl there and one gave wrong results, so kernels "
          "for GPUs are used",
          [](const DeviceInfo& info) { return contains(info.name, "llvmpipe"); },
          [](DeviceInfo& info) { info.prefers_vector_kernels = false; }},
    Quirk{"llvmpipe-loops",
          "leaves the loops of a kernel, wrongly and silently, after 65535 iterations in all: kernels that it may run must share "
          "longer loops among more work-items",
          [](const DeviceInfo& info) { return contains(info.name, "llvmpipe"); }, [](DeviceInfo&) {}},
    Quirk{
        "rusticl-foreign-binary",
        "aborts the process when it is given a binary that is not its own; clnet's cache files carry a checksum and the driver's "
        "version, so it is never given one",
        [](const DeviceInfo& info) { return info.platform == "rusticl"; }, [](DeviceInfo&) {}},
    Quirk{"rusticl-kernel-groups",
          "says that kernels take groups of 32 work-items, and runs them in groups as large as the device's: it is not asked",
          [](const DeviceInfo& info) { return info.platform == "rusticl"; }, [](DeviceInfo&) {}},
    Quirk{"intel-dropout",
          "the compiler for CPUs draws one item's numbers for all of a group in one kernel for GPUs, attention's gradient with "
          "dropout: it is refused there",
          [](const DeviceInfo& info) { return contains(info.platform, "Intel") && info.type == DeviceType::cpu; },
          [](DeviceInfo&) {}},
    Quirk{"oclgrind-threads",
          "crashes when two threads call it, or one at exit: clnet's own background threads and its last words leave the device "
          "alone",
          [](const DeviceInfo& info) { return info.platform == "Oclgrind"; }, [](DeviceInfo& info) { info.thread_safe = false; }},
    Quirk{"oclgrind-buffers",
          "knows the bounds of buffers, not of what a pool keeps in them, and follows only as much of one as the host's first "
          "write "
          "covers: every buffer is made anew, of the exact size",
          [](const DeviceInfo& info) { return info.platform == "Oclgrind"; },
          [](DeviceInfo& info) { info.reuses_buffers = false; }},
    Quirk{"oclgrind-clblast",
          "reports CLBlast's kernels for uninitialised values, and loses its own heap over them: they are not used",
          [](const DeviceInfo& info) { return info.platform == "Oclgrind"; },
          [](DeviceInfo& info) { info.runs_clblast = false; }},
    Quirk{"oclgrind-types", "the simulator says it is a GPU, an accelerator and a CPU at once: it is taken for a CPU",
          [](const DeviceInfo& info) { return info.platform == "Oclgrind"; },
          [](DeviceInfo& info) { info.type = DeviceType::cpu; }},
};

/// Whether the library does as drivers' habits ask for. What keeps a process alive and results right is no habit.
bool heeds_habits() { return env::flag("CLNET_DRIVER_HABITS", true); }

}  // namespace

std::span<const Quirk> quirks() { return table; }

void apply_quirks(DeviceInfo& info) {
  for (const Quirk& quirk : table) {
    if (!quirk.applies(info)) continue;
    quirk.work_around(info);
    info.quirks.emplace_back(quirk.name);
  }
}

bool has_quirk(const DeviceInfo& info, std::string_view name) {
  return std::find(info.quirks.begin(), info.quirks.end(), name) != info.quirks.end();
}

bool runs_in_process(const DeviceInfo& info) { return pocl_on_cpu(info); }

bool reads_long_header(const DeviceInfo& info) { return has_quirk(info, "pocl-declarations"); }

std::unique_ptr<Submission> submission_for(const cl::Context& context, const cl::Device& device, const DeviceInfo& info,
                                           bool own_queue) {
  if (has_quirk(info, "pocl-wakes") && heeds_habits()) return pocl::submission_for(context, device, info, own_queue);
  return std::make_unique<Submission>();
}

std::unique_ptr<Prebuilder> prebuilder_for(const DeviceInfo& device) {
  auto found = pocl::prebuilder_for(device);
  if (found && (heeds_habits() || found->takes() == Prebuilder::Takes::all)) return found;
  return std::make_unique<Prebuilder>();
}

void end_prebuilders() { pocl::end_prebuilders(); }

std::string why_unusable(const DeviceInfo& info) { return is_pocl(info) ? pocl::why_unusable() : std::string(); }

std::string driver_advice() { return pocl::advice(); }

}  // namespace clnet::ocl
