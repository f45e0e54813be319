// clnet-run: runs networks from ONNX files, and the conformance tests of ONNX.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/version.h"
#include "lib/base/os/terminal.h"
#include "tools/help.h"
#include "tools/image_notes.h"
#include "tools/onnx_cases.h"
#include "tools/onnx_image.h"
#include "tools/options_fault.h"
#include "tools/output.h"
#include "tools/run_profile.h"
#include "tools/tell_compiling.h"

namespace {

namespace fs = std::filesystem;
using clnet::Error;
using clnet::onnx::Model;
using clnet::onnx::Value;

struct Options {
  std::string model;
  std::vector<std::string> inputs, check;
  std::string output_dir, format = "pb", device, labels, layout, trace;
  bool info = false, f64_as_f32 = false, no_passes = false, profile = false;
  double rtol = 1e-3, atol = 1e-5, timeout = 0;
  std::int64_t repeat = 1;
  std::optional<std::int64_t> top;
  std::vector<float> mean, std;
  std::vector<std::int64_t> size;
  std::optional<bool> crop;
};

volatile std::sig_atomic_t interrupted = 0;

struct Interrupted : Error {
  using Error::Error;
};

/// Ends a run that takes longer, or that Ctrl-C ends: between nodes, and while kernels are compiled.
void limit(Model& model, double seconds) {
  const auto begun = std::chrono::steady_clock::now();
  const auto check = [begun, seconds] {
    if (interrupted) throw Interrupted("interrupted");
    if (seconds > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() > seconds)
      throw Error(fmt::format("took longer than the {} s of --timeout", seconds));
  };
  model.set_check(check);
  clnet::tools::tell_of_compiling(clnet::os::is_terminal(clnet::os::Stream::error) ? stderr : nullptr, check);
}

int check(const Options& options) {
  std::size_t passed = 0, failed = 0, skipped = 0;
  const clnet::tools::CaseOptions how{.rtol = options.rtol,
                                      .atol = options.atol,
                                      .f64_as_f32 = options.f64_as_f32,
                                      .passes = !options.no_passes,
                                      .before = [&](Model& model) { limit(model, options.timeout); }};
  for (const auto& folder : options.check)
    for (const auto& path : clnet::tools::cases_in(folder)) {
      const auto line = clnet::tools::checked_case(path, how);
      if (interrupted) throw Interrupted("interrupted");
      (line == "pass" ? passed : line.starts_with("FAIL") ? failed : skipped) += 1;
      fmt::print("{}: {}\n", path.filename().string(), line);
      std::fflush(stdout);
    }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  clnet::tools::require_written();
  return failed == 0 && passed > 0 ? 0 : 1;
}

/// Of an input or output: "x float [n, 3, 224, 224]".
std::string text_of(const clnet::onnx::ValueInfo& value) {
  return fmt::format("{} {}{}{}{}", value.name, value.is_sequence ? "sequence of " : "", value.type,
                     value.is_known_rank ? fmt::format(" [{}]", fmt::join(value.extents, ", ")) : "",
                     value.optional ? ", optional" : "");
}

/// How the file says that images are normalized and cut, and the names of its classes.
void show_image_notes(const Model& model, const std::string& file) {
  constexpr std::size_t most_labels = 10;
  const auto notes = clnet::tools::image_notes(model, file);
  if (!notes.mean.empty()) fmt::print("images: mean {}\n", fmt::join(notes.mean, ", "));
  if (!notes.std.empty()) fmt::print("images: standard deviation {}\n", fmt::join(notes.std, ", "));
  if (notes.crop) fmt::print("images: the middle is cut out\n");
  auto labels = clnet::tools::image_labels(model);
  if (labels.empty()) return;
  const auto count = labels.size();
  labels.resize(std::min(count, most_labels));
  fmt::print("{} classes: {}{}\n", count, fmt::join(labels, ", "), count > most_labels ? ", ..." : "");
}

int show(Model& model, const Options& options) {
  // A loop may have no end.
  constexpr double most_seconds = 10;
  limit(model, options.timeout > 0 ? options.timeout : most_seconds);
  fmt::print("format version {}, written by {}\n", model.ir_version(), model.producer().empty() ? "?" : model.producer());
  for (const auto& [domain, version] : model.opsets())
    fmt::print("operator set {} {}\n", domain.empty() ? "ai.onnx" : domain, version);
  for (const auto& value : model.inputs()) fmt::print("input {}\n", text_of(value));
  for (const auto& value : model.outputs()) fmt::print("output {}\n", text_of(value));
  try {
    show_image_notes(model, options.model);
  } catch (const Error& error) {
    fmt::print("images: {}\n", error.what());
  }
  std::int64_t buffers = 0;
  for (const auto& [name, buffer] : model.buffers()) buffers += buffer.shape().numel();
  fmt::print("{} parameters, {} elements of buffers\n", model.parameter_count(), buffers);
  const auto products = model.missing_operators().empty() ? model.multiply_adds() : std::nullopt;
  if (interrupted) throw Interrupted("interrupted");
  fmt::print("{} multiply-adds in convolutions, products, attention and recurrence{}\n",
             products ? fmt::format("{:.0f}", *products) : std::string("unknown"),
             products ? "" : ": extents are open, data decide, it takes too long, or there is no device");
  for (const auto& [name, count] : model.operators()) fmt::print("{:6} {}\n", count, name);
  for (const auto& missing : model.missing_operators())
    fmt::print("unsupported: {} of set {}, node {}\n", missing.operation, missing.opset, missing.node);
  clnet::tools::require_written();
  return model.missing_operators().empty() ? 0 : 1;
}

/// How images are normalized and cut: as the options say, else as the file does.
struct Treatment {
  std::vector<float> mean, std;
  bool crop;
  std::string source;  ///< of mean and std, for errors
};

Treatment treatment_of(const Model& model, const Options& options) {
  const bool crop = options.crop ? *options.crop : clnet::tools::image_crop(model, options.model);
  if (!options.mean.empty() || !options.std.empty()) return {options.mean, options.std, crop, "--mean and --std"};
  auto notes = clnet::tools::image_notes(model, options.model);
  return {std::move(notes.mean), std::move(notes.std), crop, options.model + ": its metadata"};
}

/// An image as the network's input: resized to --size or the input's own extents, and normalized.
Value image_value(const std::string& path, const clnet::onnx::ValueInfo& input, const Treatment& treatment,
                  const Options& options) {
  using Layout = clnet::tools::ImageInput::Layout;
  clnet::tools::ImageInput as(input, path);
  if (!options.layout.empty() && input.extents.size() == 4) as.choose(options.layout == "nhwc" ? Layout::pixels : Layout::planes);
  const auto channels = as.image[0];
  auto height = as.image[1], width = as.image[2];
  if (as.layout == Layout::flat && channels == 0)
    throw Error(fmt::format("{}: {} takes numbers of no square image", path, as.description()));
  if (!options.size.empty()) {
    height = options.size[0];
    width = options.size.back();
  }
  const std::int64_t colours = channels == 1 ? 1 : 3;
  if (height == 0 || width == 0) {
    const auto whole = clnet::data::read_image(path, colours);
    height = whole.shape[1];
    width = whole.shape[2];
  }
  // As clnet-train has them, to the bit.
  const clnet::data::Images images({{.image = path}}, {"image"},
                                   {.height = height, .width = width, .channels = colours, .keep_aspect = treatment.crop});
  clnet::Tensor x = clnet::unsqueeze(images.get(0, 0)[0].tensor(), 0);
  if (!as.takes_bytes())
    x = clnet::tools::normalized(x, treatment.mean, treatment.std, treatment.source);
  else if (!options.mean.empty() || !options.std.empty())
    throw Error(fmt::format("--mean and --std: {} takes bytes, which are not normalized", as.description()));
  return Value(as.of(x));
}

/// Inputs in the network's order from [NAME=]FILE...; files without a name are of the inputs without a value, in order.
std::vector<Value> read_inputs(const Model& model, const Options& options) {
  std::vector<Value> values(model.inputs().size());
  std::vector<bool> given(values.size());
  for (const auto& text : options.inputs) {
    auto file = text;
    std::size_t at = values.size();
    if (const auto equals = text.find('='); equals != std::string::npos && !fs::exists(text)) {
      const auto name = text.substr(0, equals);
      file = text.substr(equals + 1);
      at = 0;
      while (at < values.size() && model.inputs()[at].name != name) ++at;
      if (at == values.size()) throw Error(fmt::format("the network has no input {}", name));
    } else {
      for (at = 0; at < values.size() && (given[at] || model.inputs()[at].optional); ++at) continue;
      if (at == values.size()) throw Error(fmt::format("{}: the network has no further input", file));
    }
    const auto& input = model.inputs()[at];
    if (given[at]) throw Error(fmt::format("{}: input {} is given twice", file, input.name));
    given[at] = true;
    if (file.ends_with(".pb"))
      values[at] = clnet::onnx::load_value(file, input);
    else if (file.ends_with(".npy"))
      values[at] =
          Value(clnet::io::load_npy(file, input.type == "double" && !options.f64_as_f32 ? clnet::Dtype::f64 : clnet::Dtype::f32));
    else
      values[at] = image_value(file, input, treatment_of(model, options), options);
  }
  return values;
}

std::vector<std::string> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  std::ifstream file(path);
  if (!file) throw clnet::FileError(fmt::format("{}: cannot be opened", path));
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  if (labels.empty()) throw clnet::FileError(fmt::format("{}: no labels, one per line", path));
  return labels;
}

