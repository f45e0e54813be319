// Training a classifier or a language model in one call: epochs, validation, metrics, checkpoints, progress.
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

struct Evaluation {
  double loss = 0;      ///< mean over the labels that count, of which a text's samples have one per character; or over targets
  double accuracy = 0;  ///< share of labels whose outputs are largest at the label, 0..1; NaN where numbers are to be predicted
};
/// In inference mode; the model and each of its parts get the modes back that they had. The loss is cross-entropy, or the mean
/// squared error of targets. Throws Error for an empty dataset and a label of a class that the model does not have, and
/// ShapeError when the model's output is not {n, classes}, {n, length, classes} of a text, {n, classes, ...label_shape} (or
/// classes last) of several labels, {n, ...target_shape} of targets. Where both dimensions could be the classes', they are the
/// last one for a label_shape of one dimension, else the second.
CLNET_API Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);
CLNET_API double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);

struct EpochMetrics {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t steps = 0;  ///< steps made since the start of training
  double train_loss = 0;   ///< mean over the epoch's steps
  std::optional<Evaluation> validation;
  double images_per_second = 0;  ///< samples of training, validation not counted
  double seconds = 0;            ///< of training and validation
};

struct FitOptions {
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< when not 0: train this many steps in all, whatever `epochs` says; the last epoch may be cut short
  std::int64_t batch_size = 32;
  optim::Optimizer optimizer = {};     ///< needed
  optim::Schedule schedule = nullptr;  ///< sets the learning rate before each step; none: the optimizer's own
  optim::Schedule momentum = nullptr;  ///< likewise the momentum (Optimizer::set_momentum), as one_cycle_momentum() says
  std::function<Tensor(const Tensor& output, const Tensor& labels)> loss = nullptr;      ///< when not given: as evaluate()
  std::optional<std::reference_wrapper<const data::Dataset>> validation = std::nullopt;  ///< evaluated after each epoch
  /// f16 or bf16: model and loss are written down within Autocast of it, in training and validation. Parameters stay f32. An
  /// optimizer without a loss scale gets one for f16.
  Dtype precision = Dtype::f32;
  bool shuffle = true;
  std::uint64_t seed = 0;                ///< of the shuffle and the augmentation
  data::Augmentation augmentation = {};  ///< of what is trained on
  std::int64_t early_stopping = 0;       ///< end when the validation loss has not improved for so many epochs; 0: never

  std::filesystem::path checkpoint = {};  ///< a folder for checkpoint.safetensors, written after every epoch and at an interrupt
  std::int64_t checkpoint_steps = 0;      ///< and after every so many steps; 0: not
  bool resume = false;  ///< go on from the checkpoint when there is one, to the epochs or steps that are given now

  /// Called for each step in order, with its loss, a little after it was made; and after each epoch.
  std::function<void(std::int64_t step, double loss)> on_step = nullptr;
  std::function<void(const EpochMetrics&)> on_epoch = nullptr;
  /// Called once before the first step with the steps and epochs already done: 0, or what the checkpoint says.
  std::function<void(std::int64_t steps, std::int64_t epochs)> on_start = nullptr;
  /// Called before a checkpoint is written: what on_step and on_epoch recorded and the checkpoint covers should be safe by then.
  std::function<void()> before_checkpoint = nullptr;
  bool progress = true;  ///< a line on stderr that is redrawn on a terminal, a line per epoch otherwise
  /// Ctrl-C (SIGINT) and SIGTERM, unless ignored, end training after the current step, and before the first one what compiles. A
  /// second one acts as without fit(). So does the first after 0.6 busy seconds, until any fit() of the process has made a step.
  bool interrupt = true;
};

struct FitResult {
  std::vector<EpochMetrics> epochs;  ///< of this call, not of the runs before a resumed checkpoint
  std::int64_t steps = 0;            ///< made since the start of training
  bool interrupted = false;
  bool stopped_early = false;
};

/// Trains `model`, whose output is as evaluate() says, with `options.optimizer` (made for it; Error otherwise). The model is
/// trained in the modes that its parts have, so one that inference() was called for, as a frozen body with batch normalisation,
/// stays in inference mode. If all of the model is in inference mode, what has a parameter that is not frozen is trained in
/// training mode, with the parts without parameters in it, and a line on stderr says so; parts that are all frozen stay as they
/// are, and beside frozen ones parts with statistics and no parameters. Modes are restored afterwards.
///
/// Resuming from a checkpoint gives the numbers of a run that was never stopped. One that is given more epochs or steps than it
/// had goes on, too: by the schedules for all of these, from the step where it is, which a line on stderr says where they differ.
///
/// Throws Error for options that make no sense and when the loss is no longer a finite number; FileError, before anything is
/// trained, for a checkpoint that is damaged, of another model or of another run (batch size, seed, precision, samples,
/// normalisation, augmentation, momenta and scheduled learning rates so far), and when its folder cannot be made or written to.
/// Without a schedule the checkpoint's own learning rate stays.
CLNET_API FitResult fit(nn::Module& model, const data::Dataset& dataset, const FitOptions& options);

}  // namespace clnet::train
