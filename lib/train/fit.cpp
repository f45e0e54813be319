#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "clnet/train.h"
#include "lib/base/log.h"
#include "lib/cl/compile_watch.h"
#include "lib/nn/modes.h"
#include "lib/nn/shared_statistics.h"
#include "lib/train/checkpoint.h"
#include "lib/train/evaluate.h"
#include "lib/train/hooks.h"
#include "lib/train/interrupt.h"
#include "lib/train/job.h"
#include "lib/train/progress.h"
#include "lib/train/scatter.h"
#include "lib/train/several_devices.h"

namespace clnet::train {

namespace {

/// So that steps can be counted: a dataset's labels alone would not fit in memory otherwise.
constexpr std::int64_t most_epochs = 1'000'000'000;

/// How many steps several ranks make before they read the losses, and whether one was interrupted.
constexpr std::size_t ranks_read_after = 8;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void require(bool good, std::string_view what) {
  if (!good) throw Error(fmt::format("train::fit: {}", what));
}

/// How many steps' losses are left on the device before they are read: reading one by one would make the device wait for the host
/// after each step, and the number bounds how far the host runs ahead. Few on slow devices, so that progress shows and an
/// interrupt is soon over. The losses themselves are the same either way.
class ReadingPace {
 public:
  std::size_t group() const { return group_; }
  void was_read() {
    const double took = seconds_since(last_);
    if (took < 0.05) group_ = std::min<std::size_t>(2 * group_, 32);
    if (took > 0.2) group_ = std::max<std::size_t>(group_ / 2, 1);
    last_ = Clock::now();
  }

 private:
  std::size_t group_ = 1;
  Clock::time_point last_ = Clock::now();
};

class Fit {
 public:
  Fit(nn::Module& model, const data::Dataset& dataset, const FitOptions& options)
      : model_(model),
        dataset_(dataset),
        options_(checked(model, dataset, options)),
        optimizer_(options.optimizer),
        loss_(options.loss ? options.loss : default_loss(dataset)),
        run_{.model = model, .optimizer = options.optimizer},
        hooks_(options.hooks, run_),
        job_(options.group) {
    if (!job_.writes()) hooks_.drop_observers();
    if (options.precision == Dtype::f16 && !optimizer_.loss_scale().defined()) optimizer_.set_loss_scale();
    is_stream_ = dataset.size() == data::Dataset::unknown;
    epoch_length_ = is_stream_ ? 0 : batches_per_epoch(epoch_samples(), options.batch_size);
    run_.epoch_length = epoch_length_;
    run_.has_schedule = static_cast<bool>(options.schedule);
    run_.has_validation = options.validation.has_value();
    require_names(options.metrics);
    for (const auto& metric : options.metrics) {
      metrics_.push_back(metric.fresh());
      run_.metrics.push_back(metric.name());
    }
    if (!options.checkpoint.empty())
      checkpoint_.emplace(
          options.checkpoint,
          RunSettings{.batch_size = options.batch_size,
                      .samples = is_stream_ ? 0 : epoch_samples(),
                      .shuffle = shuffle(),
                      .seed = options.seed,
                      .precision = std::string(to_string(options.precision)),
                      .dataset = dataset.fingerprint() + (options.sampler ? ", sampled " + options.sampler->fingerprint : ""),
                      .normalization = normalization_text(dataset),
                      .augmentation = augmentation_text(options.augmentation),
                      .by_length = static_cast<bool>(options.length),
                      .hooks = hooks_.names(),
                      .metrics = fmt::format("{}", fmt::join(run_.metrics, ", ")),
                      .planned_steps = planned_steps(),
                      .rate = options.schedule,
                      .momentum = options.momentum},
          parts(), job_.writes());
  }