/// The largest numbers of each row, with their places or labels. Where no option asks for it, only outputs of rank 1 and 2 have
/// rows.
void print_top(const clnet::Tensor& output, const Options& options, const std::vector<std::string>& labels) {
  const auto rank = output.rank();
  if (rank < 1 || (rank > 2 && !options.top) || output.size(-1) < 2 || !clnet::is_floating(output.dtype())) return;
  const auto top = std::min(options.top.value_or(5), output.size(-1));
  if (top < 1 || output.shape().numel() == 0) return;
  const auto best = clnet::topk(clnet::reshape(output, {-1, output.size(-1)}), top, 1);
  const auto values = best.values.to_vector<double>();
  const auto places = best.indices.to_vector<std::int64_t>();
  const auto in_row = static_cast<std::size_t>(top);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places.size() > in_row && i % in_row == 0) fmt::print("  row {}:\n", i / in_row);
    const auto place = static_cast<std::size_t>(places[i]);
    fmt::print("  {:>8.4f}  {}\n", values[i], place < labels.size() ? labels[place] : std::to_string(place));
  }
}

/// Of an output so short that it is shown whole; a longer one shows its largest numbers, if anything.
bool print_whole(const clnet::Tensor& output, const Options& options) {
  constexpr std::int64_t most = 8;
  if (options.top || output.rank() > 1 || output.shape().numel() > most || output.shape().numel() == 0) return false;
  if (clnet::is_floating(output.dtype()))
    fmt::print("  {:.6g}\n", fmt::join(output.to_vector<double>(), "  "));
  else
    fmt::print("  {}\n", fmt::join(output.to_vector<std::int64_t>(), "  "));
  return true;
}

