// The command line of clnet-train.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/optim.h"

namespace clnet::tools {

struct TrainOptions {
  std::string data = "fashion-mnist";
  std::string normalize;          ///< given, after parse()
  bool chosen_normalize = false;  ///< on the command line
  bool no_shuffle = false, augment = false;
  std::optional<std::int64_t> image_size;  ///< given, after parse()
  bool chosen_image_size = false;          ///< on the command line
  std::int64_t workers = 0;                ///< 0: as the data need
  std::optional<std::int64_t> context;     ///< given, after parse()

  std::string model, init;  ///< model: empty where a file of weights says it
  std::string file;         ///< an ONNX file, whose name is the model's; empty: a model of the library. Given, after parse()
  std::vector<std::string> freeze;
  std::int64_t replace_head = 0;  ///< 0: not
  bool freeze_statistics = false;

  std::optional<std::int64_t> epochs, steps;
  std::int64_t batch_size = 0;
  std::string optimizer = "adam";
  std::optional<double> learning_rate, momentum, weight_decay, clip_norm;
  bool nesterov = false, cycle_momentum = false;
  std::string precision = "f32";
  std::string schedule = "one-cycle";
  std::optional<std::int64_t> warmup_steps, decay_steps;
  std::int64_t early_stopping = 0;
  std::vector<std::string> metrics;
  std::optional<double> ema;
  std::int64_t accumulate = 1;
  std::uint64_t seed = 1;

  std::string save, export_file, checkpoint, log, tensorboard, csv, plot, trace;
  std::string sheet;          ///< given, after parse()
  bool chosen_sheet = false;  ///< on the command line
  std::int64_t checkpoint_steps = 0;
  bool resume = false;

  std::optional<std::int64_t> sample;  ///< write so many characters instead of training
  std::optional<std::string> prompt;
  std::optional<double> temperature;  ///< given, after parse()
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;

  std::string device;
  std::vector<std::string> device_texts;
  std::vector<std::vector<std::string>> devices;  ///< of the texts, after parse(): of each rank of a host
  std::vector<std::string> share_texts;
  std::vector<double> shares;    ///< of the texts, after parse()
  bool measures_shares = false;  ///< the same
  bool strict_devices = false;
  bool sync_batch_norm = false;
  std::string exchange = "f32";
  bool shard_optimizer = false, scatter_data = false;
  bool chosen_model = false;  ///< on the command line
};

/// Fills `options`. Returns an exit code when the program ends here: 0 after --help or --version, 2, with a line on stderr, for
/// options that are wrong.
std::optional<int> parse(int argc, char** argv, TrainOptions& options);

/// What is wrong with --devices and --shares for so many ranks; empty when nothing is.
std::string fault_for_ranks(const TrainOptions& options, int ranks);

/// The optimizer's, with the rate that suits it and the schedule where --lr is not given.
optim::NamedOptions optimizer_options(const TrainOptions& options);

}  // namespace clnet::tools
