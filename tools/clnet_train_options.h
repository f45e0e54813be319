// The command line of clnet-train.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clnet::tools {

struct TrainOptions {
  std::string data = "fashion-mnist", normalize = "none";
  bool no_shuffle = false;

  std::string model = "cnn", init;

  std::optional<std::int64_t> epochs, steps;
  std::int64_t batch_size = 128;
  std::string optimizer = "adam";
  std::optional<double> learning_rate, momentum, weight_decay, clip_norm;
  bool nesterov = false;
  std::string precision = "f32";
  std::string schedule = "one-cycle";
  std::optional<std::int64_t> warmup_steps, decay_steps;
  std::int64_t early_stopping = 0;
  std::uint64_t seed = 1;

  std::string save, checkpoint, log, plot, trace;
  std::int64_t checkpoint_steps = 0;
  bool resume = false;

  std::string device;
};

/// Fills `options`. Returns an exit code when the program ends here: 0 after --help or --version, 2, with a line on stderr, for
/// options that are wrong.
std::optional<int> parse(int argc, char** argv, TrainOptions& options);

/// --lr, or what suits the optimizer and the schedule.
double learning_rate(const TrainOptions& options);

}  // namespace clnet::tools