/// Writes an output's file. One without a value has none.
void write_output(const Value& output, std::size_t place, const std::string& name, const Options& options) {
  const auto path = fs::path(options.output_dir) / fmt::format("output_{}.{}", place, options.format);
  if (!output.is_sequence && !output.tensor.defined()) return;
  if (options.format != "npy")
    clnet::onnx::save_tensor(path, output, name);
  else if (output.is_sequence)
    throw Error(fmt::format("--format npy: output {} is a sequence, which only pb holds", name));
  else
    clnet::io::save_npy(path, output.tensor);
}

/// Runs of a network with inputs of the same types and shapes. From the second on they only replay a plan, where the network's
/// structure does not depend on data.
class Runs {
 public:
  explicit Runs(Model& model) : model_(model) {}

  std::vector<Value> operator()(const std::vector<Value>& inputs) {
    std::vector<clnet::Tensor> given;
    for (const auto& input : inputs) {
      if (input.is_sequence) compiles_ = false;
      if (input.tensor.defined()) given.push_back(input.tensor);
    }
    if (compiles_ && model_.missing_operators().empty()) {
      try {
        return compiled(inputs, given);
      } catch (const Interrupted&) {
        throw;
      } catch (const Error&) {
        if (interrupted) throw Interrupted("interrupted");
        compiles_ = false;  // the run below tells a fault of the network
      }
    }
    auto outputs = model_.run_values(inputs);
    std::vector<clnet::Tensor> pending;
    for (const auto& output : outputs)
      if (output.tensor.defined()) pending.push_back(output.tensor);
    clnet::eval(pending);
    return outputs;
  }

