#include "lib/cl/build_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/os/access.h"
#include "lib/base/os/descriptor.h"
#include "lib/base/os/own_library.h"
#include "lib/base/os/process.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/quirks.h"

namespace clnet::ocl {

namespace {

using nlohmann::json;

/// Fewer are compiled sooner than the processes start.
constexpr std::size_t fewest = 4;
constexpr std::int64_t most_processes = 8;
constexpr std::uint64_t largest_notes = 16 << 20;

/// What was compiled before, or could not be, by lines of a file in the driver's own folder: with what it tells of, it goes. Any
/// thread may ask and add.
class Notes {
 public:
  explicit Notes(const std::string& path) : path_(path) {
    try {
      std::istringstream file(file::read(path_, largest_notes));
      for (std::string line; std::getline(file, line);) known_.insert(std::move(line));
    } catch (const FileError&) {
      // What has grown too large, or is no file, begins anew.
      std::error_code code;
      std::filesystem::remove(path_, code);
    }
  }
  /// A crash is final, and whoever compiled a kernel may do so again where another could not.
  Noted of(const std::string& kernel) const {
    const std::lock_guard lock(mutex_);
    for (const auto end : {Noted::crashed, Noted::compiled, Noted::failed})
      if (known_.contains(kernel + suffix(end))) return end;
    return Noted::nothing;
  }
  /// In one write, so that lines of several processes do not mix.
  void add(const std::string& kernel, Noted end) {
    const std::lock_guard lock(mutex_);
    const auto line = *known_.insert(kernel + suffix(end)).first + '\n';
    if (const auto file = os::open(path_, os::Opening::append_or_create); file.is_open()) file.write_all(line);
  }
  /// Whether it has ended a process for the first time that this program knows of: that may have been for other reasons.
  bool deserves_another_try(const std::string& kernel) {
    const std::lock_guard lock(mutex_);
    return suspects_.insert(kernel).second;
  }
  bool is_suspect(const std::string& kernel) const {
    const std::lock_guard lock(mutex_);
    return suspects_.contains(kernel);
  }

 private:
  static const char* suffix(Noted end) { return end == Noted::compiled ? "" : end == Noted::failed ? " failed" : " crashed"; }

  std::string path_;
  mutable std::mutex mutex_;
  std::set<std::string> known_, suspects_;
};

/// Those for such processes, read once.
Notes& notes_of(const BuildProcesses& processes) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Notes>;
  const auto path = notes_file(processes);
  const std::lock_guard lock(mutex);
  return all.try_emplace(path, path).first->second;
}

/// The kernels of one program, which one process compiles.
struct Job {
  const ProgramSource* program = nullptr;
  json text;
  std::vector<std::string> kernels;  ///< for Notes
  std::size_t size = 0;              ///< of its source
  bool suspect = false;              ///< its first kernel is
};

/// What the processes say, as bits of a number: BuildWord in tools/build_kernels.cpp.
struct Said {
  enum class What : std::uint8_t { begun, done, refused };
  std::uint32_t kernel, process;
  What what;

