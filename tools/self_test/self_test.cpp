// Starts the checks in processes of their own, gathers what they tell, prints and keeps it.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "clnet/clnet.h"
#include "lib/base/env.h"
#include "lib/cl/devices.h"
#include "lib/cl/quirk_file.h"
#include "lib/exec/choose/solver.h"
#include "tools/self_test/check.h"
#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// The part of clnet-info that runs checks, in a process of its own; what it writes to the other end of a pipe is read line by
/// line.
class Worker {
 public:
  Worker(const std::vector<std::string>& arguments) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe");
    auto program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> all{program, "--self-test-worker", std::to_string(ends[1])};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) fail("a process");
    if (pid_ == 0) {
      ::fcntl(ends[1], F_SETFD, 0);
      // What it prints otherwise is a driver's.
      if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    input_ = ends[0];
  }
  ~Worker() {
    if (pid_ > 0) wait(true);
    ::close(input_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  enum class Event : std::uint8_t { line, end, silence };
  /// The next line, or that there is none: the process has ended, or said nothing for so long.
  Event next(std::string& line, std::chrono::seconds patience) {
    for (;;) {
      if (const auto end = pending_.find('\n'); end != std::string::npos) {
        line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return Event::line;
      }
      pollfd ready{input_, POLLIN, 0};
      const int count = ::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Event::silence;
      std::array<char, 4096> piece{};
      const auto size = ::read(input_, piece.data(), piece.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return Event::end;
      pending_.append(piece.data(), static_cast<std::size_t>(size));
    }
  }

  /// How it ended, in words.
  std::string wait(bool kill) {
    if (kill) ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) return fmt::format("crashes the process: {}", ::strsignal(WTERMSIG(status)));
    return fmt::format("ends the process with {}", WEXITSTATUS(status));
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw Error(fmt::format("self-test: {} cannot be made: {}", what, std::strerror(errno)));
  }

  pid_t pid_ = -1;
  int input_ = -1;
  std::string pending_;
};

struct Fault {
  std::string what, reason;
};

struct Report {
  ocl::FoundQuirks quirks;    ///< for the device's file
  std::vector<Fault> broken;  ///< everything that went wrong, solvers first
  std::vector<std::string> slow, missing;
  std::size_t checks = 0;
  double seconds = 0;
};

/// Runs all checks, each process as far as it comes. `endings` are those of processes that were at no check.
std::vector<std::optional<CheckResult>> run_all(const std::vector<Check>& checks, const DeviceInfo& device,
                                                const SelfTestOptions& options, std::vector<Fault>& endings) {
  std::vector<std::optional<CheckResult>> results(checks.size());
  Solvers without;
  // Longer than any check takes on a busy machine: building CLBlast's kernels is the longest.
  const std::chrono::seconds patience(options.full ? 600 : 240);
  std::size_t first = 0;
  while (first < checks.size()) {
    std::vector<std::string> arguments{"--self-test-first", std::to_string(first), "--device",
                                       fmt::format("{}:{}", device.platform_index, device.device_index)};
    if (options.full) arguments.emplace_back("--full");
    if (!options.only.empty()) arguments.insert(arguments.end(), {"--only", options.only});
    for (const auto& solver : without) arguments.insert(arguments.end(), {"--self-test-without", solver});
    Worker worker(arguments);
    bool began = false, running = false, done = false, silent = false;
    std::size_t number = 0;
    std::string line;
    for (;;) {
      const auto event = worker.next(line, patience);
      silent = event == Worker::Event::silence;
      if (event != Worker::Event::line) break;
      const auto said = json::parse(line);
      done = done || said.contains("done");
      if (said.contains("begin")) {
        number = said["begin"].get<std::size_t>();
        began = running = true;
      }
      if (said.contains("end")) {
        results.at(said["end"].get<std::size_t>()) = {static_cast<Verdict>(said["verdict"].get<int>()),
                                                      said["detail"].get<std::string>(),
                                                      said["milliseconds"].get<std::map<std::string, double>>()};
        first = said["end"].get<std::size_t>() + 1;
        running = false;
      }
    }
    const auto ending = worker.wait(silent || done);
    if (done) break;
    const auto what = silent ? fmt::format("hangs: nothing for {} s", patience.count()) : ending;
    if (!running) {
      // Where a process may end at any time, the others come farther; where none comes to a check, that is all.
      if (began) {
        endings.push_back({"after " + checks.at(number).name, what});
        continue;
      }
      if (first == 0) throw Error(fmt::format("self-test: the device {} before a check has begun", what));
      endings.push_back({fmt::format("the last {} checks", checks.size() - first), what + " before one of them has begun"});
      break;
    }
    const auto& check = checks.at(number);
    results[number] = {Verdict::fails, what};
    if (!check.solver.empty()) without.push_back(check.op + ":" + check.solver);
    first = number + 1;
  }
  return results;
}

/// What the timings say against the default choice.
void judge_times(const Check& check, const CheckResult& result, Report& report) {
  constexpr double much = 2, noticeable_ms = 0.2;
  const auto chosen = result.milliseconds.find("");
  if (chosen == result.milliseconds.end()) return;
  for (const auto& [solver, ms] : result.milliseconds)
    if (chosen->second > much * ms && chosen->second - ms > noticeable_ms)
      report.slow.push_back(fmt::format("{}: {:.2f} ms by default, {:.2f} ms by {}:{} (CLNET_TUNE=on measures)", check.name,
                                        chosen->second, ms, check.op, solver));
}

Report judge(const std::vector<Check>& checks, const std::vector<std::optional<CheckResult>>& results, const DeviceInfo& device) {
  Report report;
  report.checks = checks.size();
  std::vector<Fault> others;
  std::map<std::string, std::string> wrong_solvers, refusals;
  std::set<std::string> taken;
  std::map<std::string, std::uint64_t> good_up_to;
  std::set<std::string> limited;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const auto& check = checks[i];
    if (!results[i]) continue;
    const auto& result = *results[i];
    const auto solver = check.solver.empty() ? std::string() : check.op + ":" + check.solver;
    if (!check.limit.empty()) {
      if (result.verdict == Verdict::good && !limited.contains(check.limit)) {
        good_up_to[check.limit] = check.value;
      } else if (result.verdict != Verdict::good && limited.insert(check.limit).second) {
        others.push_back({check.name, fmt::format("{}; good up to {}", result.detail, good_up_to[check.limit])});
      }
      continue;
    }
    if (!result.milliseconds.empty()) judge_times(check, result, report);
    switch (result.verdict) {
      case Verdict::good: taken.insert(solver); break;
      case Verdict::refuses: refusals.emplace(solver, result.detail); break;
      case Verdict::missing: report.missing.push_back(result.detail); break;
      case Verdict::wrong:
      case Verdict::fails:
        taken.insert(solver);
        if (solver.empty()) {
          others.push_back({check.name, result.detail});
        } else if (wrong_solvers.emplace(solver, check.name).second) {
          report.quirks.broken.push_back({check.op, check.solver, fmt::format("{}: {}", check.name, result.detail)});
          report.broken.push_back({solver, report.quirks.broken.back().reason});
        }
    }
  }
  for (const auto& name : limited) report.quirks.limits[name] = good_up_to[name];
  std::move(others.begin(), others.end(), std::back_inserter(report.broken));
  const auto lacks = [&](bool there, const char* what) {
    if (!there) report.missing.emplace_back(what);
  };
  lacks(device.fp16, "arithmetic in half precision (cl_khr_fp16); f16 is stored, and computed in f32");
  lacks(device.fp64, "double precision (cl_khr_fp64)");
  lacks(device.subgroups, "sub-groups (cl_khr_subgroups)");
  lacks(device.images, "images");
  for (const auto& [solver, reason] : refusals)
    if (!taken.contains(solver)) report.missing.push_back(reason);
  return report;
}

