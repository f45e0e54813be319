// Training of a classifier or a language model in one call: epochs, validation, metrics, checkpoints, progress.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/dist.h"
#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/metrics.h"
#include "clnet/nn.h"
#include "clnet/optim.h"

namespace clnet::train {

/// The result of evaluate().
struct Evaluation {
  double loss = 0;      ///< mean over the labels that count (one per character of a text), or over targets
  double accuracy = 0;  ///< share of labels with the largest output, 0..1; NaN for targets, and with a step function
  std::vector<metrics::Result> metrics = {};  ///< in the order of the options
};
/// Loss and accuracy of `model` in inference mode; afterwards all modules have their former modes. The loss is cross-entropy, or
/// the mean squared error of targets. data::Mixed has probabilities of classes instead of targets. Throws Error for an empty
/// dataset and for a label beyond the model's classes.
///
/// Throws ShapeError unless the model's output is {n, classes}; {n, length, classes} for text; {n, classes, ...label_shape} or
/// classes last for several labels; {n, ...target_shape} for targets. Where two dimensions could be the classes, a label_shape of
/// one dimension takes the last, any other the second.
CLNET_API Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);
CLNET_API double accuracy(nn::Module& model, const data::Dataset& dataset, std::int64_t batch_size = 256);

/// The result of a StepFunction for one batch.
struct Step {
  Step(const Tensor& of_batch) : loss(of_batch) {}  // NOLINT(google-explicit-constructor)
  Step(const Tensor& of_batch, std::vector<Tensor> its_outputs, std::vector<Tensor> its_labels, const Tensor& its_count = {})
      : loss(of_batch), outputs(std::move(its_outputs)), labels(std::move(its_labels)), count(its_count) {}

  Tensor loss;                          ///< one element
  std::vector<Tensor> outputs, labels;  ///< for the metrics
  Tensor count;  ///< how many numbers the loss is the mean of (one element), as its weight in evaluate(); undefined: the samples
};
/// The loss of a batch, for models of several inputs or outputs. It builds graph only.
///   [&](nn::Module&, const data::Batch& batch) -> train::Step {
///     const auto [classes, boxes] = model(batch[0]);
///     return {cross_entropy(classes, batch[1]) + mean(square(boxes)), {classes, boxes}, {batch[1]}};
///   }
using StepFunction = std::function<Step(nn::Module& model, const data::Batch& batch)>;

/// Options of evaluate().
struct EvaluateOptions {
  std::int64_t batch_size = 256;
  /// Options of batches() of the same names.
  std::int64_t workers = 1, prefetch = 2;
  data::Collate collate = nullptr;
  std::function<Tensor(const Tensor& output, const Tensor& labels)> loss = nullptr;  ///< the mean over a batch; none: as above
  StepFunction step_function = nullptr;                                              ///< instead of `loss`
  std::vector<metrics::Metric> metrics = {};                                         ///< evaluated with states of their own
  /// All ranks evaluate, each its share of every batch, and have the numbers of the whole dataset.
  std::optional<dist::Group> group = std::nullopt;
  /// Of the group rank 0 alone has the samples, as FitOptions::scatter_data.
  bool scatter_data = false;
};
/// The same with options. Throws Error for `loss` beside `step_function`, and as metrics do.
CLNET_API Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, const EvaluateOptions& options);

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
  double images_per_second = 0;               ///< training samples per second, without validation
  double seconds = 0;                         ///< duration of training and validation
  std::vector<metrics::Result> metrics = {};  ///< of the training samples, in training mode, while the weights changed
};