  static std::optional<Said> parse(std::uint32_t word, std::size_t kernels) {
    const Said said{word >> 8, word >> 2 & 63U, static_cast<What>(word & 3U)};
    if (said.kernel >= kernels || (word & 3U) > 2) return std::nullopt;
    return said;
  }
};

struct SameProgram {
  bool operator()(const KernelToBuild* a, const KernelToBuild* b) const { return a->program < b->program; }
};

json arguments_of(const KernelToBuild& kernel) {
  json result = json::array();
  for (const auto& argument : kernel.arguments) {
    if (const auto* buffer = std::get_if<KernelToBuild::Buffer>(&argument)) {
      result.push_back({{"buffer", buffer->bytes}});
    } else if (const auto* local = std::get_if<KernelToBuild::Local>(&argument)) {
      result.push_back({{"local", local->bytes}});
    } else if (const auto* scalar = std::get_if<KernelToBuild::Scalar>(&argument)) {
      result.push_back({{"scalar", {scalar->bytes, scalar->bits}}});
    } else if (const auto* offset = std::get_if<std::uint64_t>(&argument)) {
      result.push_back({{"ulong", *offset}});
    } else if (const auto* integer = std::get_if<std::int32_t>(&argument)) {
      result.push_back({{"int", *integer}});
    } else {
      result.push_back({{"float", std::get<float>(argument)}});
    }
  }
  return result;
}

/// What all machine code depends on besides the kernels.
std::string state_of(const DeviceInfo& device) {
  auto state = identity(device);
  for (const char* variable : {"POCL_EXTRA_BUILD_FLAGS", "POCL_WORK_GROUP_METHOD"})
    if (const char* value = std::getenv(variable)) state += fmt::format(" | {}={}", variable, value);
  return state;
}

/// Of a kernel with all that its machine code depends on.
std::string note_of(const std::string& state, const KernelToBuild& kernel) {
  Hash note;
  note.add(state).add(kernel.program.name).add(kernel.program.source);
  for (const auto& [name, value] : kernel.program.defines) note.add(name).add(value);
  note.add(kernel.function).add(fmt::format("{}", fmt::join(kernel.local, " ")));
  // Which code drivers make may depend on whether a range is large, not on how large.
  if (!kernel.global.empty()) note.add("large");
  return note.hex();
}

std::vector<Job> jobs_of(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const Notes& notes) {
  const auto state = state_of(device);
  std::vector<std::pair<const KernelToBuild*, std::string>> wanted;
  for (const auto& kernel : kernels)
    if (auto note = note_of(state, kernel); notes.of(note) == Noted::nothing) wanted.emplace_back(&kernel, std::move(note));
  // In a process that has done nothing else, what ended another one shows whether it was to blame.
  const auto others =
      std::stable_partition(wanted.begin(), wanted.end(), [&](const auto& kernel) { return notes.is_suspect(kernel.second); });
  std::map<const KernelToBuild*, Job, SameProgram> jobs;
  for (auto at = wanted.begin(); at != wanted.end(); ++at) {
    auto& [kernel, note] = *at;
    auto& job = jobs[kernel];
    if (job.kernels.empty()) {
      job.program = &kernel->program;
      job.suspect = at < others;
      job.text = {{"builds", json::array()}, {"kernels", json::array()}, {"runs", !kernel->program.users()}};
      for (const auto& [text, options] : ways_to_build(kernel->program, device)) {
        job.size = text.size();
        job.text["builds"].push_back({{"source", text}, {"options", options}});
      }
    }
    if (std::find(job.kernels.begin(), job.kernels.end(), note) != job.kernels.end()) continue;
    job.kernels.push_back(std::move(note));
    job.text["kernels"].push_back({{"function", kernel->function},
                                   {"local", kernel->local},
                                   {"global", kernel->global},
                                   {"arguments", arguments_of(*kernel)}});
  }
  std::vector<Job> result;
  for (auto& [program, job] : jobs) result.push_back(std::move(job));
  // Then the long ones: nobody should begin one when the others are about to end.
  std::stable_sort(result.begin(), result.end(),
                   [](const Job& a, const Job& b) { return std::tie(a.suspect, a.size) > std::tie(b.suspect, b.size); });
  return result;
}

/// Where the text of a job lies in the memory that the processes read: BuildOrder in tools/build_kernels.cpp.
struct Order {
  std::uint64_t at = 0, bytes = 0;
};

/// A process finds its work by descriptors: of the jobs' texts, then of the orders, which the processes share, and where it says
/// which kernels are begun and done.
std::int64_t start_process(const std::string& program, const DeviceInfo& device, std::int64_t number,
                           const std::array<int, 3>& descriptors) {
  return os::start(
      {program, std::to_string(device.platform_index), std::to_string(device.device_index), std::to_string(number), device.name},
      descriptors);
}

/// Those that run, which are killed at the end.
class Children {
 public:
  Children() = default;
  ~Children() {
    // The number of one that has ended may be another's by now.
    running();
    for (const auto& child : running_) os::kill(child.process);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(std::int64_t process) {
    running_.push_back({process, static_cast<std::uint32_t>(count_)});
    ++count_;
  }
  std::int64_t count() const { return count_; }
  /// How many still run. The others are forgotten: the host itself may wait for them, and others get their numbers.
  std::int64_t running() {
    std::erase_if(running_, [&](const Child& child) {
      const auto state = os::state(child.process);
      // Where the host waits for its children itself, nobody tells how this one ended.
      if (state == os::Child::crashed || state == os::Child::unknown) crashed_.insert(child.number);
      return state != os::Child::runs;
    });
    return static_cast<std::int64_t>(running_.size());
  }
  bool crashed(std::uint32_t number) const { return crashed_.contains(number); }

 private:
  struct Child {
    std::int64_t process;
    std::uint32_t number;
  };
  std::vector<Child> running_;
  std::set<std::uint32_t> crashed_;
  std::int64_t count_ = 0;
};

/// What came of the kernels that were given to processes.
struct Followed {
  std::size_t compiled = 0, noted = 0;
  bool tries_again = false;  ///< some are to be tried once more before anything is noted of them
  bool all = false;          ///< the processes said how each of them ended, and wait for more
};

/// Who is told what while the processes compile.
struct Told {
  BuildProgress progress;
  ProgramBuilt built;
};

/// What the processes are to compile.
struct Kernels {
  struct Program {
    const ProgramSource* source = nullptr;
    std::size_t left = 0;  ///< how many of its kernels are not compiled
  };
  std::vector<std::string> notes;
  std::vector<std::size_t> program_of;  ///< of each kernel, among the programs
  std::vector<Program> programs;