  FitResult run() {
    if (!options_.devices.empty())
      here_.emplace(options_.devices[0]);
    else if (const auto own = optimizer_.parameters()[0].second.value().device(); !(own == Device::current()))
      here_.emplace(own);
    const nn::KeptModes kept(model_);
    if (nn::Modes::all_in_inference(model_)) train_unfrozen();
    Interrupt interrupt(options_.interrupt);
    interrupt_ = &interrupt;
    if (checkpoint_ && options_.resume) {
      const bool is_there = checkpoint_->exists();
      job_.require_same("checkpoint", is_there ? "there" : "missing");
      if (is_there) resume();
    }
    require_equal_ranks();
    share_out();
    place();
    // When the states are a checkpoint's: they are whole on each rank.
    if (options_.shard_optimizer && job_.several()) optimizer_.shard(*options_.group);
    const SharedGradients shared(*this);
    show_position();
    hooks_.before(&Hook::before_training);
    if (options_.on_start && job_.writes()) options_.on_start(at_.steps, at_.epochs);
    const auto* arrays = dynamic_cast<const data::ArrayDataset*>(held(dataset_));
    const bool is_text = arrays && arrays->is_text();
    Progress progress(options_.progress && job_.writes(), planned_epochs(), planned_steps(),
                      is_text ? Unit{"characters", arrays->sample_shape[0]} : Unit{arrays ? "images" : "samples", 1});
    progress_ = &progress;
    // Who cancels compiling before the first step, or while validating, leaves nothing half done. Several ranks end together,
    // after a step.
    const ocl::CompileWatch watch([&](std::size_t compiled, std::size_t total) {
      progress.compiling(compiled, total);
      return !(cancelled_ = !job_.several() && interrupt.requested() && (!begun_ || validating_));
    });
    try {
      train();
    } catch (const Error&) {
      if (!cancelled_) throw;
      result_.interrupted = true;
    }
    result_.steps = at_.steps;
    hooks_.after(&Hook::after_training);
    return std::move(result_);
  }

 private:
  /// Lets the optimizer step with the gradients of all ranks while it lives.
  class SharedGradients {
   public:
    explicit SharedGradients(Fit& fit) : fit_(fit) {
      if (!fit.job_.several()) return;
      fit.optimizer_.set_gradient_function([&fit](std::vector<Tensor>& gradients, std::vector<Tensor>& more) {
        if (fit.devices_)
          fit.job_.sum_up_now(gradients, fit.options_.exchanged);
        else
          fit.share_gradients(gradients, more);
      });
    }
    ~SharedGradients() {
      if (fit_.job_.several()) fit_.optimizer_.set_gradient_function(nullptr);
    }
    SharedGradients(const SharedGradients&) = delete;
    SharedGradients& operator=(const SharedGradients&) = delete;

   private:
    Fit& fit_;
  };

  /// Among all ranks' devices. What it throws, it throws on all ranks.
  void share_out() {
    if (!job_.several()) return;
    job_.share_out(std::max<std::size_t>(options_.devices.size(), 1), options_.shares);
    require(!options_.sync_batch_norm || !job_.by_devices(),
            "sync_batch_norm with several devices in one rank of several; give each rank one device");
    for (std::size_t rank = 0; !job_.by_devices() && rank < job_.shares().size(); ++rank)
      require(data::rows_of({job_.shares(), rank}, options_.batch_size).count > 0,
              fmt::format("a batch of {} samples has nothing for rank {}", options_.batch_size, rank));
  }

  /// On the devices of the options, after a checkpoint was read.
  void place() {
    auto devices = options_.devices;
    if (devices.size() > 1 || job_.by_devices()) {
      if (devices.empty()) devices.push_back(optimizer_.parameters()[0].second.value().device());
      // Those of a checkpoint, if they were measured for as many devices.
      const bool measured = options_.share_steps > 0 && at_.shares.size() == devices.size();
      devices_.emplace(model_, optimizer_, metrics_,
                       SeveralDevices::Options{.devices = devices,
                                               .shares = measured ? at_.shares : options_.shares,
                                               .measured_steps = options_.share_steps,
                                               .measured = measured,
                                               .undo = !options_.strict_devices,
                                               .job = job_,
                                               .sync_batch_norm = options_.sync_batch_norm});
    } else if (!devices.empty()) {
      model_.to(devices[0]);
      optimizer_.to(devices[0]);
    }
  }

