// clnet-bench: how fast operations and networks are on a device, and against what it could do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/version.h"
#include "lib/base/file.h"
#include "lib/base/json_format.h"
#include "tools/bench_cold.h"
#include "tools/bench_items.h"
#include "tools/bench_lanes.h"
#include "tools/bench_ranks.h"
#include "tools/bench_replicas.h"
#include "tools/help.h"
#include "tools/options_fault.h"
#include "tools/output.h"
#include "tools/tell_compiling.h"

namespace {

using nlohmann::ordered_json;

struct Options {
  std::vector<std::string> names, compare, lanes, replicas;
  std::string json, device;
  bool list = false, tune = false, programs = false, cold = false, first_step = false;
  double seconds = 2;
};

using clnet::bench::Result;

/// What was reached, and how much of the device's measured peak that is.
std::string rate(const clnet::bench::Item& item, const Result& result, const clnet::bench::Peak& peak) {
  std::string text;
  if (item.unit == "image") text += fmt::format("  {:9.1f} images/s", item.work / result.median);
  if (item.flops > 0) {
    const double reached = item.flops / result.median;
    text += fmt::format("  {:8.1f} GFLOP/s {:3.0f} %", reached / 1e9, 100 * reached / peak.flops);
  }
  if (item.bytes > 0) {
    const double reached = item.bytes / result.median;
    text += fmt::format("  {:7.1f} GB/s {:3.0f} %", reached / 1e9, 100 * reached / peak.bytes);
  }
  return text;
}

/// `pattern` may hold *, for any characters.
bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && pattern[0] == name[0] && matches(pattern.substr(1), name.substr(1));
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches(pattern.substr(1), name.substr(skipped))) return true;
  return false;
}

/// The items that the names and patterns ask for, each once; all without any.
std::vector<clnet::bench::Item> choose(const std::vector<std::string>& names) {
  std::vector<clnet::bench::Item> chosen;
  auto all = clnet::bench::items();
  if (names.empty()) return all;
  for (const auto& name : names) {
    bool found = false;
    for (const auto& item : all) {
      if (!matches(name, item.name)) continue;
      found = true;
      if (std::none_of(chosen.begin(), chosen.end(), [&](const auto& other) { return other.name == item.name; }))
        chosen.push_back(item);
    }
    if (!found) throw CLI::ValidationError(fmt::format("there is no item named '{}'; --list prints the names", name));
  }
  return chosen;
}

constexpr std::string_view bench_format = "clnet bench 1";

void keep_results(const std::string& path, const ordered_json& results) {
  if (path.empty() || clnet::bench::ranks().rank() != 0) return;
  clnet::file::replace(path, ordered_json{{clnet::format_field, bench_format}, {"items", results}}.dump(2) + "\n");
}

ordered_json read_results(const std::string& path) {
  auto content = ordered_json::parse(clnet::file::read(path, 16 << 20), nullptr, false);
  clnet::require_format(path, content, bench_format);
  if (content.is_object() && content.contains("items")) content = ordered_json(content["items"]);  // a list alone is older
  const bool good = content.is_array() && std::all_of(content.begin(), content.end(), [](const auto& entry) {
                      return entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                             entry.contains("median_ms") && entry["median_ms"].is_number();
                    });
  if (!good) throw clnet::FileError(fmt::format("{}: is not a list of results of clnet-bench", path));
  return content;
}

void compare(const std::string& before, const std::string& after) {
  std::map<std::string, double> first;
  for (const auto& entry : read_results(before)) first[entry["name"]] = entry["median_ms"];
  fmt::print("{:<40} {:>12} {:>12} {:>8}\n", "name", "first ms", "second ms", "faster");
  for (const auto& entry : read_results(after)) {
    const std::string name = entry["name"];
    const auto found = first.find(name);
    if (found == first.end()) continue;
    const double now = entry["median_ms"];
    fmt::print("{:<40} {:12.4f} {:12.4f} {:7.2f}x\n", name, found->second, now, found->second / now);
  }
}

void use(const std::string& device) {
  if (!device.empty()) clnet::Device::set_default(clnet::Device::find(device));
}

