#include "tools/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "tools/bench_items.h"

namespace clnet::tools {

namespace {

using nlohmann::ordered_json;

/// What a device is asked for most: products, convolutions, traffic, many small launches, a training step.
constexpr std::array items{"matmul-1024",
                           "matmul-1024-f16",
                           "conv-64-64-56-b16-forward",
                           "conv-64-64-56-b16-backward-weights",
                           "conv1x1-256-64-56-b16-forward",
                           "softmax-4096-1000",
                           "sum-64m",
                           "elementwise-gelu-1m",
                           "cnn-train-b128",
                           "resnet18-infer-b1"};
constexpr double seconds_each = 0.5;
constexpr unsigned most_seconds = 300;  // of an item, with its programs

struct Ended {
  std::string out;
  std::string how;  ///< empty, or why nothing more came
};

/// Runs this program with other arguments.
Ended run_self(std::vector<std::string> words) {
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("report: no pipe");
  const auto process = ::fork();
  if (process < 0) throw Error("report: no process");
  if (process == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Ended ended;
  for (char buffer[4096];;) {
    const auto size = ::read(ends[0], buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    ended.out.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    ended.how = WTERMSIG(status) == SIGALRM ? fmt::format("took more than {} s", most_seconds)
                                            : fmt::format("ended the process: {}", ::strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    ended.how = fmt::format("failed with exit code {}", WEXITSTATUS(status));
  return ended;
}

/// Nothing that tells who owns it.
ordered_json machine() {
  utsname names{};
  ::uname(&names);
  return {{"system", fmt::format("{} {} {}", names.sysname, names.release, names.machine)},
          {"cores", std::thread::hardware_concurrency()},
          {"compiler", __VERSION__}};
}

/// Names without values, which may hold paths.
ordered_json variables() {
  ordered_json names = ordered_json::array();
  for (const auto& variable : env::table())
    if (env::text(variable.name)) names.push_back(variable.name);
  return names;
}

ordered_json self_test_of(const std::string& selector) {
  const auto ended = run_self({"--self-test", "--quick", "--json", "--device", selector});
  auto found = ordered_json::parse(ended.out, nullptr, false);
  if (!found.is_object()) return {{"error", ended.how.empty() ? "printed no result" : ended.how}};
  for (const char* known : {"format", "device", "driver", "file"}) found.erase(known);
  return found;
}

/// What the items take. Goes on behind an item that ends the process; `keep` gets what there is after each process.
template <class Keep>
void bench(const std::string& selector, const Keep& keep) {
  // Members move when others are added: the items are put in last.
  ordered_json entries = ordered_json::array(), result = ordered_json::object();
  while (entries.size() < items.size()) {
    const auto ended = run_self({"--report-items", std::to_string(entries.size()), "--device", selector});
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) {
      auto entry = ordered_json::parse(line, nullptr, false);
      if (!entry.is_object()) continue;
      if (entry.contains("name"))
        entries.push_back(std::move(entry));
      else
        result.update(entry);
    }
    if (entries.size() < items.size()) {
      const auto how = ended.how.empty() ? "printed no result" : ended.how;
      entries.push_back(ordered_json{{"name", items[entries.size()]}, {"error", how}});
    }
    result["items"] = entries;
    keep(result);
  }
}

}  // namespace

void write_report(const std::string& path, ordered_json report, const std::string& selector) {
  report["machine"] = machine();
  report["variables"] = variables();
  const auto keep = [&] { file::replace(path, report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"); };
  report["complete"] = false;
  keep();
  const auto self_test = self_test_of(selector);
  report["self_test"] = self_test;
  keep();
  fmt::print("self-test: {} checks, broken: {}\n", self_test.value("run", 0),
             self_test.contains("broken") ? std::to_string(self_test["broken"].size()) : "unknown");
  std::fflush(stdout);
  bench(selector, [&](const ordered_json& found) {
    report["bench"] = found;
    keep();
  });
  for (const auto& entry : report["bench"]["items"]) {
    const auto name = entry["name"].get<std::string>();
    if (entry.contains("error"))
      fmt::print("{:<36} {}\n", name, entry["error"].get<std::string>());
    else
      fmt::print("{:<36} {:10.4f} ms\n", name, entry["median_ms"].get<double>());
  }
  report["complete"] = true;
  keep();
  fmt::print("{}: written; docs/reference/devices.md says how to send it\n", path);
}

void measure_for_report(int first) {
  const auto print = [](const ordered_json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  };
  ::alarm(most_seconds);
  const auto peak = bench::measure_peak();
  print({{"gflops_in_registers", peak.flops / 1e9}, {"gbytes_per_second_copied", peak.bytes / 1e9}});
  const auto all = bench::items();
  for (auto i = static_cast<std::size_t>(std::max(first, 0)); i < items.size(); ++i) {
    ::alarm(most_seconds);
    const auto item = std::find_if(all.begin(), all.end(), [&](const auto& candidate) { return candidate.name == items[i]; });
    if (item == all.end()) throw Error(fmt::format("report: clnet-bench has no item {}", items[i]));
    try {
      const auto result = bench::measure(*item, seconds_each);
      print({{"name", items[i]}, {"median_ms", result.median * 1e3}, {"best_ms", result.best * 1e3}});
    } catch (const std::exception& error) {
      print({{"name", items[i]}, {"error", error.what()}});
    }
  }
}

}  // namespace clnet::tools