  void require_equal_ranks() const {
    job_.require_equal({{"batch size", std::to_string(options_.batch_size)},
                        {"seed", std::to_string(options_.seed)},
                        {"precision", std::string(to_string(options_.precision))},
                        {"epochs", std::to_string(options_.epochs)},
                        {"steps", std::to_string(options_.steps)},
                        {"data", dataset_.fingerprint()},
                        {"samples of an epoch", std::to_string(epoch_samples())},
                        {"samples sorted by length", options_.length ? "yes" : "no"},
                        {"augmentation", augmentation_text(options_.augmentation)},
                        {"hooks", hooks_.names()},
                        {"shares", options_.shares.empty() ? "equal" : fmt::format("{}", fmt::join(options_.shares, ","))},
                        {"sharded optimizer", options_.shard_optimizer || optimizer_.shards() > 1 ? "yes" : "no"},
                        {"batch norm of whole batches", options_.sync_batch_norm ? "yes" : "no"},
                        {"steps already made", std::to_string(at_.steps)}},
                       model_);
  }

  void train() {
    while (!done()) {
      if (!epoch()) {
        result_.interrupted = true;
        if (begun_) save();
        break;
      }
      if (at_.epoch_steps > 0) break;  // cut short by the number of steps or a hook
    }
  }

  /// What a checkpoint has beside model and optimizer.
  std::vector<io::LoadedPart> parts() {
    auto parts = hooks_.parts();
    for (std::size_t i = 0; i < metrics_.size(); ++i) parts.emplace_back(fmt::format("metric{}", i), metrics_[i]);
    return parts;
  }

  /// To the hooks.
  void show_position() {
    run_.step = at_.steps;
    run_.epoch = at_.epochs + 1;
    run_.epoch_step = at_.epoch_steps;
    run_.records = result_.epochs;
  }

  static bool has_momentum(const optim::Optimizer& optimizer) {
    for (std::size_t group = 0; group < optimizer.groups(); ++group)
      if (optimizer.momentum(group)) return true;
    return false;
  }

  static FitOptions checked(const nn::Module& model, const data::Dataset& dataset, const FitOptions& o) {
    require(static_cast<bool>(o.optimizer), "the options hold no optimizer");
    require(o.optimizer.made_for(model), "the optimizer was made for another model");
    require(!o.momentum || has_momentum(o.optimizer), "a schedule of the momentum, and the optimizer has none that could be set");
    require(dataset.size() != 0, "the dataset is empty");
    require(!o.sampler || o.sampler->size > 0, "the sampler gives no samples");
    require(o.epochs >= 1 && o.epochs <= most_epochs, fmt::format("epochs must be from 1 to {}, not {}", most_epochs, o.epochs));
    require(o.steps >= 0, fmt::format("steps cannot be {}", o.steps));
    require(o.batch_size >= 1, fmt::format("batch_size must be at least 1, not {}", o.batch_size));
    require(is_floating(o.precision) && o.precision != Dtype::f64,
            fmt::format("precision must be f32, f16 or bf16, not {}", to_string(o.precision)));
    require(!o.loss || !o.step_function, "a loss beside a step function, which has its own");
    require(std::none_of(o.hooks.begin(), o.hooks.end(), [](const auto& hook) { return !hook; }), "a hook is null");
    for (auto hook = o.hooks.begin(); hook != o.hooks.end(); ++hook)
      require(std::find(o.hooks.begin(), hook, *hook) == hook, fmt::format("the hook {} is in the list twice", (*hook)->name()));
    require(o.early_stopping >= 0, fmt::format("early_stopping cannot be {}", o.early_stopping));
    require(o.early_stopping == 0 || o.validation, "early_stopping needs a validation dataset");
    require(!o.validation || o.validation->get().size() != 0, "the validation dataset is empty");
    require(o.exchanged == Dtype::f32 || o.exchanged == Dtype::bf16,
            fmt::format("gradients are exchanged as f32 or bf16, not {}", to_string(o.exchanged)));
    require(o.optimizer.shards() == 1 || (o.group && o.group->size() == o.optimizer.shards()),
            fmt::format("the optimizer's states are sharded over {} ranks, and the group is not theirs", o.optimizer.shards()));
    const bool alone = !o.group || o.group->size() == 1;
    require(!alone || o.shares.empty() || o.shares.size() == o.devices.size(),
            fmt::format("{} shares for {} devices", o.shares.size(), o.devices.size()));
    require(o.share_steps >= 0, fmt::format("share_steps cannot be {}", o.share_steps));
    require(alone || o.share_steps == 0, "share_steps with several ranks; give them shares");
    require(o.share_steps == 0 || o.shares.empty(), "shares that are given are not measured");
    require(o.share_steps == 0 || o.devices.size() > 1, "share_steps needs several devices");
    require(o.checkpoint_steps >= 0, fmt::format("checkpoint_steps cannot be {}", o.checkpoint_steps));
    require(!o.checkpoint.empty() || (o.checkpoint_steps == 0 && !o.resume),
            "checkpoint_steps and resume need a checkpoint folder");
    return o;
  }