void bench(const Options& options) {
  const auto chosen = choose(options.names);
  constexpr const char* day = "86400";  // as long as it takes
  if (options.tune) ::setenv("CLNET_TUNE", day, 1);
  use(options.device);
  clnet::tools::tell_of_compiling(stderr);
  const auto& ranks = clnet::bench::ranks();
  const bool prints = ranks.rank() == 0;
  const auto peak = clnet::bench::measure_peak();
  if (ranks.size() > 1 && prints)
    fmt::print("{} ranks, each with the whole item; times and rates are those of rank 0\n", ranks.size());
  if (prints)
    fmt::print("{}: {:.1f} GFLOP/s in registers, {:.1f} GB/s copied\n", clnet::Device::current().info().name, peak.flops / 1e9,
               peak.bytes / 1e9);
  ordered_json results = ordered_json::array();
  bool above_peak = false;
  for (const auto& item : chosen) {
    const auto result = clnet::bench::measure(item, options.seconds);
    if (prints)
      fmt::print("{:<40} median {:10.4f} ms  best {:10.4f} ms{}\n", item.name, result.median * 1e3, result.best * 1e3,
                 rate(item, result, peak));
    const auto percent = [&](double work, double at_most) { return std::lround(100 * work / result.median / at_most); };
    above_peak = above_peak || percent(item.flops, peak.flops) > 100 || percent(item.bytes, peak.bytes) > 100;
    std::fflush(stdout);
    results.push_back({{"name", item.name},
                       {"median_ms", result.median * 1e3},
                       {"best_ms", result.best * 1e3},
                       {"work", item.work},
                       {"unit", item.unit}});
    // after each item, so that an interrupted run leaves what it measured
    keep_results(options.json, results);
  }
  if (above_peak && prints)
    fmt::print(
        "above 100 %: the plain method's arithmetic is counted, of which Winograd's convolutions need less; and data that "
        "stay in caches move faster than copied ones\n");
  // The trace of CLNET_TRACE, where one is wanted: an error now, not a line at exit.
  clnet::Device::current().stop_trace();
}

/// How many programs an item needs, in a process of its own.
void count_programs(const Options& options) {
  ordered_json results = ordered_json::array();
  for (const auto& item : choose(options.names)) {
    const auto programs = clnet::bench::first_step(item.name, options.device).programs;
    fmt::print("{:<40} {:4} programs\n", item.name, programs);
    std::fflush(stdout);
    results.push_back({{"name", item.name}, {"programs", programs}});
  }
  keep_results(options.json, results);
}

/// How long the first step of a new process takes that finds nothing compiled, and that of the next one.
void measure_cold(const Options& options) {
  ordered_json results = ordered_json::array();
  for (const auto& item : choose(options.names)) {
    const auto [cold, warm] = clnet::bench::first_steps(item.name, options.device);
    fmt::print("{:<40} first step cold {:7.2f} s  warm {:7.2f} s  {:4} programs\n", item.name, cold.seconds, warm.seconds,
               cold.programs);
    std::fflush(stdout);
    results.push_back({{"name", item.name}, {"cold_s", cold.seconds}, {"warm_s", warm.seconds}, {"programs", cold.programs}});
    keep_results(options.json, results);
  }
}

std::vector<clnet::Device> found(const std::vector<std::string>& selectors) {
  std::vector<clnet::Device> devices;
  for (const auto& selector : selectors) devices.push_back(clnet::Device::find(selector));
  return devices;
}

/// How much faster several devices train together than the first one alone.
void bench_replicas(const Options& options) {
  const auto devices = found(options.replicas);
  clnet::tools::tell_of_compiling(stderr);
  ordered_json results = ordered_json::array();
  for (const auto& item : choose(options.names)) {
    const auto rates = clnet::bench::measure_replicas(item, devices, options.seconds);
    fmt::print("{:<40} alone {:9.2f} samples/s, together {:9.2f}, {:.2f} of it\n", item.name, rates.alone, rates.together,
               rates.together / rates.alone);
    std::fflush(stdout);
    results.push_back({{"name", item.name}, {"alone", rates.alone}, {"together", rates.together}});
    keep_results(options.json, results);
  }
}

