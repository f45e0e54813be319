#include "lib/cl/build_ahead.h"

#ifdef __linux__
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stop_token>
#include <thread>
#include <utility>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/quirks.h"

namespace clnet::ocl {

#ifdef __linux__

namespace {

using nlohmann::json;

/// Fewer are compiled sooner than the processes start.
constexpr std::size_t fewest = 4;
constexpr std::int64_t most_processes = 8;
constexpr std::uint64_t largest_notes = 16 << 20;

class Descriptor {
 public:
  /// Takes over `number`, as one that no new process inherits and that is none of the low ones which it is given.
  explicit Descriptor(int number) : number_(number < 0 ? number : ::fcntl(number, F_DUPFD_CLOEXEC, 16)) {
    if (number >= 0) ::close(number);
  }
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

bool put(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// What was compiled before, or could not be, by lines of a file in the driver's own folder: with what it tells of, it goes. Any
/// thread may ask and add.
class Notes {
 public:
  explicit Notes(const std::string& folder) : path_(folder + "/clnet-kernels") {
    try {
      std::istringstream file(file::read(path_, largest_notes));
      for (std::string line; std::getline(file, line);) known_.insert(std::move(line));
    } catch (const FileError&) {
      // What has grown too large, or is no file, begins anew.
      std::error_code code;
      std::filesystem::remove(path_, code);
    }
  }
  bool has(const std::string& kernel) const {
    const std::lock_guard lock(mutex_);
    return known_.contains(kernel) || known_.contains(kernel + failed);
  }
  bool compiled(const std::string& kernel) const {
    const std::lock_guard lock(mutex_);
    return known_.contains(kernel);
  }
  /// In one write, so that lines of several processes do not mix.
  void add(const std::vector<std::string>& kernels, bool well) {
    const std::lock_guard lock(mutex_);
    std::string lines;
    for (const auto& kernel : kernels) lines += *known_.insert(well ? kernel : kernel + failed).first + '\n';
    const Descriptor file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (file.number() >= 0) put(file.number(), lines);
  }

 private:
  static constexpr const char* failed = " failed";

  std::string path_;
  mutable std::mutex mutex_;
  std::set<std::string> known_;
};

/// Those of a folder, read once.
Notes& notes_in(const std::string& folder) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Notes>;
  const std::lock_guard lock(mutex);
  return all.try_emplace(folder, folder).first->second;
}

/// The kernels of one program, which one process compiles.
struct Job {
  json text;
  std::vector<std::string> kernels;  ///< for Notes
  std::size_t size = 0;              ///< of its source
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

/// Of a kernel with all that its machine code depends on.
std::string note_of(const std::string& state, const KernelToBuild& kernel) {
  Hash note;
  note.add(state).add(kernel.program.name).add(kernel.program.source);
  for (const auto& [name, value] : kernel.program.defines) note.add(name).add(value);
  return note.add(kernel.function).add(fmt::format("{}", fmt::join(kernel.local, " "))).hex();
}

std::vector<Job> jobs_of(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const Notes& notes) {
  const auto state = identity(device);
  std::map<const KernelToBuild*, Job, SameProgram> jobs;
  for (const auto& kernel : kernels) {
    auto note = note_of(state, kernel);
    if (notes.has(note)) continue;
    auto& job = jobs[&kernel];
    if (job.kernels.empty()) {
      job.text = {{"builds", json::array()}, {"kernels", json::array()}};
      for (const auto& [text, options] : ways_to_build(kernel.program, device)) {
        job.size = text.size();
        job.text["builds"].push_back({{"source", text}, {"options", options}});
      }
    }
    if (std::find(job.kernels.begin(), job.kernels.end(), note) != job.kernels.end()) continue;
    job.kernels.push_back(std::move(note));
    job.text["kernels"].push_back({{"function", kernel.function}, {"local", kernel.local}, {"arguments", arguments_of(kernel)}});
  }
  std::vector<Job> result;
  for (auto& [program, job] : jobs) result.push_back(std::move(job));
  // The long ones first: nobody should begin one when the others are about to end.
  std::stable_sort(result.begin(), result.end(), [](const Job& a, const Job& b) { return a.size > b.size; });
  return result;
}

/// Descriptors by which a process finds its work: the device's name and the jobs' texts, then the numbers of those to do, which
/// the processes share, and where it says which are begun and done.
constexpr std::array<int, 3> places{3, 4, 5};

std::int64_t spawn(const std::string& program, const DeviceInfo& device, const std::array<int, 3>& descriptors) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return -1;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  for (std::size_t i = 0; i < places.size(); ++i) ::posix_spawn_file_actions_adddup2(&actions, descriptors[i], places[i]);
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
  ::posix_spawn_file_actions_addclosefrom_np(&actions, places.back() + 1);
#endif
#endif
  std::array<std::string, 3> words{program, std::to_string(device.platform_index), std::to_string(device.device_index)};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t process = -1;
  const int failure = ::posix_spawn(&process, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return failure == 0 ? process : -1;
}

std::pair<Descriptor, Descriptor> pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Those that run, which are killed at the end.
class Children {
 public:
  Children() = default;
  ~Children() {
    for (const auto process : running_) {
      ::kill(process, SIGKILL);
      while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(std::int64_t process) {
    running_.push_back(static_cast<pid_t>(process));
    ++count_;
  }
  std::int64_t count() const { return count_; }
  /// Whether any still runs. The others are forgotten: the host itself may wait for them, and others get their numbers.
  bool any() {
    std::erase_if(running_, [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
    return !running_.empty();
  }

 private:
  std::vector<pid_t> running_;
  std::int64_t count_ = 0;
};

/// Notes what the processes say is done until all of them have ended or nothing more comes: how many kernels. What they began
/// and did not end is noted, too: who crashes or hangs does so once.
std::size_t follow(int done, const std::vector<Job>& jobs, Notes& notes, Children& children, std::chrono::seconds patience,
                   const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  std::size_t kernels = 0;
  std::set<std::size_t> begun;
  for (auto last = Clock::now();;) {
    // The end of the pipe tells only where no process that the host forked meanwhile holds it open.
    const bool running = children.any();
    pollfd waiting{done, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, running ? 100 : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (stop.stop_requested()) return kernels;
    if (ready == 0 && running && Clock::now() - last < patience) continue;
    std::uint32_t said = 0;
    const auto size = ready > 0 ? ::read(done, &said, sizeof said) : 0;
    if (size < 0 && errno == EINTR) continue;
    const std::size_t job = said / 2;
    if (size != sizeof said || job >= jobs.size()) break;
    last = Clock::now();
    if (said % 2 == 0) {
      begun.insert(job);
    } else if (begun.erase(job) != 0) {
      notes.add(jobs[job].kernels, true);
      kernels += jobs[job].kernels.size();
    }
  }
  for (const auto job : begun) notes.add(jobs[job].kernels, false);
  return kernels;
}

/// Empty where the library's own place is not known.
std::string program_beside_library() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&build_processes), &here) == 0) return {};
  std::error_code code;
  const auto library = std::filesystem::canonical(here.dli_fname, code);
  return code ? std::string() : (library.parent_path() / "clnet" / "clnet-build-kernels").string();
}

}  // namespace

BuildProcesses build_processes(const DeviceInfo& device) {
  BuildProcesses result;
  if (!has_quirk(device, "pocl-builds")) return result;
  const auto folder = env::pocl_cache_folder();
  if (!folder || ::access(folder->c_str(), W_OK) != 0) return result;
  // Every plan asks.
  static const auto& program = *new std::string(program_beside_library());
  if (program.empty() || ::access(program.c_str(), X_OK) != 0) return result;
  result.program = program;
  result.folder = *folder;
  static const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  result.count = env::integer("CLNET_BUILD_PROCESSES", 1, 64).value_or(std::min(cores, most_processes));
  return result;
}

namespace {

/// Gives the jobs to so many processes, at most.
std::size_t give(const DeviceInfo& device, const std::vector<Job>& jobs, std::int64_t most, const BuildProcesses& processes,
                 const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t wanted = 0;
  for (const auto& job : jobs) wanted += job.kernels.size();
  json text{{"device", device.name}, {"jobs", json::array()}};
  std::string numbers;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    text["jobs"].push_back(jobs[i].text);
    numbers.append(reinterpret_cast<const char*>(&i), sizeof i);
  }
  const Descriptor texts(::memfd_create("clnet-kernels", MFD_CLOEXEC));
  auto [orders, order] = pipe();
  auto [done, say] = pipe();
  // More numbers than a pipe holds would wait for a reader.
  if (texts.number() < 0 || orders.number() < 0 || done.number() < 0 || numbers.size() > 60000 ||
      !put(texts.number(), text.dump(-1, ' ', false, json::error_handler_t::replace)) || !put(order.number(), numbers))
    return 0;
  order.close();

