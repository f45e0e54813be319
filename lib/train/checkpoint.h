// What a stopped training needs to go on as if it had not been stopped: one safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clnet/checkpoint.h"
#include "clnet/data.h"
#include "clnet/io.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "lib/io/checksum.h"

namespace clnet::train {

/// How far training has come.
struct Position {
  std::int64_t steps = 0;                                  ///< since the start of training
  std::int64_t epochs = 0;                                 ///< complete with their validation
  std::int64_t epoch_steps = 0;                            ///< of the epoch that is under way
  double epoch_loss = 0;                                   ///< the sum of their losses
  std::optional<double> best_loss;                         ///< of all validations so far
  std::int64_t stale_epochs = 0;                           ///< since the best one
  std::optional<std::string> stream_state = std::nullopt;  ///< of a stream that has states: behind the last step's batch
  std::vector<double> shares = {};                         ///< of several devices, where they were measured
};

/// What must be the same for the numbers to be the same. Only schedules may differ, where more steps are planned than before.
struct RunSettings {
  std::int64_t batch_size = 0;
  std::int64_t samples = 0;  ///< 0: a stream
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::string precision = "f32";
  std::string dataset = {};        ///< its fingerprint
  std::string normalization = {};  ///< means and deviations
  std::string augmentation = {};
  bool by_length = false;                                       ///< batches hold samples of similar lengths
  std::string hooks = {}, metrics = {};                         ///< their names
  std::int64_t planned_steps = 0;                               ///< in all; more than before is another plan for the same run
  std::function<double(std::int64_t step)> rate = nullptr;      ///< the learning rate's schedule, or none
  std::function<double(std::int64_t step)> momentum = nullptr;  ///< the momentum's, or none
};
/// Of a dataset in memory; others have none.
std::string normalization_text(const data::Dataset& dataset);
/// A function of the caller's own counts as any other.
std::string augmentation_text(const data::Augmentation& augmentation);

/// The last batch may be smaller.
inline std::int64_t batches_per_epoch(std::int64_t samples, std::int64_t batch_size) {
  return samples / batch_size + (samples % batch_size != 0 ? 1 : 0);
}

using io::checkpoint_checksum;

class Checkpoint {
 public:
  /// Makes the folder where it is missing. Throws FileError when files cannot be written there. Who does not write, as all ranks
  /// but one, only reads. `parts` are the states of hooks and metrics.
  Checkpoint(const std::filesystem::path& folder, const RunSettings& settings, std::vector<io::LoadedPart> parts = {},
             bool writes = true);

  bool exists() const;
  /// Replaces the file by the present state of model, optimizer, parts and random generator.
  void save(const Position& position, const nn::Module& model, const optim::Optimizer& optimizer) const;
  /// Sets model, optimizer, parts and random generator. Throws FileError, and changes nothing, when the file is damaged or not of
  /// this training.
  Position load(nn::Module& model, optim::Optimizer& optimizer) const;

 private:
  std::filesystem::path path_;
  RunSettings settings_;
  std::vector<io::LoadedPart> parts_;
};

}  // namespace clnet::train