/// How much faster several devices are together than the first one alone, each with work of its own.
void bench_lanes(const Options& options) {
  const auto devices = found(options.lanes);
  clnet::parallel::Lanes lanes(devices);
  clnet::tools::tell_of_compiling(stderr);
  ordered_json results = ordered_json::array();
  for (const auto& item : choose(options.names)) {
    const auto rates = clnet::bench::measure_lanes(item, lanes, options.seconds);
    double all = 0;
    for (const double rate : rates.together) all += rate;
    fmt::print("{}: together {:.3f} runs/s, {:.2f} of the first device alone; threads waited {} times for one another\n",
               item.name, all, all / rates.alone[0], rates.waited);
    for (std::size_t i = 0; i < devices.size(); ++i)
      fmt::print("  {:<40} alone {:9.3f} runs/s, beside the others {:9.3f}\n", devices[i].info().name, rates.alone[i],
                 rates.together[i]);
    std::fflush(stdout);
    results.push_back({{"name", item.name}, {"alone", rates.alone}, {"together", rates.together}});
    keep_results(options.json, results);
  }
}

constexpr const char* examples = R"(Items:
  matmul-N, matmul-MxNxK           matrix products {M, K} by {K, N}; -bB: B of them
  linear-K-N-bB-...                fully connected layers and their gradients
  conv-IN-OUT-SIZE-bB-...          3x3 convolutions of B images of SIZE x SIZE, and their gradients; conv1x1 and so on:
                                   other kernels, -s2: stride 2; depthwise-CHANNELS-SIZE: one filter per channel
  maxpool3s2-CHANNELS-SIZE-bB-...  pools of 3x3 with stride 2, and their gradients; avgpool, adaptive-avgpool7 (to 7x7) and
                                   global-avgpool likewise
  batch-norm-CHANNELS-SIZE-bB-train, layer-norm-ROWS-WIDTH-...
                                   normalisations, train: the result and all gradients
  elementwise-FUNCTION-1m          a function of a million elements (2^20); relu-64m, rand-1m and so on: what they say
  function-NAME-...                of a million elements, or as many results; -train: the result and the first input's gradient
  embedding-ROWS-WIDTH-bB-...      B rows of a table, and the table's gradient
  adam-25m                         a step of Adam with a given gradient
  NET-forward-bB                   a network's output from images on the device
  NET-infer-bB                     the same from the host's memory to the host's memory; -compiled: by compile()
  NET-train-bB                     a whole training step from the host's memory to updated weights
  char-gpt-train-bB                the same of a GPT over characters: 4 layers, 128 wide, 4 heads, context 64
  translation-train-bB             the same of a Transformer with encoder and decoder, 32 wide, for lines of 8 words
  transformer-decode-t64-bB        64 words of B sentences, the likeliest each time, by such a network 256 wide; -anew:
                                   without caches, so that each word encodes and decodes the whole line
  lstm-3x500-step-bB               a training step of three layers of LSTM, 500 wide, on sequences of 32
Operations have their inputs on the device, and several runs share one wait. Per item: the median and the best time,
arithmetic and traffic (inputs read once, results written once), and what part they are of the device's peak, which is
measured first. The arithmetic is the plain method's: Winograd's convolutions need less, and may pass 100 %, as traffic may
that stays in caches. Training counts each layer three times.

Examples:
  clnet-bench matmul-1024 'conv-64-64-56-*'
  clnet-bench 'resnet18-*' --json before.json
  clnet-bench --compare before.json after.json
  POCL_DEVICES='pthread basic' POCL_MAX_PTHREAD_COUNT=1 clnet-bench --lanes 0:1,0:0 resnet18-train-b16
      two devices at once, with --replicas in place of --lanes as one training job
  mpirun -n 2 clnet-bench cnn-train-b64
      two ranks with 64 images each, which add their gradients
  clnet-bench --cold cnn-train-b256 unet-128-train-b4
      the first step of a program that nobody has run on this machine
  CLNET_SOLVER=conv2d:direct clnet-bench conv-64-64-56-b16-forward
      the same with a solver of one's own choice
