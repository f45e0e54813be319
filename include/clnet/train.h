// Training of a classifier or a language model in one call: epochs, validation, metrics, checkpoints, progress.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "clnet/data.h"
#include "clnet/export.h"
#include "clnet/nn.h"
#include "clnet/optim.h"

namespace clnet::train {

/// The result of evaluate().
struct Evaluation {
  double loss = 0;      ///< mean over the labels that count (one per character of a text), or over targets
  double accuracy = 0;  ///< share of labels with the largest output, 0..1; NaN for targets
};
/// Loss and accuracy of `model` in inference mode; afterwards all modules have their former modes. The loss is cross-entropy, or
/// the mean squared error of targets. Throws Error for an empty dataset and for a label beyond the model's classes.
///
/// Throws ShapeError unless the model's output is {n, classes}; {n, length, classes} for text; {n, classes, ...label_shape} or
/// classes last for several labels; {n, ...target_shape} for targets. Where two dimensions could be the classes, a label_shape of
/// one dimension takes the last, any other the second.
CLNET_API Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);
/// The same with other options of the batches, as workers and `collate`.
CLNET_API Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, const data::BatchOptions& options);
CLNET_API double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);

/// How often each class was taken for which, by a model of classes in inference mode: row i has the samples of class i, and
/// column j those of them with output j the largest. Throws as evaluate(), and Error for samples without one class each.
CLNET_API std::vector<std::vector<std::int64_t>> confusion_matrix(nn::Module& model, const data::Dataset& dataset,
                                                                  const data::BatchOptions& options = {.batch_size = 256});

/// The metrics of one epoch.
struct EpochMetrics {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t steps = 0;  ///< steps since the start of training
  double train_loss = 0;   ///< mean over the epoch's steps
  std::optional<Evaluation> validation;
  double images_per_second = 0;  ///< training samples per second, without validation
  double seconds = 0;            ///< duration of training and validation
};

/// Options of fit().
struct FitOptions {
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< not 0: train this many steps in all and ignore `epochs`; the last epoch may be cut short
  std::int64_t batch_size = 32;
  optim::Optimizer optimizer = {};     ///< required
  optim::Schedule schedule = nullptr;  ///< learning rate of each step; none: the optimizer's own
  optim::Schedule momentum = nullptr;  ///< momentum of each step (Optimizer::set_momentum), as one_cycle_momentum()
  std::function<Tensor(const Tensor& output, const Tensor& labels)> loss = nullptr;      ///< none: the loss of evaluate()
  std::optional<std::reference_wrapper<const data::Dataset>> validation = std::nullopt;  ///< evaluated after each epoch
  /// f16 or bf16: model and loss run under Autocast, in training and validation. Parameters stay f32. For f16, an optimizer
  /// without a loss scale gets one.
  Dtype precision = Dtype::f32;
  /// Computes the model's output for a batch of several inputs; none: the model of the batch's first tensor. The second is for
  /// the loss.
  std::function<Tensor(const data::Batch& batch)> forward = nullptr;
  bool shuffle = true;                   ///< not of a stream
  std::uint64_t seed = 0;                ///< seed of the shuffle, the augmentation and samples
  data::Augmentation augmentation = {};  ///< augmentation of the training samples
  /// Options of batches() of the same names. `length` is of training samples alone.
  std::int64_t workers = 1, prefetch = 2;
  data::Collate collate = nullptr;
  std::function<std::int64_t(std::int64_t index)> length = nullptr;
  std::int64_t early_stopping = 0;  ///< stop when the validation loss has not improved for this many epochs; 0: never

  std::filesystem::path checkpoint = {};  ///< folder of checkpoint.safetensors, written after every epoch and at an interrupt
  std::int64_t checkpoint_steps = 0;      ///< steps between further checkpoints; 0: none
  bool resume = false;                    ///< continue from an existing checkpoint, up to the given epochs or steps

  /// Called for each step in order, with its loss, soon after the step; and after each epoch.
  std::function<void(std::int64_t step, double loss)> on_step = nullptr;
  std::function<void(const EpochMetrics&)> on_epoch = nullptr;
  /// Called once before the first step with the finished steps and epochs: 0, or the checkpoint's.
  std::function<void(std::int64_t steps, std::int64_t epochs)> on_start = nullptr;
  /// Called before a checkpoint is written. Make records of on_step and on_epoch durable here: the checkpoint covers them.
  std::function<void()> before_checkpoint = nullptr;
  bool progress = true;  ///< a progress line on stderr, redrawn on a terminal; else a line per epoch
  /// SIGINT (Ctrl-C) and SIGTERM, unless ignored, end training after the current step; before the first step they end compiling.
  /// A second signal acts as without fit(). So does the first after 0.6 busy seconds, until any fit() of the process has made a
  /// step.
  bool interrupt = true;
};

/// The result of fit().
struct FitResult {
  std::vector<EpochMetrics> epochs;  ///< epochs of this call, without those before a resumed checkpoint
  std::int64_t steps = 0;            ///< steps since the start of training
  bool interrupted = false;
  bool stopped_early = false;
};

/// Trains `model` with `options.optimizer`, which must be made for it (Error otherwise). The model's output has a shape of
/// evaluate().
///
/// Modules are trained in their own modes. So a part in inference mode, as a frozen body with batch normalisation, stays in
/// inference mode. If the whole model is in inference mode, a line on stderr reports it. fit() then sets training mode for parts
/// with a parameter that is not frozen, and for parts without parameters in them. Frozen parts stay in inference mode, and so do
/// parts beside them with statistics and no parameters. Modes are restored afterwards.
///
/// A resumed training gives the same numbers as one without a stop. It may get more epochs or steps than before. The schedules
/// then count all of them, from the present step, and a line on stderr reports a difference.
///
/// A stream that has a state() goes on where it was. Otherwise a resumed training begins a new epoch, and a line on stderr
/// reports it. An epoch of a stream has any number of steps, so schedules need a number of steps from the caller.
///
/// Throws Error for options that contradict each other or are out of range, and when the loss is not finite. Before training it
/// throws FileError for a checkpoint that is damaged or of another model or run, and for a folder that it cannot make or write
/// to. A run is its batch size, seed, precision, the dataset's fingerprint, normalisation, augmentation, momenta and scheduled
/// learning rates so far. Without a schedule the checkpoint's learning rate stays.
CLNET_API FitResult fit(nn::Module& model, const data::Dataset& dataset, const FitOptions& options);

}  // namespace clnet::train
