// clnet-run: runs networks from ONNX files, and the conformance tests of ONNX.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/onnx.h"
#include "clnet/version.h"
#include "tools/help.h"
#include "tools/options_fault.h"
#include "tools/output.h"

namespace {

namespace fs = std::filesystem;
using clnet::Error;
using clnet::onnx::Model;
using clnet::onnx::Value;

struct Options {
  std::string model;
  std::vector<std::string> inputs, check;
  std::string output_dir, device;
  bool info = false, f64_as_f32 = false;
  double rtol = 1e-3, atol = 1e-5, timeout = 0;
  std::int64_t repeat = 1;
};

volatile std::sig_atomic_t interrupted = 0;

struct Interrupted : Error {
  using Error::Error;
};

/// Ends a run that takes longer, or that Ctrl-C ends.
void limit(Model& model, double seconds) {
  const auto begun = std::chrono::steady_clock::now();
  model.set_check([begun, seconds] {
    if (interrupted) throw Interrupted("interrupted");
    if (seconds > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() > seconds)
      throw Error(fmt::format("took longer than the {} s of --timeout", seconds));
  });
}

/// What differs most, in words; empty: nothing by more than the tolerance.
std::string difference(const Value& got, const Value& expected, const Options& options) {
  if (got.is_sequence != expected.is_sequence) return "one is a sequence, the other is not";
  if (got.is_sequence) {
    if (got.elements.size() != expected.elements.size())
      return fmt::format("{} elements instead of {}", got.elements.size(), expected.elements.size());
    for (std::size_t i = 0; i < got.elements.size(); ++i)
      if (auto why = difference(got.elements[i], expected.elements[i], options); !why.empty())
        return fmt::format("element {}: {}", i, why);
    return {};
  }
  if (!got.tensor.defined()) return "there is no value";
  if (got.type != expected.type) return fmt::format("the type is {} instead of {}", got.type, expected.type);
  if (!(got.tensor.shape() == expected.tensor.shape()))
    return fmt::format("the shape is {} instead of {}", to_string(got.tensor.shape()), to_string(expected.tensor.shape()));
  const auto a = got.tensor.to_vector<double>(), b = expected.tensor.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) continue;
    if (!(std::abs(a[i] - b[i]) <= options.atol + options.rtol * std::abs(b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
  }
  return {};
}

std::string file_of(const fs::path& folder, std::string_view kind, std::size_t index) {
  return (folder / fmt::format("{}_{}.pb", kind, index)).string();
}

/// Of a case in the layout of ONNX's tests: the line that tells how it went.
std::string checked(const fs::path& folder, const Options& options) {
  auto model = clnet::onnx::load(folder / "model.onnx", {.f64_as_f32 = options.f64_as_f32});
  if (!model.missing_operators().empty()) return "unsupported " + model.missing_operators().front().operation;
  limit(model, options.timeout);
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  if (sets.empty()) return "FAIL there is no test_data_set";
  for (const auto& set : sets) {
    // Files are of the inputs without a value in the network, in order.
    std::vector<Value> inputs(model.inputs().size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (model.inputs()[i].optional || !fs::exists(file_of(set, "input", next))) continue;
      inputs[i] = clnet::onnx::load_tensor(file_of(set, "input", next++), model.inputs()[i].is_sequence);
    }
    const auto outputs = model.run_values(inputs);
    for (std::size_t i = 0; fs::exists(file_of(set, "output", i)); ++i) {
      if (i >= outputs.size()) return fmt::format("FAIL there is no output {}", i);
      const auto expected = clnet::onnx::load_tensor(file_of(set, "output", i), model.outputs()[i].is_sequence);
      if (const auto why = difference(outputs[i], expected, options); !why.empty())
        return fmt::format("FAIL output {}: {}", i, why);
    }
  }
  return "pass";
}

/// The folder itself, or all below it that have a model.onnx.
std::vector<fs::path> cases_in(const fs::path& folder) {
  if (fs::exists(folder / "model.onnx")) return {folder};
  if (!fs::is_directory(folder)) throw clnet::FileError(fmt::format("{}: is no folder of cases", folder.string()));
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() && fs::exists(entry.path() / "model.onnx")) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

int check(const Options& options) {
  std::size_t passed = 0, failed = 0, skipped = 0;
  for (const auto& folder : options.check)
    for (const auto& path : cases_in(folder)) {
      std::string line;
      try {
        line = checked(path, options);
      } catch (const Interrupted&) {
        throw;
      } catch (const clnet::Unsupported& error) {
        line = fmt::format("unsupported {}", error.what());
      } catch (const std::exception& error) {
        line = fmt::format("FAIL {}", error.what());
      }
      std::replace(line.begin(), line.end(), '\n', ' ');
      (line == "pass" ? passed : line.starts_with("FAIL") ? failed : skipped) += 1;
      fmt::print("{}: {}\n", path.filename().string(), line);
      std::fflush(stdout);
    }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  clnet::tools::require_written();
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs networks from ONNX files on OpenCL devices.", "clnet-run");
  app.formatter(std::make_shared<clnet::tools::HelpLayout>());
  app.set_version_flag("--version", fmt::format("clnet-run {}", clnet::version()));
  app.add_option("--check", options.check,
                 "runs cases in the layout of ONNX's tests: model.onnx and test_data_set_*; or folders of such")
      ->type_name("DIR...");
  app.add_option("--rtol", options.rtol, "relative tolerance of --check (1e-3)");
  app.add_option("--atol", options.atol, "absolute tolerance of --check (1e-5)");
  app.add_option("--timeout", options.timeout, "seconds for one run; 0: no limit");
  app.add_flag("--f64-as-f32", options.f64_as_f32, "computes in f32 what the file has in double");
  app.add_option("--device", options.device, "the device, as CLNET_DEVICE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-run: {}; --help lists the options\n", clnet::tools::fault_of(app, error));
    return 2;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  try {
    return check(options);
  } catch (const Interrupted&) {
    fmt::print(stderr, "clnet-run: interrupted\n");
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-run: {}\n", error.what());
    return 1;
  }
}
