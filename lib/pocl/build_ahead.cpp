#include "lib/pocl/build_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/hash.h"
#include "lib/base/key_locks.h"
#include "lib/base/log.h"
#include "lib/pocl/jobs.h"
#include "lib/pocl/notes.h"
#include "lib/pocl/workers.h"

namespace clnet::pocl {

using ocl::KernelToBuild, ocl::Noted, ocl::ProgramSource;
using std::chrono::milliseconds;

namespace {

/// Fewer are compiled sooner than the processes start.
constexpr std::size_t fewest = 4;
/// So often the progress of others is looked at.
constexpr milliseconds tick{50};

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

/// Has so many processes compile those of the kernels that have no note: how many of them are. `keep`: where those are that have
/// waited since the last time, and wait for the next; null: they end.
std::size_t compile(const DeviceInfo& device, const std::vector<const KernelToBuild*>& kernels, std::int64_t most,
                    const BuildProcesses& processes, std::unique_ptr<Workers>* keep, const std::stop_token& stop,
                    const Told& told) {
  auto& notes = notes_of(processes);
  std::size_t compiled = 0, noted = 0;
  for (auto jobs = jobs_of(device, kernels, notes); !jobs.empty() && !stop.stop_requested();
       jobs = jobs_of(device, kernels, notes)) {
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

/// The kernels of a plan that have no note, and that this process has not taken yet.
class Unnoted {
 public:
  Unnoted(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes)
      : notes_(notes_of(processes)) {
    const auto state = state_of(device);
    for (const auto& kernel : kernels)
      if (auto note = note_of(state, kernel); notes_.of(note) == Noted::nothing) programs_[&kernel.program].add(kernel, note);
    for (auto& [source, program] : programs_) {
      Hash key;
      key.add(state).add(source->name).add(source->source);
      for (const auto& [name, value] : source->defines) key.add(name).add(value);
      program.key = key.hex();
    }
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto& [source, program] : programs_) sum += program.notes.size();
    return sum;
  }
  bool few() const { return programs_.size() < 2 || count() < fewest; }

  /// Of programs that no other process is compiling, whose locks are taken. What others have noted meanwhile goes, too.
  std::vector<const KernelToBuild*> take(KeyLocks& locks, const ocl::ProgramBuilt& built) {
    for (auto& [source, program] : programs_) program.own = locks.take(program.key);
    // Behind the locks: whoever had one noted before it was free.
    notes_.read_again();
    for (auto& [source, program] : programs_)
      if (program.drop_noted(notes_) && built) built(*source);
    return take_own();
  }
  std::vector<const KernelToBuild*> take_all() {
    for (auto& [source, program] : programs_) program.own = true;
    return take_own();
  }

 private:
  struct Less {
    bool operator()(const ProgramSource* a, const ProgramSource* b) const { return *a < *b; }
  };
  struct Program {
    std::string key;
    std::vector<std::pair<std::string, const KernelToBuild*>> notes;  ///< in the order of the plan
    bool own = false;
    void add(const KernelToBuild& kernel, std::string note) {
      const bool known = std::any_of(notes.begin(), notes.end(), [&](const auto& other) { return other.first == note; });
      if (!known) notes.emplace_back(std::move(note), &kernel);
    }
    /// Whether none is left.
    bool drop_noted(const Notes& known) {
      std::erase_if(notes, [&](const auto& kernel) { return known.of(kernel.first) != Noted::nothing; });
      return notes.empty();
    }
  };

  std::vector<const KernelToBuild*> take_own() {
    std::vector<const KernelToBuild*> own;
    for (const auto& [source, program] : programs_)
      for (const auto& [note, kernel] : program.notes)
        if (program.own) own.push_back(kernel);
    std::erase_if(programs_, [](const auto& program) { return program.second.own || program.second.notes.empty(); });
    return own;
  }

  Notes& notes_;
  std::map<const ProgramSource*, Program, Less> programs_;
};

}  // namespace

std::size_t build_ahead(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes,
                        const ocl::BuildProgress& progress, const ocl::ProgramBuilt& built) {
  if (!processes.apart && (processes.count <= 1 || kernels.size() < fewest)) return 0;
  auto& turns = turns_of(device, processes);
  std::unique_lock lock(turns.ahead, std::defer_lock);
  while (!lock.try_lock_for(tick))
    if (progress) progress(0);
  auto* const keep = processes.apart ? &turns.waiting : nullptr;
  Unnoted unnoted(device, kernels, processes);
  const auto all = unnoted.count();
  if (!processes.apart && unnoted.few()) return 0;
  std::size_t compiled = 0;
  for (milliseconds silent{0}; unnoted.count() > 0;) {
    // Another program's process may be at some of them: these are waited for, unless they come to nothing.
    KeyLocks locks(locks_file(processes));
    const auto before = unnoted.count();
    const auto own = silent < processes.patience ? unnoted.take(locks, built) : unnoted.take_all();
    const auto done = all - unnoted.count() - own.size();
    if (!own.empty()) {
      const auto told = [&](std::size_t noted) {
        if (progress) progress(done + noted);
      };
      compiled += compile(device, own, processes.count, processes, keep, {}, {told, built});
    } else if (progress) {
      progress(done);
    }
    silent = unnoted.count() < before ? milliseconds(0) : silent + tick;
    if (own.empty() && unnoted.count() > 0) std::this_thread::sleep_for(tick);
  }
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
          while (!lock.try_lock_for(tick))
            if (stop.stop_requested()) return;
          std::vector<const KernelToBuild*> all;
          for (const auto& kernel : kernels) all.push_back(&kernel);
          compile(device, all, 1, processes, nullptr, stop, {});
        } catch (const std::exception& error) {
          logging::print(logging::Level::plan, "kernels are not compiled beside the program: {}", error.what());
        }
        done_ = true;
      }) {}

}  // namespace clnet::pocl
