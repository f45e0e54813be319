// Random programs on the device of this process, judged by the interpreter. See docs/developer/testing.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/parallel/lane.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/modes.h"
#include "tests/fuzz/run.h"
#include "tests/support/second_device.h"

namespace clnet::fuzz {

namespace {

thread_local volatile std::uint64_t present_seed = 0;

/// A crash says which program it was.
void report_crash(int signal) {
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "signal %d at seed %llu\n", signal, static_cast<unsigned long long>(present_seed));
  if (size > 0) (void)!std::fwrite(text, 1, static_cast<std::size_t>(size), stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Arguments : CommonArguments {
  double least_repeated = 0;
  std::string mode = "plan", dtype = "any", same_as, digests, coverage;
  bool plan_only = false;
};

/// What programs came to.
struct Tally {
  Coverage coverage;
  std::map<std::uint64_t, std::uint64_t> digests;  ///< by seed
  std::uint64_t passed = 0, failed = 0, repeated = 0, unchanged = 0, refused = 0;
  std::int64_t elements = 0, judged = 0;

  void add(std::uint64_t seed, const Outcome& outcome) {
    elements += outcome.elements;
    judged += outcome.judged;
    digests[seed] = outcome.digest;
    repeated += outcome.repeated;
    unchanged += outcome.fitted && !outcome.repeated;
    refused += outcome.refused && !outcome.fitted;
    ++(outcome.fault ? failed : passed);
    if (!outcome.fault) return;
    fmt::print("FAILED seed {}: {}\n", seed, *outcome.fault);
    std::fflush(stdout);
  }
};

Program program_of(std::uint64_t seed, const Arguments& arguments) {
  present_seed = seed;
  auto program = Generator(seed, arguments.settings)();
  if (arguments.show) fmt::print("{}\n", to_code(program));
  return program;
}

void print_smallest(const Program& program, const Outcome& outcome, const RunOptions& options, double seconds) {
  const auto fails = [&](const Program& candidate) {
    const auto again = run(candidate, options);
    // Another error is another fault.
    return again.fault && again.fault->starts_with("throws") == outcome.fault->starts_with("throws");
  };
  const auto least = shrink(program, fails, seconds);
  fmt::print("the smallest program that still fails:\n{}// {}\n\n", to_code(least),
             run(least, options).fault.value_or("(not any more)"));
  std::fflush(stdout);
}

/// Runs the programs in two lanes at once, those of odd seeds on the second device. Programs that draw random numbers are left
/// out: the generator is the process's.
void run_in_lanes(std::uint64_t first, std::uint64_t count, parallel::Lanes& lanes, const Arguments& arguments,
                  const RunOptions& options, Tally& tally) {
  std::vector<Program> programs;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto before = random_state().offset;
    auto program = program_of(seed, arguments);
    if (random_state().offset == before) programs.push_back(std::move(program));
  }
  std::mutex mutex;
  const auto waited = exec::statistics().waited;
  lanes.run([&](std::size_t lane) {
    for (const auto& program : programs) {
      if (program.seed % 2 != lane) continue;
      present_seed = program.seed;
      Coverage coverage;
      const auto outcome = run(program, options, &coverage);
      const std::lock_guard lock(mutex);
      tally.add(program.seed, outcome);
      tally.coverage.add(coverage);
    }
  });
  if (const auto waits = exec::statistics().waited - waited; waits > 0) {
    fmt::print("FAILED seeds {} to {}: threads waited {} times for one another\n", first, first + count - 1, waits);
    ++tally.failed;
  }
}

int fuzz(const Arguments& arguments, RunOptions options) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::ofstream digests;
  if (!arguments.digests.empty()) digests.open(arguments.digests);
  std::optional<parallel::Lanes> lanes;
  if (arguments.mode == "two-lanes") lanes.emplace(std::vector<Device>{Device::current(), test::second_device()});
  Tally tally;
  std::uint64_t made = 0;
  while (made < arguments.count) {
    if (arguments.seconds > 0 && elapsed() > arguments.seconds * (arguments.same_as.empty() ? 1 : 0.5)) break;
    const auto seed = arguments.seed + made;
    if (lanes) {
      const auto count = std::min<std::uint64_t>(64, arguments.count - made);
      options.gradients = false;
      run_in_lanes(seed, count, *lanes, arguments, options, tally);
      made += count;
      continue;
    }
    const auto program = program_of(seed, arguments);
    options.gradients = options.judges && seed % 4 == 0;
    // All edges of every graph would take longer than planning it.
    const bool counted = options.judges || made % 16 == 0;
    ++made;
    const auto outcome = run(program, options, counted ? &tally.coverage : nullptr);
    if (digests.is_open()) digests << seed << ' ' << outcome.digest << '\n' << std::flush;
    tally.add(seed, outcome);
    if (outcome.fault && arguments.shrink_seconds > 0) print_smallest(program, outcome, options, arguments.shrink_seconds);
  }
  if (made == 0) return 1;
  if (!arguments.same_as.empty()) {
    const auto others = digests_of(arguments.same_as, arguments.mode, arguments.seed, made,
                                   {"--max-ops", std::to_string(arguments.settings.max_ops), "--block",
                                    std::to_string(arguments.settings.block), "--dtype", arguments.dtype});
    for (const auto& [seed, digest] : tally.digests) {
      const auto other = others.find(seed);
      if (other != others.end() && other->second == digest) continue;
      fmt::print("FAILED seed {}: {} mode {}\n", seed, other == others.end() ? "no result in" : "not the same bits as in",
                 arguments.same_as);
      ++tally.failed;
    }
  }
  fmt::print("{}", tally.coverage.summary());
  if (!arguments.coverage.empty()) std::ofstream(arguments.coverage) << tally.coverage.list();
  fmt::print("mode {}, seeds {} to {}, {:.1f} s, {:.1f} programs/s", arguments.mode, arguments.seed, arguments.seed + made - 1,
             elapsed(), static_cast<double>(made) / elapsed());
  if (options.judges && tally.elements > 0)
    fmt::print(", {:.1f} % of {} elements judged", 100 * static_cast<double>(tally.judged) / static_cast<double>(tally.elements),
               tally.elements);
  if (options.memory) {
    fmt::print(", with less memory {} ran by computing values twice, {} without, {} were refused", tally.repeated,
               tally.unchanged, tally.refused);
    // What few programs do is hardly tried.
    if (100 * static_cast<double>(tally.repeated) < arguments.least_repeated * static_cast<double>(made)) {
      fmt::print(": FAILED, as fewer than {} % compute values twice", arguments.least_repeated);
      ++tally.failed;
    }
  }
  fmt::print(": {} passed, {} failed\n", tally.passed, tally.failed);
  return tally.failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Random programs over all of clnet's operations, judged by an interpreter in double precision.");
  add_common(app, arguments);
  app.add_option("--dtype", arguments.dtype, "the floating dtype of most values: any, f32, f16, bf16, f64")
      ->check(CLI::IsMember({"any", "f32", "f16", "bf16", "f64"}));
  app.add_option("--mode", arguments.mode, "how programs are carried out: " + mode_names());
  app.add_option("--same-as", arguments.same_as, "another mode whose results must be the same to the bit");
  app.add_flag("--plan-only", arguments.plan_only, "make plans, but judge no values: for a device that computes nothing");
  app.add_option("--digests", arguments.digests, "a file for a digest of each program's results");
  app.add_option("--coverage", arguments.coverage, "a file for all pairs of operations that met");
  app.add_option("--least-repeated", arguments.least_repeated,
                 "in mode memory, fail where fewer percent of the programs compute values twice");
  CLI11_PARSE(app, argc, argv);
  if (!enter_mode(arguments.mode, argv)) return 1;

  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, report_crash);
  if (arguments.mode == "two-devices") spread_over({Device::current(), test::second_device()});
  arguments.settings.doubles = Device::current().info().fp64;
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64})
    if (arguments.dtype == to_string(dtype)) arguments.settings.dtype = dtype;
  RunOptions options;
  options.judges = !arguments.plan_only;
  options.memory = arguments.settings.deep = arguments.mode == "memory";
  if (arguments.plan_only) options.rounds = 1;
  return fuzz(arguments, options);
}

}  // namespace

}  // namespace clnet::fuzz

int main(int argc, char** argv) { return clnet::fuzz::main(argc, argv); }
