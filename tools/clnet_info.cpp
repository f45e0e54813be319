// clnet-info: what clnet finds on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/version.h"
#include "lib/base/env.h"
#include "lib/cl/devices.h"
#include "lib/cl/matrix_units.h"
#include "lib/cl/quirks.h"
#include "lib/cl/sub_groups.h"
#include "lib/exec/choose/device_class.h"
#include "lib/ops/matmul/clblast.h"
#include "tools/caches.h"
#include "tools/help.h"
#include "tools/options_fault.h"
#include "tools/output.h"
#include "tools/prepare.h"
#include "tools/report.h"
#include "tools/self_test/check.h"

namespace {

using clnet::DeviceInfo;
using clnet::DeviceType;
using nlohmann::ordered_json;

std::string_view type_name(DeviceType type) {
  switch (type) {
    case DeviceType::gpu: return "GPU";
    case DeviceType::accelerator: return "accelerator";
    case DeviceType::cpu: return "CPU";
    case DeviceType::other: return "other";
  }
  return "other";
}

std::string size(std::size_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= std::size_t{1} << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (bytes >= std::size_t{1} << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return fmt::format("{:.0f} KiB", value / (1 << 10));
}

/// Name and version of the ICD loader, which ocl-icd and Khronos' loader tell through the same function.
std::string loader() {
  using Query = cl_int (*)(cl_uint, std::size_t, void*, std::size_t*);
  constexpr cl_uint version = 2, name = 3;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const auto query = reinterpret_cast<Query>(clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD"));
#pragma GCC diagnostic pop
  if (!query) return "unknown";
  const auto text = [&](cl_uint what) {
    char buffer[256] = "";
    return query(what, sizeof buffer - 1, buffer, nullptr) == CL_SUCCESS ? std::string(buffer) : std::string("unknown");
  };
  return text(name) + " " + text(version);
}

std::vector<std::string_view> capabilities(const DeviceInfo& info) {
  std::vector<std::string_view> names;
  if (info.unified_memory) names.push_back("unified memory");
  if (info.fp16) names.push_back("fp16");
  if (info.fp64) names.push_back("fp64");
  if (info.subgroups) names.push_back("subgroups");
  if (info.images) names.push_back("images");
  if (info.caches_programs) names.push_back("driver caches programs");
  return names;
}

std::string matrix_units(const DeviceInfo& info) {
  std::string states;
  for (const auto& [element, state] : clnet::ocl::matrix_unit_states(info))
    states += fmt::format("{}{} ({})", states.empty() ? "" : ", ", clnet::ocl::to_string(element), state);
  if (states.empty()) return info.matrix_units ? "of a kind that clnet does not know" : "none";
  return fmt::format("{}: {}", clnet::ocl::matrix_unit(info)->name, states);
}

void print(const DeviceInfo& info, bool chosen) {
  fmt::print("\n{}:{}  {}{}\n", info.platform_index, info.device_index, info.name, chosen ? "  (default)" : "");
  const auto row = [](std::string_view name, const std::string& value) {
    for (const auto& line : clnet::tools::lines_of(value, 100)) fmt::print("     {:<16} {}\n", std::exchange(name, ""), line);
  };
  row("type", fmt::format("{}, vendor {}", type_name(info.type), info.vendor));
  row("platform", info.platform);
  row("driver", fmt::format("{}, {}", info.driver_version, info.device_version));
  const auto multiple = info.work_group_multiple > 0 ? fmt::format(", of multiples of {}", info.work_group_multiple) : "";
  row("compute units", fmt::format("{} at {} MHz, work-groups up to {}{}", info.compute_units, info.clock_mhz,
                                   info.max_work_group_size, multiple));
  row("memory", fmt::format("{}, largest allocation {}, local {}", size(info.global_memory), size(info.max_allocation),
                            size(info.local_memory)));
  if (info.cache > 0) row("cache", fmt::format("{}, lines of {} bytes", size(info.cache), info.cache_line));
  if (!info.architecture.empty() || info.sub_group_size > 0) {
    const auto exchange = clnet::ocl::claimed_sub_groups(info);
    row("architecture",
        fmt::format("{}, sub-groups of {}{}", info.architecture.empty() ? "not told" : info.architecture, info.sub_group_size,
                    exchange ? fmt::format(" ({}: {})", *exchange, clnet::ocl::sub_groups_state(info)) : ""));
    row("matrix units", matrix_units(info));
  }
  row("float vector",
      fmt::format("{} wide, kernels for {}", info.native_float_width, info.prefers_vector_kernels ? "CPUs" : "GPUs"));
  const auto& kind = clnet::exec::device_class(info);
  row("class", fmt::format("{}: {}", kind.name, kind.what));
  row("capabilities", fmt::format("{}", fmt::join(capabilities(info), ", ")));
  for (const std::string& name : info.quirks) {
    for (const auto& quirk : clnet::ocl::quirks()) {
      if (quirk.name == name) row("quirk", fmt::format("{}: {}", name, quirk.fault));
    }
  }
  if (!info.broken_solvers.empty())
    row("broken", fmt::format("{}: not used, as the self-test found them wrong", fmt::join(info.broken_solvers, ", ")));
}

ordered_json to_json(const DeviceInfo& info, bool chosen) {
  ordered_json units = ordered_json::object();
  for (const auto& [element, state] : clnet::ocl::matrix_unit_states(info)) units[clnet::ocl::to_string(element)] = state;
  return {{"selector", fmt::format("{}:{}", info.platform_index, info.device_index)},
          {"default", chosen},
          {"name", info.name},
          {"type", type_name(info.type)},
          {"vendor", info.vendor},
          {"platform", info.platform},
          {"device_version", info.device_version},
          {"driver_version", info.driver_version},
          {"compute_units", info.compute_units},
          {"clock_mhz", info.clock_mhz},
          {"max_work_group_size", info.max_work_group_size},
          {"work_group_multiple", info.work_group_multiple},
          {"global_memory", info.global_memory},
          {"max_allocation", info.max_allocation},
          {"local_memory", info.local_memory},
          {"cache", info.cache},
          {"cache_line", info.cache_line},
          {"architecture", info.architecture},
          {"sub_group_size", info.sub_group_size},
          {"smallest_sub_group", info.smallest_sub_group},
          {"sub_groups", clnet::ocl::claimed_sub_groups(info).value_or("")},
          {"sub_groups_state", clnet::ocl::sub_groups_state(info)},
          {"matrix_units", info.matrix_units},
          {"matrix_unit", units.empty() ? "" : clnet::ocl::matrix_unit(info)->name},
          {"matrix_unit_states", units},
          {"class", clnet::exec::device_class(info).name},
          {"base_address_alignment", info.base_address_alignment},
          {"native_float_width", info.native_float_width},
          {"prefers_vector_kernels", info.prefers_vector_kernels},
          {"unified_memory", info.unified_memory},
          {"fp16", info.fp16},
          {"fp64", info.fp64},
          {"subgroups", info.subgroups},
          {"images", info.images},
          {"thread_safe", info.thread_safe},
          {"reuses_buffers", info.reuses_buffers},
          {"runs_clblast", info.runs_clblast},
          {"caches_programs", info.caches_programs},
          {"quirks", info.quirks},
          {"broken_solvers", info.broken_solvers}};
}

void print_environment() {
  fmt::print("\nEnvironment:\n");
  for (const auto& variable : clnet::env::table()) {
    fmt::print("  {}={}\n      {}\n      {}\n", variable.name, clnet::env::text(variable.name).value_or(""), variable.values,
               variable.meaning);
  }
}

ordered_json environment_json() {
  ordered_json result = ordered_json::array();
  for (const auto& variable : clnet::env::table()) {
    const auto value = clnet::env::text(variable.name);
    result.push_back({{"name", variable.name},
                      {"value", value ? ordered_json(*value) : ordered_json()},
                      {"values", variable.values},
                      {"meaning", variable.meaning}});
  }
  return result;
}

ordered_json versions() {
  return {{"clnet", clnet::version()}, {"clblast", clnet::ops::clblast_version()}, {"loader", loader()}};
}

/// Returns the exit code.
int report_to(const std::string& path, const std::string& wanted) {
  const auto devices = clnet::Device::list();
  const auto selector = wanted.empty() ? clnet::env::text("CLNET_DEVICE").value_or("") : wanted;
  const int chosen = clnet::ocl::choose(devices, selector);
  if (devices.empty()) throw clnet::DeviceError(clnet::ocl::no_device_text());
  if (chosen < 0) throw clnet::DeviceError(fmt::format("no device fits '{}'; clnet-info lists what there is", selector));
  const auto& info = devices[static_cast<std::size_t>(chosen)];
  ordered_json result{{"report", clnet::tools::report_version}};
  result.update(versions());
  result["device"] = to_json(info, true);
  clnet::tools::write_report(path, std::move(result), fmt::format("{}:{}", info.platform_index, info.device_index));
  return 0;
}

/// Returns the exit code.
int report(bool environment, bool json) {
  const std::vector<DeviceInfo> devices = clnet::Device::list();
  // What Device::current() would take; a selector that fits nothing is an error here as well.
  const auto selector = clnet::env::text("CLNET_DEVICE");
  const int chosen = clnet::ocl::choose(devices, selector.value_or(""));
  if (json) {
    ordered_json result = versions();
    result["devices"] = ordered_json::array();
    for (std::size_t i = 0; i < devices.size(); ++i)
      result["devices"].push_back(to_json(devices[i], static_cast<int>(i) == chosen));
    if (environment) result["environment"] = environment_json();
    fmt::print("{}\n", result.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  } else {
    const auto clblast = clnet::ops::clblast_version();
    fmt::print("clnet {}, {}, OpenCL loader {}\n", clnet::version(), clblast.empty() ? "no CLBlast" : "CLBlast " + clblast,
               loader());
    for (std::size_t i = 0; i < devices.size(); ++i) print(devices[i], static_cast<int>(i) == chosen);
    if (environment) print_environment();
  }
  std::fflush(stdout);
  if (devices.empty()) {
    fmt::print(stderr, "clnet-info: {}\n", clnet::ocl::no_device_text());
    return 1;
  }
  if (chosen < 0) {
    fmt::print(stderr, "clnet-info: CLNET_DEVICE={}: no device fits\n", *selector);
    return 1;
  }
  return 0;
}

std::string plural(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Returns the exit code.
int show_caches(bool clear, bool json) {
  const auto removed = clear ? clnet::tools::clear_caches() : 0;
  const auto caches = clnet::tools::caches();
  if (json) {
    ordered_json result{{"caches", ordered_json::array()}};
    for (const auto& cache : caches)
      result["caches"].push_back({{"whose", cache.whose},
                                  {"variable", cache.variable},
                                  {"folder", cache.folder.string()},
                                  {"programs", cache.programs},
                                  {"kernels", cache.kernels},
                                  {"other_files", cache.others},
                                  {"bytes", cache.bytes},
                                  {"clears", cache.clears}});
    if (clear) result["removed"] = removed;
    fmt::print("{}\n", result.dump(2, ' ', false, ordered_json::error_handler_t::replace));
    return 0;
  }
  if (clear) fmt::print("removed {} files and folders\n", removed);
  for (const auto& cache : caches) {
    std::string holds = plural(cache.programs, "program");
    if (cache.kernels > 0) holds += ", " + plural(cache.kernels, "kernel");
    if (cache.others > 0) holds += ", " + plural(cache.others, "file") + " of what was measured and found";
    fmt::print("{:<7} {}  ({})\n        {}, {}{}\n", cache.whose, cache.folder.string(), cache.variable, holds, size(cache.bytes),
               cache.clears ? "" : "; --clear leaves it alone");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Lists the OpenCL devices that clnet can use, what they can do, and the versions in use; tests one; reports on one; "
      "compiles ahead; shows what "
      "is kept on disk.\n"
      "Exit code: 0; 1 when there is no device, or none that CLNET_DEVICE fits; 2 for wrong options.\n"
      "Exit code of --self-test: 0 when the device is good; 1 when something is broken; 2 for wrong options; 3 when it could not "
      "be "
      "tested, or the result not be kept.",
      "clnet-info");
  app.formatter(std::make_shared<clnet::tools::HelpLayout>());
  bool environment = false, json = false, test = false, quick = false;
  clnet::tools::SelfTestOptions options;
  int worker = -1;
  app.add_flag("--env", environment, "also the environment variables that clnet reads, with their values");
  app.add_flag("--json", json, "the same as JSON");
  auto* self_test =
      app.add_flag("--self-test", test,
                   "run every way to compute every operation on a device, compare with double precision on the host, try "
                   "its limits, and keep what is broken, so that clnet does not use it on this device");
  auto* full = app.add_flag("--full", options.full, "more shapes, types and repetitions: some minutes");
  app.add_flag("--quick", quick, "under a minute on a good device; the default")->excludes(full)->needs(self_test);
  app.add_option("--device", options.device, "the device to test or report on: gpu, cpu, accelerator, 0:1 or a part of its name")
      ->type_name("D");
  app.add_option("--only", options.only, "test only the solvers of this operation")->type_name("OP");
  app.add_option("--jobs", options.jobs,
                 "run so many checks at a time; without it one for each core, at most 4, for a CPU, and one for other devices")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  bool cache = false, clear = false;
  // What stands behind --prepare is another program's.
  const auto first = std::find(argv, argv + argc, std::string_view("--prepare"));
  const bool prepares = first != argv + argc;
  const std::vector<std::string> ahead(prepares ? first + 1 : first, argv + argc);
  std::string in_help;
  auto* show = app.add_flag("--cache", cache, "where compiled programs are kept, clnet's and the drivers', and how many");
  app.add_flag("--clear", clear,
               "first remove those of clnet and of PoCL, while no program uses them; what clnet measured and found stays")
      ->needs(show);
  app.add_option(
         "--prepare", in_help,
         "compile what clnet-train needs for NETWORK with its defaults, NETWORK:CxHxW:BATCH for other images, or what PROGRAM "
         "does when it is run with the words behind it; the last option")
      ->type_name("NETWORK|PROGRAM ...");
  std::string report_file;
  app.add_option("--report", report_file,
                 "write to this file what others may want to know of a device: what it is, the quick self-test, the times of ten "
                 "of clnet-bench's items; some minutes, docs/reference/devices.md says where to send it")
      ->type_name("FILE");
  // How the self-test and the report call themselves.
  int first_item = -1;
  app.add_option("--self-test-worker", worker)->group("");
  app.add_option("--report-items", first_item)->group("");
  app.set_version_flag("--version", std::string(clnet::version()));
  try {
    app.parse(static_cast<int>(first - argv), argv);
    if (prepares && ahead.empty()) throw CLI::ValidationError("--prepare: expected the name of a network, or a program");
    if (app.count("--report") > 0 && report_file.empty()) throw CLI::ValidationError("--report: the name is empty");
    const bool reports = !report_file.empty() || first_item >= 0;
    if (!test && worker < 0 && (options.full || !options.only.empty() || options.jobs > 0))
      throw CLI::ValidationError("--full, --only and --jobs belong to --self-test");
    if (!test && worker < 0 && !reports && !options.device.empty())
      throw CLI::ValidationError("--device belongs to --self-test and --report");
    if (prepares && json) throw CLI::ValidationError("--prepare says nothing as JSON");
    if (static_cast<int>(test) + static_cast<int>(cache) + static_cast<int>(prepares) + static_cast<int>(!report_file.empty()) >
        1)
      throw CLI::ValidationError("--self-test, --report, --cache and --prepare are different things to do");
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-info: {} (see --help)\n", clnet::tools::fault_of(app, error));
    return 2;
  }
  try {
    if (worker >= 0) {
      clnet::Device::set_default(clnet::Device::find(options.device));
      return clnet::tools::run_checks(worker, {options.full}, options.only);
    }
    if (first_item >= 0) {
      // As clnet-bench does: what is measured runs often.
      ::setenv("CLNET_LAUNCH_BATCHES", "eager", 0);
      clnet::Device::set_default(clnet::Device::find(options.device));
      clnet::tools::measure_for_report(first_item);
      return 0;
    }
    if (!report_file.empty()) return report_to(report_file, options.device);
    options.json = json;
    const int code = cache      ? show_caches(clear, json)
                     : prepares ? clnet::tools::prepare(ahead)
                     : test     ? clnet::tools::self_test(options)
                                : report(environment, json);
    clnet::tools::require_written();
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-info: {}\n", error.what());
    return test ? 3 : 1;
  }
}