void print(const Report& report, const DeviceInfo& device, const std::string& file) {
  fmt::print("{} (driver {}): {} checks in {:.0f} s\n", device.name, device.driver_version, report.checks, report.seconds);
  const auto list = [](const char* title, const std::vector<std::string>& lines) {
    for (const auto& line : lines) fmt::print("  {:<8} {}\n", title, line);
  };
  std::vector<std::string> broken;
  for (const auto& [what, reason] : report.broken) broken.push_back(fmt::format("{}: {}", what, reason));
  list("BROKEN", broken);
  list("slow", report.slow);
  list("missing", report.missing);
  if (report.broken.empty()) fmt::print("Nothing is broken.\n");
  if (!report.quirks.broken.empty()) fmt::print("Solvers that are broken will not be chosen on this device: {}\n", file);
}

void print_json(const Report& report, const DeviceInfo& device, const std::string& file, bool full) {
  ordered_json result{{"device", device.name},
                      {"driver", device.driver_version},
                      {"depth", full ? "full" : "quick"},
                      {"checks", report.checks},
                      {"seconds", report.seconds},
                      {"broken", ordered_json::array()},
                      {"slow", report.slow},
                      {"missing", report.missing},
                      {"limits", report.quirks.limits},
                      {"file", file}};
  for (const auto& [what, reason] : report.broken) result["broken"].push_back({{"what", what}, {"reason", reason}});
  fmt::print("{}\n", result.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace

int self_test(const SelfTestOptions& options) {
  const auto ops = exec::ops_with_solvers();
  const auto problems = make_problems(false);
  for (const auto& op : ops)
    if (std::none_of(problems.begin(), problems.end(), [&](const auto& problem) { return problem.op == op; }))
      throw Error(fmt::format("self-test: there is no problem for the solvers of {}", op));
  // What was found before must not hide anything. Outputs hold NaN before they are written, and nobody else chooses solvers.
  for (const auto& [name, value] : {std::pair{"CLNET_QUIRKS", "off"}, {"CLNET_POISON", "1"}, {"CLNET_TUNE", "off"}})
    ::setenv(name, value, 1);
  ::unsetenv("CLNET_SOLVER");
  const auto devices = Device::list();
  const auto selector = options.device.empty() ? env::text("CLNET_DEVICE").value_or("") : options.device;
  const int chosen = ocl::choose(devices, selector);
  if (devices.empty())
    throw DeviceError("no OpenCL device found: install a driver, such as the package pocl-opencl-icd for CPUs");
  if (chosen < 0) throw DeviceError(fmt::format("no device fits '{}'; clnet-info lists what there is", selector));
  const auto& device = devices[static_cast<std::size_t>(chosen)];

  if (!options.only.empty() && std::find(ops.begin(), ops.end(), options.only) == ops.end())
    throw Error(fmt::format("--only {}: no such operation; there are {}", options.only, fmt::join(ops, ", ")));

  const auto start = Clock::now();
  const auto checks = make_checks(device, {options.full}, options.only, {});
  std::vector<Fault> endings;
  const auto results = run_all(checks, device, options, endings);
  auto report = judge(checks, results, device);
  std::move(endings.begin(), endings.end(), std::back_inserter(report.broken));
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto file = ocl::quirk_file(device);
  if (file && !options.only.empty()) {
    // What is known of the others stays.
    auto kept = ocl::read_quirks(*file, device);
    std::erase_if(kept.broken, [&](const auto& broken) { return broken.op == options.only; });
    std::move(kept.broken.begin(), kept.broken.end(), std::back_inserter(report.quirks.broken));
    report.quirks.limits = std::move(kept.limits);
  }
  if (options.json)
    print_json(report, device, file.value_or(""), options.full);
  else
    print(report, device, file.value_or("there is no cache folder to keep that in"));
  std::fflush(stdout);
  if (file) ocl::write_quirks(*file, device, report.quirks);
  return report.broken.empty() ? 0 : 1;
}

}  // namespace clnet::tools