  void add(const Job& job) {
    notes.insert(notes.end(), job.kernels.begin(), job.kernels.end());
    program_of.resize(notes.size(), programs.size());
    programs.push_back({job.program, job.kernels.size()});
  }
};

/// Processes that take jobs until they have waited for long, or this ends.
class Workers {
 public:
  Workers(const DeviceInfo& device, const BuildProcesses& processes, std::int64_t count) : processes_(processes) {
    if (!texts_.is_open()) return;
    for (const auto* ends : {&orders_, &words_})
      if (!ends->first.is_open() || !ends->second.is_open()) return;
    // What is more than the pipe holds waits here, not in the kernel.
    if (!orders_.second.never_wait()) return;
    while (children_.count() < count) {
      const auto process = start_process(processes.program, device, children_.count(),
                                         {texts_.number(), orders_.first.number(), words_.second.number()});
      if (process < 0) break;
      if (processes.idle) os::run_when_idle(process);
      children_.add(process);
    }
    words_.second.close();
  }

  std::int64_t count() const { return children_.count(); }
  /// Whether none of so many has ended.
  bool wait(std::int64_t wanted) { return children_.count() >= wanted && children_.running() == children_.count(); }

  /// Has these done, and notes how they end.
  Followed give(std::vector<Job> jobs, Notes& notes, const std::stop_token& stop, const Told& told) {
    Kernels kernels;
    std::string texts;
    std::vector<Order> orders;
    for (auto& job : jobs) {
      job.text["first"] = kernels.notes.size();
      kernels.add(job);
      const auto text = job.text.dump(-1, ' ', false, json::error_handler_t::replace);
      orders.push_back({texts.size(), text.size()});
      texts += text;
    }
    if (count() == 0 || !texts_.clear() || !texts_.write_all(texts)) return {};
    return follow(std::move(kernels), orders, notes, stop, told);
  }

