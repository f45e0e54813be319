// clnet-bench: how fast operations and networks are on a device, and against what it could do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/base/file.h"
#include "tools/bench_items.h"

namespace {

using clnet::Error;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> names, compare;
  std::string json, device;
  bool list = false;
  double seconds = 2;
};

struct Result {
  double median, best;  ///< seconds
};

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Runs for about `budget` seconds: three runs to warm up, then samples of at least 20 ms each, at least five of them.
Result measure(const clnet::bench::Item& item, double budget) {
  const auto run = item.prepare();
  const auto device = clnet::Device::current();
  for (int i = 0; i < 3; ++i) run();
  device.finish();
  auto start = Clock::now();
  run();
  device.finish();
  const int runs = std::max(1, static_cast<int>(0.02 / std::max(since(start), 1e-6)));
  std::vector<double> samples;
  const auto begin = Clock::now();
  while (samples.size() < 5 || (since(begin) < budget && samples.size() < 1000)) {
    start = Clock::now();
    for (int i = 0; i < runs; ++i) run();
    device.finish();
    samples.push_back(since(start) / runs);
  }
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front()};
}

std::string rate(const clnet::bench::Item& item, const Result& result, const clnet::bench::Peak& peak) {
  const double per_second = item.work / result.median;
  if (item.unit == "FLOP")
    return fmt::format("{:9.1f} GFLOP/s  {:3.0f} % of the peak", per_second / 1e9, 100 * per_second / peak.flops);
  if (item.unit == "byte")
    return fmt::format("{:9.1f} GB/s     {:3.0f} % of a copy", per_second / 1e9, 100 * per_second / peak.bytes);
  return fmt::format("{:9.1f} {}s/s", per_second, item.unit);
}

ordered_json read_results(const std::string& path) {
  auto content = ordered_json::parse(clnet::file::read(path, 16 << 20), nullptr, false);
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

void bench(const Options& options) {
  const auto all = clnet::bench::items();
  std::vector<const clnet::bench::Item*> chosen;
  for (const auto& name : options.names) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& item) { return item.name == name; });
    if (found == all.end()) throw CLI::ValidationError(fmt::format("there is no item named '{}'; --list prints the names", name));
    chosen.push_back(&*found);
  }
  if (chosen.empty())
    for (const auto& item : all) chosen.push_back(&item);
  if (!options.device.empty()) clnet::Device::set_default(clnet::Device::find(options.device));
  const auto peak = clnet::bench::measure_peak();
  fmt::print("{}: {:.1f} GFLOP/s in registers, {:.1f} GB/s copied\n", clnet::Device::current().info().name, peak.flops / 1e9,
             peak.bytes / 1e9);
  ordered_json results = ordered_json::array();
  for (const auto* item : chosen) {
    const auto result = measure(*item, options.seconds);
    fmt::print("{:<40} median {:10.4f} ms  best {:10.4f} ms  {}\n", item->name, result.median * 1e3, result.best * 1e3,
               rate(*item, result, peak));
    std::fflush(stdout);
    results.push_back({{"name", item->name},
                       {"median_ms", result.median * 1e3},
                       {"best_ms", result.best * 1e3},
                       {"work", item->work},
                       {"unit", item->unit}});
  }
  if (!options.json.empty()) clnet::file::replace(options.json, results.dump(2) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures operations and networks on an OpenCL device. Without names, all items are measured."};
  Options options;
  app.add_option("name", options.names, "Items to measure; --list prints them");
  app.add_flag("--list", options.list, "Print the items' names");
  app.add_option("--json", options.json, "Write {name, median_ms, best_ms, work, unit} per item to this file")->type_name("FILE");
  app.add_option("--compare", options.compare, "Print the ratios of two such files, and measure nothing")
      ->expected(2)
      ->type_name("FILE FILE");
  app.add_option("--seconds", options.seconds, "Time per item (default: 2)")->check(CLI::Range(0.01, 3600.0))->type_name("S");
  app.add_option("--device", options.device,
                 "gpu, cpu, 0:1 (platform:device) or a part of a name; default: CLNET_DEVICE, else the best")
      ->type_name("DEVICE");
  try {
    app.parse(argc, argv);
    if (options.list) {
      for (const auto& item : clnet::bench::items()) fmt::print("{}\n", item.name);
    } else if (!options.compare.empty()) {
      compare(options.compare[0], options.compare[1]);
    } else {
      bench(options);
    }
    return 0;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-bench: {}\n", error.what());
    return 1;
  }
}
