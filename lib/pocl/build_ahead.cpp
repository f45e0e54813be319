#include "lib/pocl/build_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "lib/base/log.h"
#include "lib/pocl/jobs.h"
#include "lib/pocl/notes.h"
#include "lib/pocl/workers.h"

namespace clnet::pocl {

using ocl::KernelToBuild, ocl::Noted;

namespace {

/// Fewer are compiled sooner than the processes start.
constexpr std::size_t fewest = 4;

/// Those of a device that wait for the next plan, and its turns. One plan of a device at a time: the next one may want the same
/// kernels. Nobody waits for an idle one.
struct Turns {
  std::string key;  ///< what the workers are made for
  Turns* next = nullptr;
  std::timed_mutex ahead, beside, idle;
  std::unique_ptr<Workers> waiting;
};

/// Of all devices. Only grows, so that no device waits for another one's look-up.
std::atomic<Turns*> all_turns{nullptr};

Turns& turns_of(const DeviceInfo& device, const BuildProcesses& processes) {
  auto made = std::make_unique<Turns>();
  made->key = fmt::format("{} {} {} {}", device.platform_index, device.device_index, processes.program, device.name);
  made->next = all_turns;
  do {
    for (auto* turns = made->next; turns; turns = turns->next)
      if (turns->key == made->key) return *turns;
  } while (!all_turns.compare_exchange_weak(made->next, made.get()));
  return *made.release();
}

/// Has so many processes compile the kernels, whose jobs these are: how many of them are. `keep`: where those are that have
/// waited since the last time, and wait for the next; null: they end.
std::size_t compile(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, std::vector<Job> jobs, std::int64_t most,
                    const BuildProcesses& processes, std::unique_ptr<Workers>* keep, const std::stop_token& stop,
                    const Told& told) {
  auto& notes = notes_of(processes);
  std::size_t compiled = 0, noted = 0;
  for (; !jobs.empty() && !stop.stop_requested(); jobs = jobs_of(device, kernels, notes)) {
    const auto start = std::chrono::steady_clock::now();
    const auto count = std::min(most, static_cast<std::int64_t>(jobs.size()));
    std::unique_ptr<Workers> workers = keep ? std::move(*keep) : nullptr;
    // One that does not know a kernel yet is a fair judge of what ended another.
    const bool waited = workers && !jobs.front().suspect && workers->wait(count);
    if (!waited) {
      workers.reset();
      workers = std::make_unique<Workers>(device, processes, count);
    }
    const auto before = noted;
    const auto progress = told.progress ? [&](std::size_t done) { told.progress(before + done); } : ocl::BuildProgress{};
    const auto said = workers->give(std::move(jobs), notes, stop, {progress, told.built});
    compiled += said.compiled;
    noted += said.noted;
    logging::print(logging::Level::plan, "{} of {} new kernels compiled by {} {} in {:.0f} ms", said.compiled, said.noted,
                   workers->count(), waited ? "processes that waited" : "processes",
                   std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (keep && said.all) *keep = std::move(workers);
    // Those of a program whose first kernel crashed are still to be tried, and what processes missed that ended meanwhile.
    if (!processes.apart || (said.noted == 0 && !said.tries_again && !waited)) break;
  }
  return compiled;
}

}  // namespace

std::size_t build_ahead(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes,
                        const ocl::BuildProgress& progress, const ocl::ProgramBuilt& built) {
  if (!processes.apart && (processes.count <= 1 || kernels.size() < fewest)) return 0;
  auto& turns = turns_of(device, processes);
  std::unique_lock lock(turns.ahead, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(50)))
    if (progress) progress(0);
  auto jobs = jobs_of(device, kernels, notes_of(processes));
  std::size_t wanted = 0;
  for (const auto& job : jobs) wanted += job.kernels.size();
  if (!processes.apart && (jobs.size() < 2 || wanted < fewest)) return 0;
  const auto compiled = compile(device, kernels, std::move(jobs), processes.count, processes,
                                processes.apart ? &turns.waiting : nullptr, {}, {progress, built});
  if (!processes.apart) return compiled;
  const auto ends = noted(device, kernels, processes);
  if (std::find(ends.begin(), ends.end(), Noted::nothing) != ends.end())
    logging::warn_once(
        "kernels are compiled in this process, which ends when the driver's compiler crashes: clnet-build-kernels compiles "
        "nothing for this device");
  return compiled;
}

void end_build_processes() {
  // Whoever is at it ends them, or they see that this process has ended.
  for (auto* turns = all_turns.load(); turns; turns = turns->next)
    if (const std::unique_lock lock(turns->ahead, std::try_to_lock); lock) turns->waiting.reset();
}

BuildBeside::BuildBeside(const DeviceInfo& device, std::vector<KernelToBuild> kernels, BuildProcesses processes)
    : thread_([this, device, kernels = std::move(kernels), processes = std::move(processes)](const std::stop_token& stop) {
        try {
          auto& turns = turns_of(device, processes);
          std::unique_lock lock(processes.idle ? turns.idle : turns.beside, std::defer_lock);
          while (!lock.try_lock_for(std::chrono::milliseconds(50)))
            if (stop.stop_requested()) return;
          compile(device, kernels, jobs_of(device, kernels, notes_of(processes)), 1, processes, nullptr, stop, {});
        } catch (const std::exception& error) {
          logging::print(logging::Level::plan, "kernels are not compiled beside the program: {}", error.what());
        }
        done_ = true;
      }) {}

}  // namespace clnet::pocl
