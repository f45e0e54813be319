// Hooks of fit(): averages of weights, accumulated gradients, early stopping, rates that fall on a plateau, unfreezing; and logs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/optim.h"
#include "clnet/train.h"

namespace clnet::train {

/// Updates the average after each step that changes parameters, and evaluates with the averages. The model keeps its own weights;
/// `average` has the averages afterwards. fit() throws Error for averages of another model.
///   optim::EMA average(model, 0.999);
///   train::fit(model, dataset, {.optimizer = adam, .validation = test, .hooks = {train::ema(average)}});
CLNET_API std::shared_ptr<Hook> ema(const optim::EMA& average);

/// Adds up the gradients of `batches` batches for one step, each as a part of their mean. The last step of an epoch has the
/// batches that are left. Where FitOptions::steps or a stream ends in between, the sums stay in the
/// optimizer. Throws Error for a number
/// below 1.
CLNET_API std::shared_ptr<Hook> accumulation(std::int64_t batches);

/// A number of each epoch's record: "loss", "accuracy" or a metric's name mean the validation's, "train_loss" and "train_" before
/// a metric's name those of training. fit() throws Error where there is none, and without a validation dataset for the former.
struct Monitor {
  std::string name = "loss";
  bool maximize = false;  ///< a larger number is better
};

struct EarlyStoppingOptions {
  Monitor monitor = {};
  std::int64_t patience = 10;  ///< epochs without improvement before training stops
  double min_delta = 0;        ///< the least improvement that counts
  bool restore_best = true;    ///< training ends with the weights and buffers of the best epoch, also when interrupted
};
/// Stops when the number has not improved for some epochs. The best state is the one that was evaluated: put it behind ema() for
/// the averages. Throws Error for options out of range.
CLNET_API std::shared_ptr<Hook> early_stopping(const EarlyStoppingOptions& options = {});

/// Reduces the optimizer's rate when the number does not improve (optim::Plateau, of epochs). `options.maximize` is the
/// monitor's. fit() throws Error beside a schedule of the rate. Throws Error for options out of range.
CLNET_API std::shared_ptr<Hook> reduce_on_plateau(const Monitor& monitor, const optim::PlateauOptions& options = {});

/// Parts of the model that are trained from the beginning of an epoch on, counted from 1.
struct Unfreezing {
  std::int64_t epoch = 1;
  std::string name;  ///< of a child, as "layer4", or of a parameter, as "fc.weight"
};
/// Freezes these parts before training, unfreezes each at the beginning of its epoch, and puts unfrozen children into training
/// mode. Make the optimizer for all of them. fit() throws Error for a name that the model does not have.
CLNET_API std::shared_ptr<Hook> unfreezing(std::vector<Unfreezing> parts);

/// Writes an event file for TensorBoard into the folder: "loss/step" of each step, and of each epoch "loss/train",
/// "loss/validation", "accuracy/validation", "learning_rate", and "<metric>/train" and "<metric>/validation". A resumed run adds
/// a file; TensorBoard then drops steps that it makes again. Throws FileError where files cannot be written.
CLNET_API std::shared_ptr<Hook> tensorboard(const std::filesystem::path& folder);
/// Writes a table with a row for each epoch: its record and the learning rate. Cells without a number are empty. A resumed run
/// keeps the rows of the epochs that its checkpoint covers; any other run begins the file anew. Throws FileError where the file
/// cannot be written, or has other columns.
CLNET_API std::shared_ptr<Hook> csv(const std::filesystem::path& path);

}  // namespace clnet::train
