// clnet-train: trains one of the library's networks to classify images, or to write text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "lib/base/os/process.h"
#include "lib/base/os/terminal.h"
#include "tools/clnet_train_data.h"
#include "tools/clnet_train_log.h"
#include "tools/clnet_train_onnx.h"
#include "tools/clnet_train_options.h"
#include "tools/clnet_train_report.h"
#include "tools/clnet_train_text.h"
#include "tools/output.h"
#include "tools/plot.h"
#include "tools/tell_compiling.h"

namespace {

namespace fs = std::filesystem;
using namespace clnet;
using tools::Curves;
using tools::TrainData;
using tools::TrainOptions;

constexpr int failed = 1, wrong_options = 2, interrupted = 130;
constexpr std::int64_t steps_that_show_shares = 16;

optim::Schedule make_schedule(const TrainOptions& o, std::int64_t total) {
  const double rate = *tools::optimizer_options(o).learning_rate;
  if (o.schedule == "one-cycle") return optim::one_cycle(rate, total);
  optim::Schedule schedule;
  if (o.schedule == "constant") schedule = optim::constant(rate);
  if (o.schedule == "step") schedule = optim::step_decay(rate, o.decay_steps.value_or((total + 2) / 3));
  if (o.schedule == "cosine") schedule = optim::cosine(rate, total);
  return o.warmup_steps ? optim::warm_up(*o.warmup_steps, schedule) : schedule;
}

/// Fails now, not after hours, when `path` could not be written at the end.
void require_writable(const char* option, const fs::path& path) {
  try {
    std::error_code code;
    const auto type = fs::status(path, code).type();
    if (type == fs::file_type::directory) throw FileError(fmt::format("{}: is a folder, not a file", path.string()));
    if (type != fs::file_type::regular && type != fs::file_type::not_found)
      throw FileError(fmt::format("{}: is not a regular file", path.string()));
    const auto folder = path.parent_path();
    if (!folder.empty() && !fs::is_directory(folder, code)) throw FileError(fmt::format("{}: no such folder", folder.string()));
    const auto probe = folder / fmt::format(".clnet-probe-{}", os::own_process());
    file::replace(probe, std::string_view{});
    fs::remove(probe, code);
  } catch (const FileError& error) {
    throw FileError(fmt::format("{} {}", option, error.what()));
  }
}

/// A file without one of the other formats' endings is a safetensors file: --save takes any name.
io::Safetensors read_weights(const fs::path& path) {
  const auto ending = path.extension();
  if (ending == ".onnx") return {onnx::load(path).state_dict(), {}};
  for (const char* other : {".npz", ".pt", ".pth", ".ckpt", ".bin"})
    if (ending == other) return {io::load_state(path), {}};
  return io::load_safetensors(path);
}

void load_weights(nn::Module& model, const std::string& path, const std::string& alphabet) {
  auto weights = read_weights(path);
  // ONNX has no count of batches.
  if (fs::path(path).extension() == ".onnx")
    for (const auto& [name, value] : model.buffers()) {
      const auto has_name = [&, &own = name](const auto& tensor) { return tensor.first == own; };
      if (name.ends_with("num_batches_tracked") && std::none_of(weights.tensors.begin(), weights.tensors.end(), has_name))
        weights.tensors.emplace_back(name, value.value());
    }
  try {
    if (!alphabet.empty()) tools::require_alphabet(weights.metadata, alphabet);
    model.load_state_dict(weights.tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

void draw(const TrainOptions& o, const TrainData& data, const Curves& curves, std::int64_t epoch_length) {
  const bool text = data.is_text();
  const std::string held_out = data.held_out();
  const auto epochs_at = [&](std::int64_t step) { return static_cast<double>(step) / static_cast<double>(epoch_length); };
  const double end = curves.steps.empty() ? 0 : epochs_at(curves.steps.back().step);
  std::vector<tools::Point> steps, train_loss, test_loss, accuracy;
  const auto add = [](std::vector<tools::Point>& points, double x, double y) {
    if (std::isfinite(y)) points.push_back({x, y});
  };
  for (const auto& step : curves.steps) add(steps, epochs_at(step.step), step.loss);
  for (const auto& epoch : curves.epochs) {
    const auto at = static_cast<double>(epoch.epoch), x = end > 0 ? std::min(at, end) : at;
    add(train_loss, x, epoch.train_loss);
    add(test_loss, x, epoch.test_loss);
    add(accuracy, x, 100 * epoch.test_accuracy);
  }
  constexpr std::size_t most_points = 300;
  file::replace(o.plot, tools::to_svg(fmt::format("{} on {}", o.model, data.name),
                                      {{.title = "Loss",
                                        .x_label = "epoch",
                                        .y_label = text ? "nats per character" : "cross-entropy",
                                        .series = {{"training, steps", "#b9cfe6", tools::thinned(steps, most_points), false, 1.5},
                                                   {"training, epochs", "#2166ac", train_loss, true, 2},
                                                   {held_out, "#d6604d", test_loss, true, 2}},
                                        .from_zero = true},
                                       {.title = text ? "Next character" : "Accuracy",
                                        .x_label = "epoch",
                                        .y_label = "correct, %",
                                        .series = {{held_out, "#d6604d", accuracy, true, 2}}}}));
}

/// A trace, if one is wanted here or by CLNET_TRACE, that is completed however training ends.
class Trace {
 public:
  Trace(const Device& device, const std::string& path) : device_(device) {
    if (!path.empty()) device_.start_trace(path);
  }
  /// Throws FileError when it could not be written in full.
  void complete() {
    completed_ = true;
    device_.stop_trace();
  }
  ~Trace() {
    if (completed_) return;
    try {
      device_.stop_trace();
    } catch (const std::exception& error) {
      fmt::print(stderr, "clnet-train: the trace is not complete: {}\n", error.what());
    }
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  Device device_;
  bool completed_ = false;
};

/// Of a program that may be one rank of several: rank 0 alone writes.
class Speaker {
 public:
  explicit Speaker(bool speaks) : speaks_(speaks) {}
  void operator()(const std::string& line) const {
    if (!speaks_) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

 private:
  bool speaks_;
};

/// All of --devices for a program alone; of several ranks each has those of its number on its host. Else --device.
std::vector<Device> devices_of(const TrainOptions& o, const dist::Group& ranks) {
  std::vector<Device> devices;
  const auto local = static_cast<std::size_t>(ranks.local_rank());
  for (std::size_t i = 0; i < o.devices.size(); ++i) {
    if (ranks.size() > 1 && i != local % o.devices.size()) continue;
    for (const auto& selector : o.devices[i]) devices.push_back(Device::find(selector));
  }
  if (devices.empty()) devices.push_back(o.device.empty() ? Device::current() : Device::find(o.device));
  return devices;
}

/// Their names, and the shares of several in one process.
std::string devices_text(const TrainOptions& o, const std::vector<Device>& devices, const dist::Group& ranks) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.info().name);
  if (names.size() == 1) return "device " + names[0];
  if (ranks.size() > 1) return fmt::format("devices {}", fmt::join(names, " and "));
  return fmt::format("devices {}, {} shares", fmt::join(names, " and "),
                     o.measures_shares  ? "measured"
                     : o.shares.empty() ? "equal"
                                        : fmt::format("{}", fmt::join(o.shares, ":")));
}

/// Of several ranks: how many, and which share each has.
std::string ranks_text(const TrainOptions& o, const dist::Group& ranks) {
  return fmt::format("{} ranks, each with its share of every batch{}", ranks.size(),
                     o.shares.empty() ? "" : fmt::format(": {}", fmt::join(o.shares, ":")));
}

/// Fails now where a file could not be written at the end.
void require_writable_files(const TrainOptions& o) {
  require_writable("--save", o.save);
  if (!o.export_file.empty()) require_writable("--export", o.export_file);
  if (!o.plot.empty()) require_writable("--plot", o.plot);
  if (!o.csv.empty()) require_writable("--csv", o.csv);
  if (!o.trace.empty()) require_writable("--trace", o.trace);
  std::error_code ignored;
  if (!o.log.empty() && !fs::is_character_file(o.log, ignored) && !fs::is_fifo(o.log, ignored)) require_writable("--log", o.log);
}

/// A loss in nats, as it is read of texts, too.
std::string loss_text(const TrainData& data, double loss) {
  return data.is_text() ? fmt::format("{:.4f} ({:.3f} bits per character)", loss, loss / std::log(2.0))
                        : fmt::format("{:.4f}", loss);
}

std::string epoch_line(const TrainData& data, const train::EpochMetrics& m, std::int64_t epochs) {
  const auto* held_out = data.held_out();
  std::string metrics;
  for (const auto& result : m.validation->metrics) metrics += fmt::format(", {} {} {:.4f}", held_out, result.name, result.value);
  return fmt::format("epoch {}/{}: train loss {:.4f}, {} loss {}, {} accuracy {:.2f} %{}, {:.0f} {}/s, {:.1f} s", m.epoch, epochs,
                     m.train_loss, held_out, loss_text(data, m.validation->loss), held_out, 100 * m.validation->accuracy, metrics,
                     m.images_per_second * static_cast<double>(data.per_sample()), data.items(), m.seconds);
}

std::string result_line(const TrainData& data, const train::FitResult& result, double seconds) {
  const auto& last = *result.epochs.back().validation;
  return fmt::format("{}{} steps in {:.1f} s; {}", result.stopped_early ? "stopped early: " : "", result.steps, seconds,
                     data.is_text() ? "validation loss " + loss_text(data, last.loss)
                                    : fmt::format("test accuracy {:.2f} %", 100 * last.accuracy));
}

int run(const TrainOptions& o) {
  const auto ranks = dist::init();
  const bool writes = ranks.rank() == 0;
  if (const auto fault = tools::fault_for_ranks(o, ranks.size()); !fault.empty()) {
    fmt::print(stderr, "clnet-train: {} (see --help)\n", fault);
    return wrong_options;
  }
  const Speaker say(writes);
  const auto devices = devices_of(o, ranks);
  const auto& device = devices[0];
  Device::set_default(device);
  if (o.sample) {
    tools::tell_of_compiling(stderr);
    tools::write_sample(o);
    return 0;
  }
  if (writes) require_writable_files(o);
  std::shared_ptr<tools::OnnxClassifier> classifier;
  manual_seed(o.seed);
  if (!o.file.empty()) classifier = std::make_shared<tools::OnnxClassifier>(o);
  const auto sets = tools::load_data(o, ranks, classifier ? classifier->image() : Shape{0, 0, 0});
  if (!sets.class_names.empty() && writes) require_writable("--sheet", o.sheet);
  const auto& alphabet = sets.alphabet;
  if (!alphabet.empty()) tools::prompt_of(o, alphabet);  // tells of a wrong one before training

  std::shared_ptr<nn::Module> model = classifier;
  if (classifier) {
    classifier->expect(sets.sample_shape, sets.classes);
  } else {
    manual_seed(o.seed);
    model = models::make(o.model, sets.sample_shape, sets.classes);
  }
  // What is saved has the names of the file.
  nn::Module& network = classifier ? classifier->network() : *model;
  auto* writer = dynamic_cast<models::LanguageModel*>(model.get());
  if (!o.init.empty()) load_weights(network, o.init, alphabet);
  tools::freeze(o, network, classifier ? classifier->network().head() : std::vector<std::string>{});

  const auto epoch_length = (sets.train->size() + o.batch_size - 1) / o.batch_size;
  std::int64_t total = o.epochs || !o.steps ? o.epochs.value_or(5) * epoch_length : *o.steps;
  if (o.steps) total = std::min(total, *o.steps);
  const auto epochs = (total + epoch_length - 1) / epoch_length;

  std::optional<tools::TrainLog> log;
  if (!o.log.empty() && writes) log.emplace(o.log, sets.items(), sets.per_sample());
  Curves curves;
  const bool epochs_on_stdout = !(os::is_terminal(os::Stream::output) && os::is_terminal(os::Stream::error));

  train::FitOptions fit;
  fit.steps = total;
  fit.batch_size = o.batch_size;
  fit.optimizer = optim::make(o.optimizer, *model, tools::optimizer_options(o));
  fit.schedule = make_schedule(o, total);
  if (o.cycle_momentum) fit.momentum = optim::one_cycle_momentum(total);
  fit.precision = o.precision == "f16" ? Dtype::f16 : o.precision == "bf16" ? Dtype::bf16 : Dtype::f32;
  fit.validation = *sets.test;
  fit.workers = sets.workers;
  fit.shuffle = !o.no_shuffle;
  fit.seed = o.seed;
  fit.early_stopping = o.early_stopping;
  fit.group = ranks;
  if (devices.size() > 1 || ranks.size() > 1) fit.shares = o.shares;
  if (devices.size() > 1) {
    fit.devices = devices;
    fit.share_steps = o.measures_shares ? steps_that_show_shares : 0;
    fit.strict_devices = o.strict_devices;
  }
  fit.sync_batch_norm = o.sync_batch_norm;
  fit.exchanged = o.exchange == "bf16" ? Dtype::bf16 : Dtype::f32;
  fit.shard_optimizer = o.shard_optimizer;
  fit.scatter_data = o.scatter_data;
  for (const auto& name : o.metrics) fit.metrics.push_back(metrics::make(name, sets.classes));
  std::optional<optim::EMA> average;
  if (o.ema) fit.hooks.push_back(train::ema(average.emplace(*model, *o.ema)));
  if (o.accumulate > 1) fit.hooks.push_back(train::accumulation(o.accumulate));
  if (!o.tensorboard.empty() && writes) fit.hooks.push_back(train::tensorboard(o.tensorboard));
  if (!o.csv.empty() && writes) fit.hooks.push_back(train::csv(o.csv));
  fit.checkpoint = o.checkpoint;
  fit.checkpoint_steps = o.checkpoint_steps;
  fit.resume = o.resume;
  fit.progress = os::is_terminal(os::Stream::error);
  if (!fit.progress && writes) tools::tell_of_compiling(stdout);
  std::int64_t steps_before = 0;
  fit.on_start = [&](std::int64_t steps, std::int64_t) {
    steps_before = steps;
    if (o.resume)
      say(steps > 0 ? fmt::format("going on after step {}", steps) : "no checkpoint yet: starting from the beginning");
  };
  fit.on_step = [&](std::int64_t step, double loss) {
    curves.steps.push_back({step, loss});
    if (log) log->step(curves.steps.back());
  };
  fit.on_epoch = [&](const train::EpochMetrics& m) {
    curves.epochs.push_back({m.epoch, m.train_loss, m.validation->loss, m.validation->accuracy, m.seconds});
    if (log) log->epoch(m);
    if (epochs_on_stdout) say(epoch_line(sets, m, epochs));
    if (writer) say(tools::shown_sample(o, *writer, alphabet));
  };
  if (log) {
    fit.on_start = [&, before = fit.on_start](std::int64_t steps, std::int64_t done) {
      log->start(steps, done, curves);
      before(steps, done);
    };
    fit.before_checkpoint = [&] { log->sync(); };
  }

  say(fmt::format("{} with {} parameters on {}, {} training and {} {} {}", o.model, model->parameter_count(), sets.name,
                  sets.train->size() * sets.per_sample(), sets.test->size() * sets.per_sample(), sets.held_out(), sets.items()));
  say(fmt::format("{}, {} rate {} {}, batches of {}, {} steps ({} {}); {}", o.optimizer, o.schedule,
                  o.schedule == "one-cycle" ? "up to" : "of", *tools::optimizer_options(o).learning_rate, o.batch_size, total,
                  epochs, epochs == 1 ? "epoch" : "epochs", devices_text(o, devices, ranks)));
  if (ranks.size() > 1) say(ranks_text(o, ranks));

  if (classifier)
    for (const auto& note : classifier->notes(o)) say(note);

  const auto start = std::chrono::steady_clock::now();
  Trace trace(device, writes ? o.trace : "");
  const auto result = train::fit(*model, *sets.train, fit);
  // Not the first of several any more, if that has failed.
  const auto last_device = network.parameters().front().second.value().device();
  Device::set_default(last_device);
  last_device.finish();
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.interrupted && result.steps == steps_before) {
    say("interrupted before the first step; nothing was written");
    trace.complete();
    return interrupted;
  }

  if (!writes) return result.interrupted ? interrupted : 0;
  if (average) average->apply_to_module();
  io::save_safetensors(o.save, network.state_dict(), tools::metadata_of(o.model, alphabet));
  if (!o.plot.empty()) draw(o, sets, curves, epoch_length);
  if (result.interrupted) {
    say(fmt::format("interrupted after step {}; weights saved to {}", result.steps, o.save));
    if (!o.checkpoint.empty()) say(fmt::format("--resume goes on from {}", o.checkpoint));
    trace.complete();
    return interrupted;
  }
  if (!o.export_file.empty()) {
    if (classifier)
      classifier->write(o, sets);
    else
      tools::export_model(o, *model, sets);
  }
  if (result.epochs.empty()) {
    say("nothing was left to train");
  } else {
    say(result_line(sets, result, seconds));
  }
  if (const auto* pictures = dynamic_cast<const data::Images*>(sets.test.get())) {
    const auto predictions = tools::predict(*model, *pictures, o.batch_size, sets.workers);
    for (const auto& line : tools::class_report(predictions, sets.class_names)) say(line);
    for (const auto& line : tools::write_sheet(o.sheet, predictions, *pictures)) say(line);
  }
  say(fmt::format("weights saved to {}", o.save));
  if (!o.export_file.empty()) say(fmt::format("network written to {}", o.export_file));
  trace.complete();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  TrainOptions options;
  if (const auto code = tools::parse(argc, argv, options)) return *code;
  try {
    const int code = run(options);
    tools::require_written();
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-train: {}\n", error.what());
    return failed;
  }
}
