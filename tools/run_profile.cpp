#include "tools/run_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"

namespace clnet::tools {

namespace {

constexpr std::size_t most_rows = 30;

struct Total {
  double us = 0, bytes = 0, flops = 0;
  std::int64_t calls = 0;

  void add(double duration, double moved, double computed) {
    us += duration;
    bytes += moved;
    flops += computed;
    ++calls;
  }
};

void print_totals(const std::map<std::string, Total>& totals, std::string_view title, double all, double runs) {
  std::vector<std::pair<std::string, Total>> rows(totals.begin(), totals.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  fmt::print("{:>9} {:>6} {:>7} {:>8} {:>7}  {}\n", "ms", "share", "calls", "GFLOP/s", "GB/s", title);
  Total rest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, total] = rows[i];
    if (i >= most_rows) {
      rest.us += total.us;
      rest.calls += total.calls;
      continue;
    }
    const double ns = std::max(total.us * 1e3, 1e-3);
    fmt::print("{:>9.3f} {:>5.1f}% {:>7.1f} {:>8.1f} {:>7.1f}  {}\n", total.us * 1e-3 / runs, 100 * total.us / all,
               static_cast<double>(total.calls) / runs, total.flops / ns, total.bytes / ns, name);
  }
  if (rest.calls > 0)
    fmt::print("{:>9.3f} {:>5.1f}% {:>7.1f} {:>8} {:>7}  {} others\n", rest.us * 1e-3 / runs, 100 * rest.us / all,
               static_cast<double>(rest.calls) / runs, "", "", rows.size() - most_rows);
}

}  // namespace

RunProfile::RunProfile(std::string trace, bool table) : trace_(std::move(trace)), table_(table) {
  if (!table_ || !trace_.empty()) return;
  // A table is made of a trace, which nobody asked for.
  std::random_device random;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("clnet-run-{:08x}{:08x}", random(), random());
  if (!std::filesystem::create_directory(folder)) throw FileError(fmt::format("{}: cannot be made", folder.string()));
  folder_ = folder.string();
  trace_ = (folder / "trace.json").string();
}

RunProfile::~RunProfile() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void RunProfile::begin() { Device::current().start_trace(trace_); }

void RunProfile::end(std::int64_t runs) {
  Device::current().stop_trace();
  if (!table_) return;
  std::ifstream file(trace_);
  const auto trace = nlohmann::json::parse(file);
  std::map<std::string, Total> kernels, nodes;
  double all = 0;
  for (const auto& event : trace.is_array() ? trace : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X") continue;
    const auto& args = event.at("args");
    const auto name = event.at("name").get<std::string>();
    const auto us = event.at("dur").get<double>(), bytes = args.at("bytes").get<double>(), flops = args.at("flops").get<double>();
    kernels[name].add(us, bytes, flops);
    const auto scope = args.value("scope", std::string());
    nodes[scope.empty() ? fmt::format("({})", name) : fmt::format("{}: {}", scope, name)].add(us, bytes, flops);
    all += us;
  }
  if (all == 0) {
    fmt::print("no kernel took time\n");
    return;
  }
  print_totals(kernels, "kernel", all, static_cast<double>(runs));
  print_totals(nodes, "node: kernel", all, static_cast<double>(runs));
  fmt::print("{:.3f} ms of kernels and transfers per run\n", all * 1e-3 / static_cast<double>(runs));
}

}  // namespace clnet::tools
