// Judges what the checks found, prints and keeps it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
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
#include "tools/self_test/processes.h"

namespace clnet::tools {

namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Report {
  ocl::FoundQuirks quirks;    ///< for the device's file
  std::vector<Fault> broken;  ///< everything that went wrong, solvers first
  std::vector<std::string> slow, missing;
  std::size_t checks = 0, run = 0, processes = 1;
  double seconds = 0;
};

/// What the timings of one problem, by solver, say against the default choice.
void judge_times(const std::string& problem, const std::string& op, const std::map<std::string, double>& milliseconds,
                 Report& report) {
  constexpr double much = 2, noticeable_ms = 0.2;
  const auto chosen = milliseconds.find("");
  if (chosen == milliseconds.end()) return;
  for (const auto& [solver, ms] : milliseconds)
    if (chosen->second > much * ms && chosen->second - ms > noticeable_ms)
      report.slow.push_back(fmt::format("{}: {:.2f} ms by default, {:.2f} ms by {}:{} (CLNET_TUNE=on measures)", problem,
                                        chosen->second, ms, op, solver));
}

Report judge(const std::vector<Check>& checks, const std::vector<std::optional<CheckResult>>& results, const DeviceInfo& device) {
  Report report;
  report.checks = checks.size();
  std::vector<Fault> others;
  std::map<std::string, std::string> wrong_solvers, refusals;
  std::set<std::string> taken;
  std::map<std::string, std::uint64_t> good_up_to;
  std::set<std::string> limited;
  std::map<std::pair<std::string, std::string>, std::map<std::string, double>> times;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const auto& check = checks[i];
    if (!results[i]) continue;
    ++report.run;
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
    if (!check.timed.empty() && result.verdict == Verdict::good)
      times[{check.timed, check.op}][check.solver] = result.milliseconds;
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
  for (const auto& [timed, milliseconds] : times) judge_times(timed.first, timed.second, milliseconds, report);
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
  ordered_json result{{"format", "clnet self-test 1"},
                      {"device", device.name},
                      {"driver", device.driver_version},
                      {"depth", full ? "full" : "quick"},
                      {"checks", report.checks},
                      {"run", report.run},
                      {"processes", report.processes},
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
  // What was found before must not hide anything. Outputs hold NaN before they are written, nobody else chooses solvers, and f32
  // is not rounded.
  for (const auto& [name, value] :
       {std::pair{"CLNET_QUIRKS", "off"}, {"CLNET_POISON", "1"}, {"CLNET_TUNE", "off"}, {"CLNET_TF32", "0"}})
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
  const auto checks = make_checks(device, {options.full}, options.only);
  auto findings = run_in_processes(checks, device, options);
  auto report = judge(checks, findings.results, device);
  std::move(findings.endings.begin(), findings.endings.end(), std::back_inserter(report.broken));
  report.processes = findings.processes;
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