 private:
  /// Until all kernels have ended, all processes have, or nothing more comes. What was begun and did not end is noted, too: who
  /// crashes or hangs does so once, or twice where the first time may have been for other reasons.
  Followed follow(Kernels kernels, std::span<const Order> orders, Notes& notes, const std::stop_token& stop, const Told& told) {
    constexpr std::chrono::milliseconds tick{100};
    Followed result;
    std::map<std::uint32_t, std::uint32_t> begun;  // the process by kernel
    bool hung = false;
    // Not by the clock: where all processes were stopped for a while, nobody hangs.
    std::chrono::milliseconds silent{0};
    for (auto left = kernels.notes.size(); left > 0;) {
      // The end of the pipe tells only where no process that the host forked meanwhile holds it open.
      const auto running = children_.running();
      // What else the one that ended was to do nobody knows: the others do what is left, and end.
      if (running < count()) orders_.second.close();
      // An order is written whole or not at all.
      while (!orders.empty() && orders_.second.write(&orders.front(), sizeof(Order)) == sizeof(Order)) orders = orders.subspan(1);
      const int ready = words_.first.wait_to_read(running > 0 ? tick : std::chrono::milliseconds(0));
      if (ready < 0 && errno == EINTR) continue;
      if (stop.stop_requested()) return result;
      if (told.progress) told.progress(result.noted);
      if (ready == 0 && running > 0 && (silent += tick) < processes_.patience) continue;
      hung = ready == 0 && running > 0;
      std::uint32_t word = 0;
      const auto size = ready > 0 ? words_.first.read(&word, sizeof word) : 0;
      if (size < 0 && errno == EINTR) continue;
      const auto said = size == sizeof word ? Said::parse(word, kernels.notes.size()) : std::nullopt;
      if (!said) break;
      silent = {};
      if (said->what == Said::What::begun) {
        begun.emplace(said->kernel, said->process);
      } else if (begun.erase(said->kernel) != 0) {
        const bool well = said->what == Said::What::done;
        notes.add(kernels.notes[said->kernel], well ? Noted::compiled : Noted::failed);
        ++result.noted;
        if (well) {
          ++result.compiled;
          auto& program = kernels.programs[kernels.program_of[said->kernel]];
          if (--program.left == 0 && told.built) told.built(*program.source);
        }
        result.all = --left == 0;
      }
    }
    if (result.all) return result;
    // Their output may have ended before they did.
    for (int i = 0; i < 20 && !hung && children_.running() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (const auto& [kernel, process] : begun) {
      if (processes_.apart && !hung && notes.deserves_another_try(kernels.notes[kernel])) {
        result.tries_again = true;
        continue;
      }
      notes.add(kernels.notes[kernel], children_.crashed(process) ? Noted::crashed : Noted::failed);
      ++result.noted;
    }
    return result;
  }

  const BuildProcesses processes_;
  const os::Descriptor texts_ = os::memory_file("clnet-kernels");
  // Its reading end stays open, too: who orders something of processes that have ended gets no signal.
  std::pair<os::Descriptor, os::Descriptor> orders_ = os::pipe(), words_ = os::pipe();
  Children children_;
};

/// Those that wait for the next plan, by what they were made for; and whose turn it is.
struct Kept {
  std::timed_mutex turn;
  std::map<std::string, std::unique_ptr<Workers>> workers;
};

Kept& kept() {
  static auto& instance = *new Kept;
  return instance;
}

std::unique_ptr<Workers>& kept_for(const DeviceInfo& device, const BuildProcesses& processes) {
  return kept().workers[fmt::format("{} {} {} {}", device.platform_index, device.device_index, processes.program, device.name)];
}

/// clnet-build-kernels stands in a folder `clnet` beside the library. A program may have the library inside: the folder is then
/// beside the installed library, or beside the folder where the program was built.
std::string find_program() {
  const auto own = os::own_library();
  if (own.empty()) return {};
  for (const auto* folder : {".", CLNET_LIBRARIES_FROM_PROGRAMS, ".."}) {
    const auto program = own.parent_path() / folder / "clnet" / "clnet-build-kernels";
    if (os::may_run(program)) return program.lexically_normal().string();
  }
  return {};
}

bool is_writable(const std::optional<std::string>& folder) { return folder && os::may_write(*folder); }

}  // namespace

std::string notes_file(const BuildProcesses& processes) { return processes.folder + "/clnet-kernels"; }

BuildProcesses build_processes(const DeviceInfo& device) {
  BuildProcesses result;
  if (!os::starts_processes()) return result;
  const bool apart = env::flag("CLNET_COMPILE_APART", has_quirk(device, "compiler-aborts"));
  const bool builds = has_quirk(device, "pocl-builds");
  if (!apart && !builds) return result;
  auto folder = builds ? env::pocl_cache_folder() : std::nullopt;
  if (apart && !is_writable(folder)) {
    folder = env::cache_folder();
    std::error_code code;
    if (folder) std::filesystem::create_directories(*folder, code);
  }
  // Every plan asks.
  static const auto& program = *new std::string(find_program());
  if (!is_writable(folder) || program.empty()) {
    if (apart)
      logging::warn_once(
          "kernels are compiled in this process, which one may end that crashes the driver's compiler: there is no program "
          "clnet/clnet-build-kernels beside the library, or no cache folder that can be written");
    return result;
  }
  result.apart = apart;
  result.program = program;
  result.folder = *folder;
  static const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  result.count = env::integer("CLNET_BUILD_PROCESSES", 1, 64).value_or(std::min(cores, most_processes));
  return result;
}

namespace {

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
    const auto progress = told.progress ? [&](std::size_t done) { told.progress(before + done); } : BuildProgress{};
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
                        const BuildProgress& progress, const ProgramBuilt& built) {
  if (!processes.apart && (processes.count <= 1 || kernels.size() < fewest)) return 0;
  // One plan at a time: the next one may want the same kernels.
  std::unique_lock lock(kept().turn, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(50)))
    if (progress) progress(0);
  auto jobs = jobs_of(device, kernels, notes_of(processes));
  std::size_t wanted = 0;
  for (const auto& job : jobs) wanted += job.kernels.size();
  if (!processes.apart && (jobs.size() < 2 || wanted < fewest)) return 0;
  const auto compiled = compile(device, kernels, std::move(jobs), processes.count, processes,
                                processes.apart ? &kept_for(device, processes) : nullptr, {}, {progress, built});
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
  if (const std::unique_lock lock(kept().turn, std::try_to_lock); lock) kept().workers.clear();
}

bool is_built(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto all = noted(device, kernels, processes);
  return std::all_of(all.begin(), all.end(), [](Noted end) { return end == Noted::compiled; });
}

std::vector<Noted> noted(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto state = state_of(device);
  const auto& notes = notes_of(processes);
  std::vector<Noted> result;
  for (const auto& kernel : kernels) result.push_back(notes.of(note_of(state, kernel)));
  return result;
}

void note_run(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto state = state_of(device);
  auto& notes = notes_of(processes);
  for (const auto& kernel : kernels)
    if (const auto note = note_of(state, kernel); notes.of(note) == Noted::nothing) notes.add(note, Noted::compiled);
}

struct BuildBeside::State {
  std::atomic<bool> done{false};
  std::jthread thread;
};

BuildBeside::BuildBeside(const DeviceInfo& device, std::vector<KernelToBuild> kernels, BuildProcesses processes)
    : state_(std::make_unique<State>()) {
  state_->thread = std::jthread([state = state_.get(), device, kernels = std::move(kernels),
                                 processes = std::move(processes)](const std::stop_token& stop) {
    try {
      // One process at a time, however many plans ask: the next one may want what this one compiles. Nobody waits for an idle
      // one.
      static auto &turn = *new std::timed_mutex, &idle_turn = *new std::timed_mutex;
      std::unique_lock lock(processes.idle ? idle_turn : turn, std::defer_lock);
      while (!lock.try_lock_for(std::chrono::milliseconds(50)))
        if (stop.stop_requested()) return;
      compile(device, kernels, jobs_of(device, kernels, notes_of(processes)), 1, processes, nullptr, stop, {});
    } catch (const std::exception& error) {
      logging::print(logging::Level::plan, "kernels are not compiled beside the program: {}", error.what());
    }
    state->done = true;
  });
}

BuildBeside::~BuildBeside() = default;
bool BuildBeside::done() const { return state_->done; }

}  // namespace clnet::ocl
