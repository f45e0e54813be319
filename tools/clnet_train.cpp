// clnet-train: trains one of the library's networks to classify images.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "tools/clnet_train_log.h"
#include "tools/clnet_train_options.h"
#include "tools/plot.h"

namespace {

namespace fs = std::filesystem;
using namespace clnet;
using tools::Curves;
using tools::TrainOptions;

constexpr int failed = 1, interrupted = 130;

data::Dataset load(const std::string& name, data::Split split) {
  if (name == "fashion-mnist") return data::fashion_mnist(split);
  if (name == "mnist") return data::mnist(split);
  if (name == "cifar10") return data::cifar10(split);
  std::error_code code;
  if (!fs::exists(name, code))
    throw FileError(fmt::format("--data {}: no such folder, and not one of fashion-mnist, mnist, cifar10", name));
  return data::load_folder(name, split);
}

struct DataPair {
  data::Dataset train, test;
};

DataPair load_both(const TrainOptions& o) {
  DataPair sets{load(o.data, data::Split::train), load(o.data, data::Split::test)};
  for (const auto* set : {&sets.train, &sets.test})
    if (set->size() == 0)
      throw FileError(fmt::format("--data {}: the {} set holds no images", o.data, set == &sets.train ? "training" : "test"));
  if (sets.train.sample_shape != sets.test.sample_shape || sets.train.classes != sets.test.classes)
    throw FileError(fmt::format("--data {}: training images are {}, test images {}", o.data, to_string(sets.train.sample_shape),
                                to_string(sets.test.sample_shape)));
  if (o.normalize == "mean-std") {
    data::compute_normalization(sets.train, sets.train.mean, sets.train.std);
    sets.test.mean = sets.train.mean;
    sets.test.std = sets.train.std;
  }
  return sets;
}

optim::Optimizer make_optimizer(const TrainOptions& o, const nn::Module& model) {
  const double rate = tools::learning_rate(o), momentum = o.momentum.value_or(0), clip = o.clip_norm.value_or(0);
  if (o.optimizer == "sgd")
    return optim::SGD(model, {.learning_rate = rate,
                              .momentum = momentum,
                              .nesterov = o.nesterov,
                              .weight_decay = o.weight_decay.value_or(0),
                              .clip_norm = clip});
  if (o.optimizer == "rmsprop")
    return optim::RMSprop(
        model, {.learning_rate = rate, .momentum = momentum, .weight_decay = o.weight_decay.value_or(0), .clip_norm = clip});
  optim::AdamOptions adam{.learning_rate = rate, .weight_decay = o.weight_decay.value_or(0), .clip_norm = clip};
  if (o.optimizer == "adam") return optim::Adam(model, adam);
  adam.weight_decay = o.weight_decay.value_or(0.01);
  return optim::AdamW(model, adam);
}

optim::Schedule make_schedule(const TrainOptions& o, std::int64_t total) {
  const double rate = tools::learning_rate(o);
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
    const auto probe = folder / fmt::format(".clnet-probe-{}", ::getpid());
    file::replace(probe, std::string_view{});
    fs::remove(probe, code);
  } catch (const FileError& error) {
    throw FileError(fmt::format("{} {}", option, error.what()));
  }
}