/// What hooks see of a fit(), and may change.
struct Run {
  nn::Module& model;
  optim::Optimizer optimizer;
  std::int64_t step = 0;                       ///< steps made since the start of training: one for each batch
  std::int64_t epoch = 1;                      ///< the present epoch, from 1
  std::int64_t epoch_step = 0;                 ///< steps made of the present epoch
  std::int64_t epoch_length = 1;               ///< the steps of a whole epoch; 0: a stream, whose end shows when it comes
  Tensor loss = {};                            ///< of the last step, on the device: reading it waits. Undefined before the first
  bool updated = false;                        ///< the last step changed parameters: it did not only accumulate
  bool has_schedule = false;                   ///< FitOptions::schedule sets the rate of each step
  bool has_validation = false;                 ///< there is a validation dataset
  std::vector<std::string> metrics = {};       ///< the names of FitOptions::metrics
  std::span<const EpochMetrics> records = {};  ///< of the epochs of this call before the present one
  EpochMetrics* record = nullptr;              ///< the present epoch's, from before_evaluation() to after_epoch(); else null
  bool whole_epoch = false;                    ///< the record is of a whole epoch

  // For before_step(); set to these values before each step.
  bool accumulate = false;  ///< this step only adds its gradient to the sums (Optimizer::accumulate)
  double loss_factor = 1;   ///< the gradient is that of the loss times this

  bool stop = false;  ///< training ends after the present step or epoch, with `stopped_early`
};

/// Functions that fit() calls on its way. Derive from it, or take those of clnet/hooks.h. before_*() are called in the order of
/// FitOptions::hooks and after_*() in reverse, so that the first hook lies around the others.
class CLNET_API Hook {
 public:
  virtual ~Hook();
  /// For error texts and checkpoints.
  virtual std::string name() const = 0;
  /// Whether it changes nothing of the training, as a log. Checkpoints know nothing of such hooks, so a run may go on with
  /// others.
  virtual bool only_observes() const;

  /// Before the first step of this call, with the state of a resumed checkpoint.
  virtual void before_training(Run& run);
  virtual void after_training(Run& run);
  /// Also where a resumed run goes on within an epoch.
  virtual void before_epoch(Run& run);
  /// `run.record` is complete.
  virtual void after_epoch(Run& run);
  virtual void before_step(Run& run);
  /// Right after the step was enqueued.
  virtual void after_step(Run& run);
  /// The loss of each step, in order and soon after the step.
  virtual void on_loss(Run& run, std::int64_t step, double loss);
  virtual void before_evaluation(Run& run);
  /// Called whenever before_evaluation() was, or should have been after another hook's threw. `run.record->validation` is empty
  /// where the evaluation failed or was interrupted.
  virtual void after_evaluation(Run& run);
  /// Before a checkpoint is written.
  virtual void before_checkpoint(Run& run);

  /// The state, which checkpoints contain: none by default.
  virtual io::StateDict state_dict() const;
  /// Restores a state_dict(). It throws Error for another state, and changes nothing then.
  virtual void load_state_dict(const io::StateDict& state);
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
  StepFunction step_function = nullptr;                                                  ///< instead of `loss`
  std::optional<std::reference_wrapper<const data::Dataset>> validation = std::nullopt;  ///< evaluated after each epoch
  std::vector<metrics::Metric> metrics = {};  ///< of training and validation, with states of their own, computed with the steps
  /// f16 or bf16: model and loss run under Autocast, in training and validation. Parameters stay f32. For f16, an optimizer
  /// without a loss scale gets one.
  Dtype precision = Dtype::f32;
  bool shuffle = true;                   ///< not of a stream
  std::uint64_t seed = 0;                ///< seed of the shuffle, the augmentation and samples
  data::Augmentation augmentation = {};  ///< augmentation of the training samples
  /// Options of batches() of the same names. `length` is of training samples alone.
  std::int64_t workers = 1, prefetch = 2;
  data::Collate collate = nullptr;
  std::function<std::int64_t(std::int64_t index)> length = nullptr;
  std::optional<data::Sampler> sampler = std::nullopt;  ///< of training samples; it takes the place of `shuffle`
  std::int64_t early_stopping = 0;  ///< stop when the validation loss has not improved for this many epochs; 0: never

  std::vector<std::shared_ptr<Hook>> hooks = {};

