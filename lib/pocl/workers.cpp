#include "lib/pocl/workers.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

namespace clnet::pocl {

using ocl::Noted, ocl::ProgramSource;

namespace {

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

/// A process finds its work by descriptors: of the jobs' texts, then of the orders, which the processes share, and where it says
/// which kernels are begun and done.
std::int64_t start_process(const std::string& program, const DeviceInfo& device, std::int64_t number,
                           const std::array<int, 3>& descriptors) {
  return os::start(
      {program, std::to_string(device.platform_index), std::to_string(device.device_index), std::to_string(number), device.name},
      descriptors);
}

}  // namespace

/// Where the text of a job lies in the memory that the processes read: BuildOrder in tools/build_kernels.cpp.
struct Workers::Order {
  std::uint64_t at = 0, bytes = 0;
};

/// What the processes are to compile.
struct Workers::Kernels {
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

Workers::Workers(const DeviceInfo& device, const BuildProcesses& processes, std::int64_t count) : processes_(processes) {
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

Followed Workers::give(std::vector<Job> jobs, Notes& notes, const std::stop_token& stop, const Told& told) {
  Kernels kernels;
  std::string texts;
  std::vector<Order> orders;
  for (auto& job : jobs) {
    job.text["first"] = kernels.notes.size();
    kernels.add(job);
    const auto text = job.text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    orders.push_back({texts.size(), text.size()});
    texts += text;
  }
  if (count() == 0 || !texts_.clear() || !texts_.write_all(texts)) return {};
  return follow(std::move(kernels), orders, notes, stop, told);
}

Followed Workers::follow(Kernels kernels, std::span<const Order> orders, Notes& notes, const std::stop_token& stop,
                         const Told& told) {
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

}  // namespace clnet::pocl