void load_weights(nn::Module& model, const std::string& path) {
  const auto weights = io::load_safetensors(path);
  try {
    model.load_state(weights.tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

void draw(const TrainOptions& o, const std::string& title, const Curves& curves, std::int64_t epoch_length) {
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
  file::replace(o.plot,
                tools::to_svg(title, {{.title = "Loss",
                                       .x_label = "epoch",
                                       .y_label = "cross-entropy",
                                       .series = {{"training, steps", "#b9cfe6", tools::thinned(steps, most_points), false, 1.5},
                                                  {"training, epochs", "#2166ac", train_loss, true, 2},
                                                  {"test", "#d6604d", test_loss, true, 2}},
                                       .from_zero = true},
                                      {.title = "Accuracy",
                                       .x_label = "epoch",
                                       .y_label = "correct, %",
                                       .series = {{"test", "#d6604d", accuracy, true, 2}}}}));
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

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string epoch_line(const train::EpochMetrics& m, std::int64_t epochs) {
  return fmt::format("epoch {}/{}: train loss {:.4f}, test loss {:.4f}, test accuracy {:.2f} %, {:.0f} images/s, {:.1f} s",
                     m.epoch, epochs, m.train_loss, m.validation->loss, 100 * m.validation->accuracy, m.images_per_second,
                     m.seconds);
}

int run(const TrainOptions& o) {
  const auto device = o.device.empty() ? Device::current() : Device::find(o.device);
  Device::set_default(device);
  require_writable("--save", o.save);
  if (!o.plot.empty()) require_writable("--plot", o.plot);
  if (!o.trace.empty()) require_writable("--trace", o.trace);
  std::error_code ignored;
  if (!o.log.empty() && !fs::is_character_file(o.log, ignored) && !fs::is_fifo(o.log, ignored)) require_writable("--log", o.log);
  const auto sets = load_both(o);

  manual_seed(o.seed);
  const auto model = models::make(o.model, sets.train.sample_shape, sets.train.classes);
  if (!o.init.empty()) load_weights(*model, o.init);

  const auto epoch_length = (sets.train.size() + o.batch_size - 1) / o.batch_size;
  std::int64_t total = o.epochs || !o.steps ? o.epochs.value_or(5) * epoch_length : *o.steps;
  if (o.steps) total = std::min(total, *o.steps);
  const auto epochs = (total + epoch_length - 1) / epoch_length;

  std::optional<tools::TrainLog> log;
  if (!o.log.empty()) log.emplace(o.log);
  Curves curves;
  const bool epochs_on_stdout = !(::isatty(STDOUT_FILENO) && ::isatty(STDERR_FILENO));

  train::FitOptions fit;
  fit.steps = total;
  fit.batch_size = o.batch_size;
  fit.optimizer = make_optimizer(o, *model);
  fit.schedule = make_schedule(o, total);
  fit.precision = o.precision == "f16" ? Dtype::f16 : o.precision == "bf16" ? Dtype::bf16 : Dtype::f32;
  fit.validation = sets.test;
  fit.shuffle = !o.no_shuffle;
  fit.seed = o.seed;
  fit.early_stopping = o.early_stopping;
  fit.checkpoint = o.checkpoint;
  fit.checkpoint_steps = o.checkpoint_steps;
  fit.resume = o.resume;
  fit.progress = ::isatty(STDERR_FILENO);
  fit.on_start = [&](std::int64_t steps, std::int64_t) {
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
    if (epochs_on_stdout) say(epoch_line(m, epochs));
  };
  if (log) {
    fit.on_start = [&, before = fit.on_start](std::int64_t steps, std::int64_t done) {
      log->start(steps, done, curves);
      before(steps, done);
    };
    fit.before_checkpoint = [&] { log->sync(); };
  }

  say(fmt::format("{} with {} parameters on {}, {} training and {} test images", o.model, model->parameter_count(),
                  sets.train.name, sets.train.size(), sets.test.size()));
  say(fmt::format("{}, {} rate {} {}, batches of {}, {} steps ({} {}); device {}", o.optimizer, o.schedule,
                  o.schedule == "one-cycle" ? "up to" : "of", tools::learning_rate(o), o.batch_size, total, epochs,
                  epochs == 1 ? "epoch" : "epochs", device.info().name));

  const auto start = std::chrono::steady_clock::now();
  Trace trace(device, o.trace);
  const auto result = train::fit(*model, sets.train, fit);
  device.finish();
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  io::save_safetensors(o.save, model->state(), {{"format", "pt"}, {"model", o.model}});
  if (!o.plot.empty()) draw(o, fmt::format("{} on {}", o.model, sets.train.name), curves, epoch_length);
  if (result.interrupted) {
    say(fmt::format("interrupted after step {}; weights saved to {}", result.steps, o.save));
    if (!o.checkpoint.empty()) say(fmt::format("--resume goes on from {}", o.checkpoint));
    trace.complete();
    return interrupted;
  }
  if (result.epochs.empty()) {
    say("nothing was left to train");
  } else {
    say(fmt::format("{}{} steps in {:.1f} s; test accuracy {:.2f} %", result.stopped_early ? "stopped early: " : "", result.steps,
                    seconds, 100 * result.epochs.back().validation->accuracy));
  }
  say(fmt::format("weights saved to {}", o.save));
  trace.complete();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  TrainOptions options;
  if (const auto code = tools::parse(argc, argv, options)) return *code;
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-train: {}\n", error.what());
    return failed;
  }
}