  /// All ranks of the group train one model, each its share of every batch (docs/guide/clusters.md): the steps are those of the
  /// whole batches, within rounding. Ranks have equal models, data and options. Rank 0 alone shows progress, writes checkpoints
  /// and has the functions below called, and hooks that only observe. The optimizer's gradient function is fit()'s meanwhile.
  std::optional<dist::Group> group = std::nullopt;
  Dtype exchanged = Dtype::f32;  ///< bf16: ranks exchange gradients in half the bytes, rounded
  /// Each rank keeps the states of its part of the parameters, as Optimizer::shard(), also when fit() has returned. The numbers
  /// are those without it, to the bit. Checkpoints hold all states. Without a group, or with one rank, it changes nothing.
  bool shard_optimizer = false;
  /// Rank 0 alone has the samples of the dataset and of `validation`, and sends each rank its share of a batch at a time. The
  /// other ranks' datasets are not looked at, as data::ArrayDataset(). Functions over samples, as `length`, and the workers run
  /// on rank 0; all ranks give equal options, with a sampler of equal size. The numbers are those without it, to the bit. What
  /// rank 0 throws as it reads is thrown on all ranks.
  bool scatter_data = false;

  /// Several devices of this process train the model together, each its share of every batch and at the same time
  /// (parallel::Replicas). The model goes to the first one, which also evaluates. Empty: the device of the model. With a group
  /// these are the devices of this rank, and other ranks may have more or fewer. Where a rank has several, the loss must not
  /// contain collectives, as batch norm over ranks.
  std::vector<Device> devices = {};
  /// Of each batch, in proportion, by device; empty: equal ones. With a group: of all devices of all ranks, in the order of
  /// ranks, the same on each. Where no rank has several devices, each gets at least one sample of a full batch, else Error.
  std::vector<double> shares = {};
  /// Not 0: after so many steps with equal shares each device gets one by its speed in the later half of them, in percent. A line
  /// on stderr says which. The numbers of such a training are not the same each time. A checkpoint keeps the shares. Not with a
  /// group of several ranks.
  std::int64_t share_steps = 0;
  /// A device that fails while the devices train ends the training. Otherwise the step is undone, the device is left out, a line
  /// on stderr says so, and the others make the step; but not where it was the last one, where the first one no longer gives the
  /// optimizer's states, for a stream without a state(), or in a group of several ranks, all of which end.
  bool strict_devices = false;
  /// Batch norm uses the statistics of the whole batch, over all devices, or all ranks of the group; not as each has them. Layers
  /// with a nn::BatchNormOptions::group keep to it. As parallel::ReplicasOptions::sync_batch_norm: no device twice. Not where a
  /// rank of several has several devices.
  bool sync_batch_norm = false;

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
/// With a group, throws Error where ranks would train different things, and RankLost where one is lost.
///
/// Throws Error for options that contradict each other or are out of range, and when the loss is not finite. Before training it
/// throws FileError for a checkpoint that is damaged or of another model or run, and for a folder that it cannot make or write
/// to. A run is its batch size, seed, precision, the dataset's fingerprint, normalisation, augmentation, momenta and scheduled
/// learning rates so far, its metrics and its hooks by name. Without a schedule the checkpoint's learning rate stays.
CLNET_API FitResult fit(nn::Module& model, const data::Dataset& dataset, const FitOptions& options);

// For a loop of your own on several ranks, all of which begin with the same weights:
//   const auto ranks = dist::init();
//   train::add_gradients(adam, ranks);
//   for (const auto& batch : data::batches(images, {.batch_size = 128, .drop_last = true, .share = train::share_of(ranks)}))
//     adam.step(batch.weight() * loss(model(batch.images), batch.labels));

/// An equal share of each batch for each rank.
CLNET_API data::Share share_of(const dist::Group& group);
/// From now on each step takes the sums of the gradients of all ranks, by Optimizer::set_gradient_function().
CLNET_API void add_gradients(optim::Optimizer& optimizer, const dist::Group& group);

}  // namespace clnet::train