  Children children;
  const auto count = std::min(most, static_cast<std::int64_t>(jobs.size()));
  while (children.count() < count) {
    const auto process = spawn(processes.program, device, {texts.number(), orders.number(), say.number()});
    if (process < 0) break;
    children.add(process);
  }
  say.close();
  const auto built = follow(done.number(), jobs, notes_in(processes.folder), children, processes.patience, stop);
  logging::print(logging::Level::plan, "{} of {} kernels compiled by {} processes in {:.0f} ms", built, wanted, children.count(),
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return built;
}

}  // namespace

std::size_t build_ahead(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  if (processes.count <= 1 || kernels.size() < fewest) return 0;
  // One plan at a time: the next one may want the same kernels.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto jobs = jobs_of(device, kernels, notes_in(processes.folder));
  std::size_t wanted = 0;
  for (const auto& job : jobs) wanted += job.kernels.size();
  if (jobs.size() < 2 || wanted < fewest) return 0;
  return give(device, jobs, processes.count, processes, {});
}

bool is_built(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto state = identity(device);
  const auto& notes = notes_in(processes.folder);
  return std::all_of(kernels.begin(), kernels.end(),
                     [&](const KernelToBuild& kernel) { return notes.compiled(note_of(state, kernel)); });
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
      // One process at a time, however many plans ask: the next one may want what this one compiles.
      static auto& turn = *new std::timed_mutex;
      std::unique_lock lock(turn, std::defer_lock);
      while (!lock.try_lock_for(std::chrono::milliseconds(50)))
        if (stop.stop_requested()) return;
      if (const auto jobs = jobs_of(device, kernels, notes_in(processes.folder)); !jobs.empty())
        give(device, jobs, 1, processes, stop);
    } catch (const std::exception& error) {
      logging::print(logging::Level::plan, "kernels are not compiled beside the program: {}", error.what());
    }
    state->done = true;
  });
}

BuildBeside::~BuildBeside() = default;
bool BuildBeside::done() const { return state_->done; }

#else

BuildProcesses build_processes(const DeviceInfo&) { return {}; }
std::size_t build_ahead(const DeviceInfo&, const std::vector<KernelToBuild>&, const BuildProcesses&) { return 0; }
bool is_built(const DeviceInfo&, const std::vector<KernelToBuild>&, const BuildProcesses&) { return false; }
struct BuildBeside::State {};
BuildBeside::BuildBeside(const DeviceInfo&, std::vector<KernelToBuild>, BuildProcesses) {}
BuildBeside::~BuildBeside() = default;
bool BuildBeside::done() const { return true; }

#endif

}  // namespace clnet::ocl