 private:
  std::vector<Value> compiled(const std::vector<Value>& inputs, const std::vector<clnet::Tensor>& given) {
    const auto results = calls_.call(
        [&](const std::vector<clnet::Tensor>& stand_ins) {
          auto values = inputs;
          std::size_t next = 0;
          for (auto& value : values)
            if (value.tensor.defined()) value.tensor = stand_ins[next++];
          outputs_ = model_.run_values(values);
          std::vector<clnet::Tensor> tensors;
          for (const auto& output : outputs_) {
            if (output.is_sequence) throw Error("a sequence is no result of compile()");
            if (output.tensor.defined()) tensors.push_back(output.tensor);
          }
          return tensors;
        },
        given);
    auto outputs = outputs_;
    std::size_t next = 0;
    for (auto& output : outputs)
      if (output.tensor.defined()) output.tensor = results[next++];
    return outputs;
  }

  Model& model_;
  bool compiles_ = true;
  clnet::CompiledCalls calls_;
  std::vector<Value> outputs_;  ///< of the stand-ins: their types
};

int run(Model& model, const Options& options) {
  using Clock = std::chrono::steady_clock;
  model.freeze();  // what is made of weights is computed once
  const auto labels = options.labels.empty() ? clnet::tools::image_labels(model) : read_labels(options.labels);
  if (!options.output_dir.empty() && options.format == "npy")
    for (const auto& output : model.outputs())
      if (output.is_sequence) throw Error(fmt::format("--format npy: output {} is a sequence, which only pb holds", output.name));
  const auto inputs = read_inputs(model, options);
  std::vector<Value> outputs;
  std::vector<double> times;
  Runs runs(model);
  clnet::tools::RunProfile profile(options.trace, options.profile);
  const auto timed = [&] {
    if (interrupted) throw Interrupted("interrupted");
    limit(model, options.timeout);
    const auto begun = Clock::now();
    outputs = runs(inputs);
    clnet::Device::current().finish();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  };
  const auto repeats = std::max<std::int64_t>(1, options.repeat);
  if (profile.is_wanted()) {
    // Kernels are compiled, and weights prepacked, before. The first of them is the first run that is told.
    timed();
    timed();
    times.pop_back();
    profile.begin();
  }
  for (std::int64_t i = 0; i < repeats; ++i) timed();
  if (profile.is_wanted()) profile.end(repeats);
  if (!options.output_dir.empty()) fs::create_directories(options.output_dir);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& output = outputs[i];
    if (output.is_sequence)
      fmt::print("{}: a sequence of {}\n", model.outputs()[i].name, output.elements.size());
    else if (output.tensor.defined())
      fmt::print("{}: {} {}\n", model.outputs()[i].name, output.type, to_string(output.tensor.shape()));
    else
      fmt::print("{}: no value\n", model.outputs()[i].name);
    if (!output.is_sequence && output.tensor.defined() && !print_whole(output.tensor, options))
      print_top(output.tensor, options, labels);
    if (!options.output_dir.empty()) write_output(output, i, model.outputs()[i].name, options);
  }
  fmt::print("first run {:.1f} ms", times.front());
  if (times.size() > 1) {
    std::sort(times.begin() + 1, times.end());
    fmt::print(", then {:.2f} ms (median of {}), at best {:.2f} ms", times[1 + (times.size() - 1) / 2], times.size() - 1,
               times[1]);
  }
  fmt::print("\n");
  clnet::tools::require_written();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs networks from ONNX files on OpenCL devices.", "clnet-run");
  app.formatter(std::make_shared<clnet::tools::HelpLayout>());
  app.set_version_flag("--version", fmt::format("clnet-run {}", clnet::version()));
  app.add_option("model", options.model, "a network in an ONNX file")->type_name("MODEL.onnx");
  app.add_option("inputs", options.inputs,
                 "inputs: .pb (ONNX's TensorProto), .npy, or an image; without names in the network's order")
      ->type_name("[NAME=]FILE...");
  app.add_option("--output-dir", options.output_dir, "writes output_0.pb, output_1.pb, ... there")->type_name("DIR");
  app.add_option("--format", options.format, "of outputs: pb (default) or npy")->check(CLI::IsMember({"pb", "npy"}));
  app.add_option("--repeat", options.repeat, "runs so often, and prints the median time")->check(CLI::Range(1, 1000000));
  app.add_option("--top", options.top, "prints so many of the largest numbers of each row (5)");
  app.add_option("--labels", options.labels, "a file with the name of each class, one per line; default: the network's own")
      ->type_name("FILE");
  app.add_flag("--info", options.info, "prints inputs, outputs, parameters, multiply-adds, operators and which are unsupported");
  app.add_option("--mean", options.mean,
                 "subtracted from images' pixels of 0 to 1, one or per channel; without it and --std, as the network says")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--std", options.std, "divides them then")->delimiter(',')->allow_extra_args(false)->check(CLI::PositiveNumber);
  app.add_option("--size", options.size, "of images: HEIGHT,WIDTH or one for both; default: the input's")
      ->delimiter(',')
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  bool crops = false, stretches = false;
  auto* crop =
      app.add_flag("--crop", crops, "cuts the middle out of images, instead of stretching them; default: as the network says");
  app.add_flag("--no-crop", stretches, "stretches them, whatever the network says")->excludes(crop);
  app.add_option("--layout", options.layout, "of images: nchw or nhwc; default: where the input has 1 or 3 channels")
      ->check(CLI::IsMember({"nchw", "nhwc"}));
  app.add_option(
         "--check", options.check,
         "runs cases in the layout of ONNX's tests, each a folder with model.onnx and test_data_set_*, or folders of such")
      ->type_name("DIR...");
  app.add_option("--rtol", options.rtol, "relative tolerance of --check (1e-3)");
  app.add_option("--atol", options.atol, "absolute tolerance of --check (1e-5)");
  app.add_option("--timeout", options.timeout, "seconds for one run, compiling included, and of --info 10; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--f64-as-f32", options.f64_as_f32, "computes in f32 what the file has in double");
  app.add_flag("--no-passes", options.no_passes, "computes each node as the file has it, without fusing patterns");
  app.add_flag("--profile", options.profile, "prints the time by kernel and by node, of all runs of --repeat but two before");
  app.add_option("--trace", options.trace, "writes a timeline of the same runs, in Chrome's format")->type_name("FILE");
  app.add_option("--device", options.device, "the device, as CLNET_DEVICE has it");
  try {
    app.parse(argc, argv);
    if (crops || stretches) options.crop = crops;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-run: {}; --help lists the options\n", clnet::tools::fault_of(app, error));
    return 2;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  try {
    if (options.check.empty() && options.model.empty()) {
      fmt::print(stderr, "clnet-run: a network or --check is needed; --help lists the options\n");
      return 2;
    }
    std::optional<clnet::DeviceScope> scope;
    if (!options.device.empty()) scope.emplace(clnet::Device::find(options.device));
    if (!options.check.empty()) return check(options);
    auto model = clnet::onnx::load(options.model, {.f64_as_f32 = options.f64_as_f32, .passes = !options.no_passes});
    return options.info ? show(model, options) : run(model, options);
  } catch (const std::exception& error) {
    if (interrupted) {
      fmt::print(stderr, "clnet-run: interrupted\n");
      return 130;
    }
    // Errors of a node do not know which file it is from.
    const std::string_view text = error.what();
    const bool named = options.check.empty() && text.starts_with("in ");
    fmt::print(stderr, "clnet-run: {}{}{}\n", named ? options.model : "", named ? ": " : "", text);
    return 1;
  }
}