  std::int64_t epoch_samples() const { return options_.sampler ? options_.sampler->size : dataset_.size(); }
  bool shuffle() const { return options_.shuffle && !is_stream_ && !options_.sampler; }

  /// Since the start of training; 0: not known, as an epoch of a stream has any number of steps.
  std::int64_t planned_steps() const { return options_.steps > 0 ? options_.steps : options_.epochs * epoch_length_; }
  std::int64_t planned_epochs() const {
    if (options_.steps == 0) return options_.epochs;
    return is_stream_ ? 0 : batches_per_epoch(options_.steps, epoch_length_);
  }

  void resume() {
    at_ = checkpoint_->load(model_, optimizer_);
    // Rank 0 has the sums of all.
    if (!job_.writes())
      for (auto& metric : metrics_) metric.reset();
    job_.begin_sums(optimizer_);
    if (!is_stream_ || at_.epoch_steps == 0 || at_.stream_state) return;
    logging::print(
        logging::Level::warning,
        "train::fit: the stream has no state() to go on from: a new epoch begins, in the place of epoch {} that was left "
        "after {} steps",
        at_.epochs + 1, at_.epoch_steps);
    for (auto& metric : metrics_) metric.reset();
    begin_epoch();
  }

  void begin_epoch() {
    at_.epoch_steps = 0;
    at_.epoch_loss = 0;
    at_.stream_state.reset();
  }

  void train_unfrozen() {
    const auto left = nn::Modes::train_unfrozen(model_);
    logging::print(logging::Level::warning,
                   "train::fit: the whole model is in inference mode: what has trainable parameters is in training mode while it "
                   "is trained{}",
                   left == 0 ? "" : fmt::format("; {} frozen layer{} in inference mode", left, left == 1 ? " stays" : "s stay"));
  }

  bool done() {
    if (run_.stop) {
      result_.stopped_early = true;
      return true;
    }
    if (options_.early_stopping > 0 && at_.stale_epochs >= options_.early_stopping) {
      result_.stopped_early = true;
      return true;
    }
    if (options_.steps > 0) return at_.epoch_steps == 0 && at_.steps >= options_.steps;
    return at_.epochs >= options_.epochs;
  }

  bool whole_epoch() const { return is_stream_ ? ended_ : at_.epoch_steps == epoch_length_; }
  bool enough_steps() const { return run_.stop || whole_epoch() || (options_.steps > 0 && at_.steps >= options_.steps); }

  void save() {
    if (!checkpoint_) return;
    hooks_.before(&Hook::before_checkpoint);
    if (devices_) devices_->collect();
    job_.share_buffers(model_);
    job_.collect(metrics_);
    if (run_.accumulate) job_.collect(optimizer_);
    if (devices_) devices_->share_buffers();
    if (!job_.writes()) {
      if (optimizer_.shards() > 1) (void)optimizer_.state_dict();  // rank 0 asks for it, too
      return;
    }
    if (options_.before_checkpoint) options_.before_checkpoint();
    checkpoint_->save(at_, model_, optimizer_);
  }

