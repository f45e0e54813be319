#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "clnet/error.h"
#include "clnet/hooks.h"
#include "lib/optim/state_reader.h"

namespace clnet::train {

namespace {

class EmaHook : public Hook {
 public:
  explicit EmaHook(const optim::EMA& average) : average_(average) {}
  std::string name() const override { return "ema"; }
  void before_training(Run& run) override {
    if (!average_.made_for(run.model)) throw Error("train::ema: the averages were made for another model");
    first_ = run.model.parameters().front().second;
    follow();
  }
  void after_step(Run& run) override {
    follow();
    if (run.updated) average_.update();
  }
  void before_evaluation(Run&) override {
    follow();
    average_.swap();
  }
  void after_evaluation(Run&) override {
    if (average_.swapped()) average_.swap();
  }
  io::StateDict state_dict() const override { return average_.state_dict(); }
  void load_state_dict(const io::StateDict& state) override { average_.load_state_dict(state); }

 private:
  /// A model that trains on several devices moves to another one, where its first one fails.
  void follow() {
    const auto device = first_->value().device();
    if (device_ && !(*device_ == device)) average_.to(device);
    device_ = device;
  }

  optim::EMA average_;
  std::optional<nn::Parameter> first_;
  std::optional<Device> device_;
};

class AccumulationHook : public Hook {
 public:
  explicit AccumulationHook(std::int64_t batches) : batches_(batches) {
    if (batches < 1) throw Error(fmt::format("train::accumulation: of {} batches, expected at least 1", batches));
  }
  std::string name() const override { return fmt::format("accumulation {}", batches_); }
  void before_step(Run& run) override {
    const auto first = run.epoch_step / batches_ * batches_;
    const auto end = run.epoch_length > 0 ? std::min(first + batches_, run.epoch_length) : first + batches_;
    run.accumulate = run.epoch_step + 1 < end;
    run.loss_factor /= static_cast<double>(end - first);
  }

 private:
  std::int64_t batches_;
};

/// A hook that takes one number of each whole epoch's record, in the evaluation where it is the validation's.
class MonitorHook : public Hook {
 public:
  void before_training(Run& run) override {
    const std::string_view name = monitor_.name;
    const auto metric = is_of_training() ? name.substr(training.size()) : name;
    const bool known = metric == "loss" || (name == "accuracy") ||
                       std::find(run.metrics.begin(), run.metrics.end(), metric) != run.metrics.end();
    if (!known)
      fail(fmt::format("is no number of the records, which are loss, accuracy{}{}, and those of training, as train_loss",
                       run.metrics.empty() ? "" : ", ", fmt::join(run.metrics, ", ")));
    if (!is_of_training() && !run.has_validation) fail("needs a validation dataset");
  }
  void after_evaluation(Run& run) override {
    if (!is_of_training() && run.record->validation) take_whole(run);
  }
  void after_epoch(Run& run) override {
    if (is_of_training()) take_whole(run);
  }

 protected:
  explicit MonitorHook(Monitor monitor) : monitor_(std::move(monitor)) {}
  const Monitor& monitor() const { return monitor_; }

 private:
  virtual void take(Run& run, double value) = 0;

  static constexpr std::string_view training = "train_";
  bool is_of_training() const { return monitor_.name.starts_with(training); }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(fmt::format("train::{}: '{}' {}", name(), monitor_.name, what));
  }

  /// An epoch that was cut short may go on in another run, which must not see it twice.
  void take_whole(Run& run) {
    if (run.whole_epoch) take(run, value_in(*run.record));
  }

  double value_in(const EpochMetrics& record) const {
    const auto& all = is_of_training() ? record.metrics : record.validation->metrics;
    const auto name = std::string_view(monitor_.name).substr(is_of_training() ? training.size() : 0);
    if (name == "loss") return is_of_training() ? record.train_loss : record.validation->loss;
    const auto result = std::find_if(all.begin(), all.end(), [&](const auto& r) { return r.name == name; });
    if (result != all.end()) return result->value;
    if (std::isnan(record.validation->accuracy)) fail("is no number of this validation; a metric may be");
    return record.validation->accuracy;
  }

  Monitor monitor_;
};

class EarlyStoppingHook : public MonitorHook {
 public:
  explicit EarlyStoppingHook(const EarlyStoppingOptions& options) : MonitorHook(options.monitor), options_(options) {
    if (options.patience < 1)
      throw Error(fmt::format("train::early_stopping: patience is {}, expected at least 1", options.patience));
    if (!(options.min_delta >= 0))
      throw Error(fmt::format("train::early_stopping: min_delta is {}, expected at least 0", options.min_delta));
  }
  std::string name() const override { return "early_stopping"; }

  void before_training(Run& run) override {
    MonitorHook::before_training(run);
    if (run.step == 0) forget();
    if (stale_ >= options_.patience) run.stop = true;
  }
  void after_training(Run& run) override {
    if (options_.restore_best && !best_state_.empty()) run.model.load_state_dict(best_state_);
  }