Exit code: 0; 1 when something is missing, damaged or fails; 2 for wrong names and options.)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures operations and networks on an OpenCL device, against what the device can do at most.", "clnet-bench");
  app.formatter(std::make_shared<clnet::tools::HelpLayout>());
  app.footer(examples);
  app.set_version_flag("--version", std::string(clnet::version()));
  Options options;
  app.add_option("name", options.names, "items to measure; * stands for any characters (default: all, which takes long)")
      ->type_name("");
  auto* list = app.add_flag("--list", options.list, "print the names of the items, or of those that names ask for");
  auto* programs = app.add_flag("--programs", options.programs, "count the programs that each item needs, and measure nothing")
                       ->excludes(list);
  auto* cold =
      app.add_flag("--cold", options.cold,
                   "measure from the start of a process to the end of its first step, with nothing compiled on disk; and once "
                   "more with what that has compiled")
          ->excludes(list)
          ->excludes(programs);
  // How --cold calls this program.
  app.add_flag("--first-step", options.first_step)->group("");
  auto* json = app.add_option("--json", options.json,
                              "write {name, median_ms, best_ms, work, unit} of each item to this file, or what "
                              "else was measured")
                   ->type_name("FILE");
  app.add_option("--compare", options.compare, "print the ratios of the medians in two such files, and measure nothing")
      ->expected(2)
      ->type_name("FILE FILE")
      ->excludes(list)
      ->excludes(programs)
      ->excludes(cold)
      ->excludes(json);
  app.add_option("--lanes", options.lanes,
                 "measure on these devices at once, each in a thread of its own, beside each of them alone; selectors as for "
                 "--device")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("WHICH,WHICH")
      ->excludes(list)
      ->excludes(programs)
      ->excludes(cold);
  app.add_option("--replicas", options.replicas,
                 "train on these devices together, each with a batch of the item's size, beside the first of them alone")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("WHICH,WHICH")
      ->excludes(list)
      ->excludes(programs)
      ->excludes(cold)
      ->excludes("--lanes");
  app.add_flag("--tune", options.tune,
               "first measure the solvers of each item's operations, and remember the fastest (docs/guide/speed.md)");
  app.add_option("--seconds", options.seconds, "time per item (default: 2)")->check(CLI::Range(0.01, 3600.0))->type_name("S");
  app.add_option("--device", options.device,
                 "gpu, cpu, accelerator, platform:device as in 0:1, or a part of a name; clnet-info lists them (default: "
                 "CLNET_DEVICE, else the best GPU, else the CPU)")
      ->type_name("WHICH");
  try {
    app.parse(argc, argv);
    if (json->count() > 0 && options.json.empty()) throw CLI::ValidationError("--json: the name is empty");
    if ((options.programs || options.cold || !options.replicas.empty()) && options.names.empty())
      throw CLI::ValidationError("--programs, --cold and --replicas want names of items");
    // What is measured runs often: see docs/developer/replay.md, "Launch batches".
    if (!options.programs && !options.cold && !options.first_step) ::setenv("CLNET_LAUNCH_BATCHES", "eager", 0);
    if (options.list) {
      for (const auto& item : choose(options.names)) fmt::print("{}\n", item.name);
    } else if (!options.compare.empty()) {
      compare(options.compare[0], options.compare[1]);
    } else if (options.programs) {
      count_programs(options);
    } else if (options.cold) {
      measure_cold(options);
    } else if (!options.lanes.empty()) {
      bench_lanes(options);
    } else if (!options.replicas.empty()) {
      bench_replicas(options);
    } else if (options.first_step) {
      use(options.device);
      clnet::bench::make_first_step(choose(options.names).at(0));
    } else {
      bench(options);
    }
    clnet::tools::require_written();
    return 0;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-bench: {}\n", clnet::tools::fault_of(app, error));
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-bench: {}\n", error.what());
    return 1;
  }
}
