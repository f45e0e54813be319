// What fit() asks where several devices of this process work on one training (clnet/parallel.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/metrics.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "clnet/parallel.h"
#include "clnet/train.h"
#include "lib/parallel/replica_group.h"

namespace clnet::train {

/// The devices of a training. The first has the model, the optimizer's states and the metrics that fit() knows; each other one
/// has metrics of its own, whose sums come to the first where they are asked for.
class SeveralDevices {
 public:
  struct Options {
    std::vector<Device> devices;
    std::vector<double> shares;       ///< empty: equal ones
    std::int64_t measured_steps = 0;  ///< not 0: after so many steps shares by the devices' speed
    bool measured = false;            ///< the shares are such
    bool undo = true;                 ///< a step that fails is undone
    bool sync_batch_norm = false;
  };
  /// Moves model and optimizer to the first device. All must outlive this object; `metrics` are those of the first device.
  SeveralDevices(nn::Module& model, optim::Optimizer optimizer, std::vector<metrics::Metric>& metrics, Options options);

  const Device& first() const { return group_->devices()[0]; }
  std::size_t count() const { return group_->devices().size(); }
  parallel::Replicas::Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
    return group_->batches(dataset, options);
  }

  struct StepOptions {
    bool accumulate = false;
    double loss_factor = 1;  ///< of the gradient alone
  };
  /// Steps down the loss of the parts, or adds its gradient up. Returns the loss of the whole batch. Throws
  /// parallel::DeviceFailed; then all is as before the step.
  double step(const std::vector<data::Batch>& parts, const StepOptions& options,
              const std::function<Step(nn::Module& model, const data::Batch& batch)>& function);

  /// The shares, when they have been measured.
  const std::vector<double>& measured_shares() const { return measured_shares_; }
  /// Whether the last step measured them: later batches have other parts.
  bool shares_changed() const { return shares_changed_; }

  /// Goes on without the device, and says so in a line. Throws `failed` where that is the first one and no longer gives the
  /// optimizer's states.
  void leave_out(const parallel::DeviceFailed& failed);

  /// Adds the metrics of all devices to those of the first.
  void collect();
  /// Gives all devices the buffers of the first.
  void share_buffers() { group_->share_buffers(); }

 private:
  /// What a step changes before it can fail.
  struct Before {
    std::vector<std::vector<Tensor>> buffers;
    std::vector<io::StateDict> metrics;
  };
  std::vector<metrics::Metric>& metrics_of(std::size_t device) { return device == 0 ? metrics_ : more_metrics_[device - 1]; }
  Before before() const;
  void undo(const Before& before);
  void measure(const std::vector<data::Batch>& parts, const std::vector<double>& seconds);
  bool take_metrics(std::size_t failed);

  nn::Module& model_;
  optim::Optimizer optimizer_;
  std::vector<metrics::Metric>& metrics_;
  std::optional<parallel::ReplicaGroup> group_;
  std::vector<std::vector<metrics::Metric>> more_metrics_;  ///< of the other devices
  bool undo_, sync_batch_norm_;

  std::int64_t measured_steps_;
  std::vector<std::vector<double>> row_seconds_;  ///< by step and device, while they are measured
  std::vector<double> measured_shares_;
  bool shares_changed_ = false;
};

}  // namespace clnet::train