  io::StateDict state_dict() const override {
    io::StateDict state{{"stale", Tensor::from(std::vector<std::int64_t>{stale_}, {})}};
    if (best_) state.emplace_back("best", optim::state_number(*best_));
    for (const auto& [name, tensor] : best_state_) state.emplace_back("best." + name, tensor);
    return state;
  }
  void load_state_dict(const io::StateDict& state) override {
    constexpr std::string_view prefix = "best.";
    io::StateDict numbers, best;
    for (const auto& [name, tensor] : state) {
      if (name.starts_with(prefix))
        best.emplace_back(name.substr(prefix.size()), tensor);
      else
        numbers.emplace_back(name, tensor);
    }
    optim::StateReader reader(numbers);
    const auto stale = reader.count("stale");
    const auto value = reader.has("best") ? std::optional(reader.number("best")) : std::nullopt;
    reader.require_fit("early stopping");
    stale_ = stale;
    best_ = value;
    best_state_ = std::move(best);
  }

 private:
  void take(Run& run, double value) override {
    const double sign = monitor().maximize ? 1 : -1;
    if (!best_ || sign * value > sign * *best_ + options_.min_delta) {
      if (!std::isnan(value)) {
        best_ = value;
        stale_ = 0;
        // Handles, no copies: values of parameters never change.
        if (options_.restore_best) best_state_ = run.model.state_dict();
        return;
      }
    }
    if (++stale_ >= options_.patience) run.stop = true;
  }

  /// Another training has seen other losses.
  void forget() {
    best_.reset();
    stale_ = 0;
    best_state_.clear();
  }

  EarlyStoppingOptions options_;
  std::optional<double> best_;
  std::int64_t stale_ = 0;
  io::StateDict best_state_;
};

class PlateauHook : public MonitorHook {
 public:
  PlateauHook(const Monitor& monitor, optim::PlateauOptions options) : MonitorHook(monitor), options_(options) {
    options_.maximize = monitor.maximize;
    (void)optim::Plateau(1, options_);
  }
  std::string name() const override { return "reduce_on_plateau"; }

  void before_training(Run& run) override {
    MonitorHook::before_training(run);
    if (run.has_schedule) throw Error("train::reduce_on_plateau: sets the learning rate, and so does the schedule");
    if (!plateau_ || run.step == 0) plateau_.emplace(run.optimizer.learning_rate(), options_);
  }
  io::StateDict state_dict() const override { return plateau_ ? plateau_->state_dict() : io::StateDict{}; }
  void load_state_dict(const io::StateDict& state) override {
    if (state.empty()) {
      plateau_.reset();
      return;
    }
    optim::Plateau loaded(1, options_);
    loaded.load_state_dict(state);
    plateau_ = loaded;
  }

 private:
  void take(Run& run, double value) override { run.optimizer.set_learning_rate(plateau_->step(value)); }

  optim::PlateauOptions options_;
  std::optional<optim::Plateau> plateau_;
};

class UnfreezingHook : public Hook {
 public:
  explicit UnfreezingHook(std::vector<Unfreezing> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_)
      if (part.epoch < 1)
        throw Error(fmt::format("train::unfreezing: {} at epoch {}, expected at least 1", part.name, part.epoch));
  }
  std::string name() const override { return "unfreezing"; }

  void before_training(Run& run) override {
    for (const auto& part : parts_) freeze(run.model, part.name, true);
    for (const auto& part : parts_)
      if (part.epoch < run.epoch) freeze(run.model, part.name, false);
  }
  void before_epoch(Run& run) override {
    for (const auto& part : parts_)
      if (part.epoch == run.epoch) freeze(run.model, part.name, false);
  }

 private:
  static void freeze(nn::Module& model, const std::string& name, bool on) {
    const auto parameters = model.parameters();
    const auto own = std::find_if(parameters.begin(), parameters.end(), [&](const auto& named) { return named.first == name; });
    if (own != parameters.end()) {
      auto parameter = own->second;
      parameter.freeze(on);
      return;
    }
    try {
      auto child = model.child(name);
      child.freeze(on);
      if (!on) child.train();
    } catch (const Error&) {
      throw Error(fmt::format("train::unfreezing: the model has no part and no parameter '{}'", name));
    }
  }

  std::vector<Unfreezing> parts_;
};

}  // namespace

std::shared_ptr<Hook> ema(const optim::EMA& average) { return std::make_shared<EmaHook>(average); }
std::shared_ptr<Hook> accumulation(std::int64_t batches) { return std::make_shared<AccumulationHook>(batches); }
std::shared_ptr<Hook> early_stopping(const EarlyStoppingOptions& options) { return std::make_shared<EarlyStoppingHook>(options); }
std::shared_ptr<Hook> reduce_on_plateau(const Monitor& monitor, const optim::PlateauOptions& options) {
  return std::make_shared<PlateauHook>(monitor, options);
}
std::shared_ptr<Hook> unfreezing(std::vector<Unfreezing> parts) { return std::make_shared<UnfreezingHook>(std::move(parts)); }

}  // namespace clnet::train