  /// The rest of the epoch under way, with its validation. False when interrupted.
  bool epoch() {
    const auto start = Clock::now();
    images_ = 0;
    rate_from_here(start);
    show_position();
    hooks_.before(&Hook::before_epoch);
    if (run_.stop && at_.epoch_steps == 0) return true;
    if (!steps()) return false;
    const auto training = seconds_since(start);

    if (devices_) devices_->collect();
    EpochMetrics metrics{.epoch = at_.epochs + 1,
                         .steps = at_.steps,
                         .train_loss = at_.epoch_loss / static_cast<double>(std::max<std::int64_t>(at_.epoch_steps, 1)),
                         .validation = std::nullopt,
                         .images_per_second = static_cast<double>(images_) / training,
                         .seconds = 0,
                         .metrics = job_.results(metrics_)};
    const bool whole = run_.whole_epoch = whole_epoch();
    // Going on later from here, with more steps allowed, must not see an epoch that ended early.
    if (!whole) save();
    const HookedRecord record(run_, metrics);
    if (options_.validation) {
      validate(metrics);
      if (!metrics.validation) return false;
    }
    metrics.seconds = seconds_since(start);
    if (whole) {
      for (auto& metric : metrics_) metric.reset();
      ++at_.epochs;
      begin_epoch();
      if (metrics.validation) watch(metrics.validation->loss);
    }
    hooks_.after(&Hook::after_epoch);
    progress_->epoch(metrics);
    if (options_.on_epoch && job_.writes()) options_.on_epoch(metrics);
    result_.epochs.push_back(metrics);
    run_.record = nullptr;
    run_.records = result_.epochs;
    if (whole) save();
    if (!whole && run_.stop) result_.stopped_early = true;
    return true;
  }

  /// No validation when interrupted. Hooks hear of the end in any case.
  void validate(EpochMetrics& record) {
    progress_->validating();
    const Autocast cast(options_.precision);
    const auto end = [&] {
      validating_ = false;
      hooks_.after(&Hook::after_evaluation);
    };
    try {
      hooks_.before(&Hook::before_evaluation);
      job_.share_buffers(model_);
      validating_ = true;
      record.validation = evaluate(
          model_, *options_.validation,
          {.batch_size = options_.batch_size,
           .workers = options_.workers,
           .prefetch = options_.prefetch,
           .collate = options_.collate,
           .loss = options_.loss,
           .step_function = options_.step_function,
           .metrics = options_.metrics,
           .group = options_.group},
          [&] { return interrupt_->requested(); }, job_.evaluation_shares());
    } catch (const Error&) {
      end();
      // What fails after this, as saving may, is no cancelling.
      if (!std::exchange(cancelled_, false)) throw;
      return;
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void watch(double loss) {
    if (std::isfinite(loss) && (!at_.best_loss || loss < *at_.best_loss)) {
      at_.best_loss = loss;
      at_.stale_epochs = 0;
    } else {
      ++at_.stale_epochs;
    }
  }

  bool steps() {
    ended_ = false;
    if (enough_steps()) return true;
    std::optional<bool> went_on;
    if (devices_) {
      while (!went_on && several_steps(went_on)) {
      }
    } else {
      BatchSource batches(dataset_, batch_options());
      while (const auto batch = batches.next()) {
        step(*batch);
        if ((went_on = ended_after_step())) break;
      }
    }
    if (went_on) return *went_on;
    require(is_stream_, "the dataset gave fewer batches than its size");
    require(at_.epoch_steps > 0, "the dataset is empty");
    ended_ = true;
    if (!waiting_.empty()) {
      read_losses();
      show();
    }
    return true;
  }

  data::BatchOptions batch_options() const {
    return {.batch_size = options_.batch_size,
            .shuffle = shuffle(),
            .seed = options_.seed,
            .epoch = static_cast<std::uint64_t>(at_.epochs),
            .start = at_.epoch_steps,
            .augmentation = options_.augmentation,
            .workers = options_.workers,
            .prefetch = options_.prefetch,
            .collate = options_.collate,
            .length = options_.length,
            .sampler = options_.sampler,
            .stream_state = at_.stream_state,
            .share = devices_ ? std::nullopt : job_.share()};
  }

  /// Reads losses and writes a checkpoint where it is time. Nothing: the epoch goes on. False: interrupted.
  std::optional<bool> ended_after_step() {
    const bool enough = enough_steps();
    const bool checkpoint_due = options_.checkpoint_steps > 0 && at_.steps % options_.checkpoint_steps == 0;
    // Several ranks read at the same steps, and so stop at the same step.
    const auto most_waiting = job_.several() ? ranks_read_after : pace_.group();
    bool interrupted = !job_.several() && interrupt_->requested();
    if (waiting_.size() >= most_waiting || interrupted || enough || checkpoint_due) {
      read_losses();
      show();
      interrupted = interrupted || rank_interrupted_;
    }
    if (interrupted) return false;
    if (checkpoint_due) save();
    if (enough_steps()) return true;  // a hook may have stopped it meanwhile
    return std::nullopt;
  }

  void begin_step() {
    if (options_.schedule) optimizer_.set_learning_rate(options_.schedule(at_.steps));
    if (options_.momentum) optimizer_.set_momentum(options_.momentum(at_.steps));
    run_.accumulate = false;
    run_.loss_factor = 1;
    show_position();
    hooks_.before(&Hook::before_step);
  }

  void end_step(const data::Batch& batch, std::int64_t images) {
    waiting_.push_back({run_.loss, rank_stops_});
    ++at_.steps;
    ++at_.epoch_steps;
    at_.stream_state = batch.stream_state;
    images_ += images;
    run_.updated = !run_.accumulate;
    show_position();
    hooks_.after(&Hook::after_step);
  }

  void step(const data::Batch& batch) {
    begin_step();
    const auto& part = part_of(batch);
    {
      const Autocast cast(options_.precision);
      const OwnRows rows(job_, part.rows);
      const bool has_rows = batch.images.defined();
      nn::SumFunction sum;
      if (options_.sync_batch_norm && job_.several())
        sum = [this](const std::vector<Tensor>& own) { return dist::all_reduce(own, *options_.group); };
      const nn::SharedStatistics statistics(std::move(sum), has_rows);
      const auto step = step_of(model_, part);
      run_.loss = advance(weighed(step, part, has_rows),
                          has_rows ? metrics::update(metrics_, step.outputs, step.labels) : std::vector<Tensor>{});
    }
    for (auto& metric : metrics_) metric.detach();
    end_step(batch, job_.several() ? batch.rows.batch : batch.images.size(0));
  }

  /// The same on several devices.
  void step(const std::vector<data::Batch>& parts) {
    begin_step();
    {
      const Autocast cast(options_.precision);
      const auto made = devices_->step(
          parts, {.accumulate = run_.accumulate, .loss_factor = run_.loss_factor, .interrupted = interrupt_->requested()},
          [&](nn::Module& model, const data::Batch& part) {
            auto step = step_of(model, part);
            step.count = count_of(step, part);
            return step;
          });
      run_.loss = Tensor::scalar(made.loss);
      if (job_.several()) rank_stops_ = Tensor::scalar(made.interrupted ? 1.0 : 0.0);
    }
    at_.shares = devices_->measured_shares();
    end_step(parts[0], parts[0].rows.batch);
  }

  /// Steps on several devices until the epoch ends, `went_on` says how training goes on, or later batches have other parts: true.
  bool several_steps(std::optional<bool>& went_on) {
    // What a stream has given does not come again.
    const auto can_repeat = [this] { return !is_stream_ || at_.epoch_steps == 0 || at_.stream_state; };
    try {
      auto parts = devices_->batches(dataset_, batch_options());
      while (parts.next()) {
        step(parts.now());
        went_on = ended_after_step();
        if (went_on || (devices_->shares_changed() && can_repeat())) return true;
      }
    } catch (const parallel::DeviceFailed& failed) {
      if (job_.several()) end_job(failed);
      if (options_.strict_devices || devices_->count() == 1 || !can_repeat()) throw;
      devices_->leave_out(failed);
      here_.reset();
      here_.emplace(devices_->first());
      return true;
    }
    return false;
  }

  /// The others wait for this rank, whose rows of the batch only its own devices have.
  [[noreturn]] void end_job(const parallel::DeviceFailed& failed) const {
    const std::string_view what = failed.what();
    const auto line = fmt::format("train::fit: a device of rank {} failed, which ends training on all ranks: {}: {}", job_.rank(),
                                  devices_->name(failed.device), what.substr(0, what.find('\n')));
    job_.abort(line);
    throw DeviceError(line);
  }

  Step step_of(nn::Module& model, const data::Batch& batch) const {
    return train::step_of(model, batch, options_.step_function, loss_, static_cast<bool>(options_.loss),
                          first_ ? &dataset_ : nullptr);
  }

  /// How many numbers the loss of a part is the mean of; undefined: its samples.
  Tensor count_of(const Step& step, const data::Batch& part) const {
    const bool by_label = !options_.step_function && !options_.loss;
    return by_label ? counted_labels(dataset_, part.labels) : step.count;
  }

  /// Steps down the loss or adds its gradient up, as the hooks want it; returns the loss of the whole batch.
  Tensor advance(const Tensor& loss, std::vector<Tensor> more) {
    const bool scaled = run_.loss_factor != 1;
    const Tensor down = scaled ? loss * run_.loss_factor : loss;
    if (!job_.several()) {
      if (scaled) more.push_back(loss);
      const Tensor result = run_.accumulate ? optimizer_.accumulate(down, more) : optimizer_.step(down, more);
      return scaled ? loss.detach() : result;
    }
    shared_loss_ = loss;
    if (run_.accumulate) {
      share_gradients({}, more);
      optimizer_.accumulate(down, more);
    } else {
      optimizer_.step(down, more);
    }
    rank_stops_ = rank_stops_.detach();
    return std::exchange(shared_loss_, {}).detach();
  }

  /// The batch's share, or, where this rank has nothing of a small batch, an earlier one, which then weighs nothing.
  const data::Batch& part_of(const data::Batch& batch) {
    if (!job_.several()) return batch;
    if (batch.images.defined())
      last_batch_ = batch;
    else if (!last_batch_.images.defined() && held(dataset_) == &dataset_)
      last_batch_ = first_of_epoch();
    require(last_batch_.images.defined(),
            fmt::format("a batch of {} samples has nothing for rank {}", batch.rows.batch, job_.rank()));
    return last_batch_;
  }

  /// This rank's share of the epoch's first batch, which a resumed training did not begin with.
  data::Batch first_of_epoch() const {
    auto options = batch_options();
    options.start = 0;
    options.stream_state.reset();
    options.workers = 0;
    const auto batches = data::batches(dataset_, options);
    const auto first = batches.begin();
    return first == batches.end() ? data::Batch() : *first;
  }

  /// The loss of a batch as this rank's part of the mean over all ranks; `has_rows`: of this batch.
  Tensor weighed(const Step& step, const data::Batch& batch, bool has_rows) const {
    if (!job_.several()) return step.loss;
    auto count = count_of(step, batch);
    auto rows = batch.rows;
    if (!has_rows) {
      rows.count = 0;
      if (count.defined()) count = zeros_like(count);
    }
    return job_.weighed(step.loss, count, rows);
  }

  /// Replaces gradients, this rank's part of the loss and its wish to stop by their sums over all ranks.
  void share_gradients(std::span<Tensor> gradients, std::vector<Tensor>& more) {
    const auto sums =
        job_.sum_up(gradients, options_.exchanged,
                    {reshape(cast(shared_loss_, Dtype::f32), {}), Tensor::scalar(interrupt_->requested() ? 1.0 : 0.0)});
    shared_loss_ = sums[0];
    rank_stops_ = sums[1];
    more.insert(more.end(), sums.begin(), sums.end());
  }

  void read_losses() {
    auto step = at_.steps - static_cast<std::int64_t>(waiting_.size());
    for (const auto& [tensor, stops] : std::exchange(waiting_, {})) {
      const double loss = tensor.item<double>();
      if (stops.defined() && stops.item<float>() > 0) rank_interrupted_ = true;
      ++step;
      if (!std::exchange(begun_, true)) interrupt_->begun();
      if (!std::isfinite(loss))
        throw Error(fmt::format("train::fit: the loss is {} at step {}; a lower learning rate may help", loss, step));
      at_.epoch_loss += loss;
      hooks_.on_loss(step, loss);
      if (options_.on_step && job_.writes()) options_.on_step(step, loss);
    }
    pace_.was_read();
  }

  /// The speed that is shown counts from here.
  void rate_from_here(Clock::time_point now) {
    rate_start_ = now;
    rate_steps_ = at_.steps;
    rate_images_ = images_;
  }

  void show() {
    // The first step plans and compiles: it says nothing of the others' speed.
    const bool first = std::exchange(first_, false);
    const double seconds = first ? std::numeric_limits<double>::infinity() : seconds_since(rate_start_);
    progress_->step({.epoch = at_.epochs + 1,
                     .steps = at_.steps,
                     .epoch_steps = at_.epoch_steps,
                     .epoch_length = is_stream_ ? 0 : std::min(epoch_length_, planned_steps() - (at_.steps - at_.epoch_steps)),
                     .loss = at_.epoch_loss / static_cast<double>(at_.epoch_steps),
                     .images_per_second = static_cast<double>(images_ - rate_images_) / seconds,
                     .steps_per_second = static_cast<double>(at_.steps - rate_steps_) / seconds});
    if (first) rate_from_here(Clock::now());
  }

  nn::Module& model_;
  const data::Dataset& dataset_;
  FitOptions options_;
  optim::Optimizer optimizer_;
  Loss loss_;
  Run run_;
  Hooks hooks_;
  std::vector<metrics::Metric> metrics_;  ///< of the present epoch
  std::optional<Checkpoint> checkpoint_;
  bool is_stream_ = false;
  std::int64_t epoch_length_ = 1;  ///< 0: a stream's
  Interrupt* interrupt_ = nullptr;
  Progress* progress_ = nullptr;

  Position at_;
  bool ended_ = false;       ///< the stream's epoch
  std::int64_t images_ = 0;  ///< of the present call of epoch()
  bool first_ = true;        ///< no step has been shown yet
  Clock::time_point rate_start_;
  std::int64_t rate_steps_ = 0, rate_images_ = 0;   ///< those made before
  std::vector<std::pair<Tensor, Tensor>> waiting_;  ///< losses not read yet, and whether a rank was interrupted
  ReadingPace pace_;
  bool begun_ = false;  ///< a step of this call is made
  bool validating_ = false, cancelled_ = false;
  FitResult result_;

  std::optional<SeveralDevices> devices_;  ///< where there are several
  std::optional<DeviceScope> here_;        ///< the first of the options' devices that has not failed

  Job job_;
  data::Batch last_batch_;         ///< this rank's share of the last batch that has one
  Tensor shared_loss_;             ///< of the step that is being built
  Tensor rank_stops_;              ///< more than 0: a rank was interrupted before that step
  bool rank_interrupted_ = false;  ///< that was read
};

}  // namespace

FitResult fit(nn::Module& model, const data::Dataset& dataset, const FitOptions& options) {
  if (!options.scatter_data || !options.group || options.group->size() == 1) return Fit(model, dataset, options).run();
  const auto& group = *options.group;
  require_equal_validation(group, options.validation.has_value());
  const Scattered train(dataset, group, true);
  auto all = options;
  std::optional<Scattered> validation;
  if (options.validation) all.validation = validation.emplace(*options.validation, group, false);
  return Fit(model, train, all).run();
}

}  // namespace clnet::train
