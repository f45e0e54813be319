// What fit() asks where several devices of this process work on one training (clnet/parallel.h), which may be one rank of
// several.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/metrics.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "clnet/parallel.h"
#include "clnet/train.h"
#include "lib/parallel/replica_group.h"
#include "lib/train/job.h"
#include "lib/train/scatter.h"

namespace clnet::train {

/// The devices of a training. The first has the model, the optimizer's states and the metrics that fit() knows; each other one
/// has metrics of its own, whose sums come to the first where they are asked for.
class SeveralDevices {
 public:
  struct Options {
    std::vector<Device> devices;
    std::vector<double> shares;       ///< empty: equal ones; of several ranks the job's count
    std::int64_t measured_steps = 0;  ///< not 0: after so many steps shares by the devices' speed
    bool measured = false;            ///< the shares are such
    bool undo = true;                 ///< a step that fails is undone
    Job job = {};                     ///< after share_out(); of several ranks all make each step, the same one
    bool sync_batch_norm = false;
  };
  /// Moves model and optimizer to the first device. All must outlive this object; `metrics` are those of the first device.
  SeveralDevices(nn::Module& model, optim::Optimizer optimizer, std::vector<metrics::Metric>& metrics, Options options);

  const Device& first() const { return group_->devices()[0]; }
  std::size_t count() const { return group_->devices().size(); }
  std::string name(std::size_t device) const { return group_->devices()[device].info().name; }

  /// The batches of an epoch as their parts, by device: read here, or on rank 0.
  class Parts {
   public:
    /// As Replicas::Parts.
    bool next();
    const std::vector<data::Batch>& now() const { return scattered_ ? now_ : read_->now(); }

   private:
    friend class SeveralDevices;
    std::optional<parallel::Replicas::Parts> read_;
    std::optional<BatchSource> scattered_;
    std::vector<data::Batch> now_;
  };
  Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const;

  struct StepOptions {
    bool accumulate = false;
    double loss_factor = 1;    ///< of the gradient alone
    bool interrupted = false;  ///< this rank
  };
  struct Stepped {
    double loss = 0;           ///< of the whole batch
    bool interrupted = false;  ///< some rank
  };
  /// Steps down the loss of the parts, or adds its gradient up. Throws parallel::DeviceFailed; then all is as before the step.
  /// With several ranks nothing is undone, and the optimizer's gradient function must add up what each rank has.
  Stepped step(const std::vector<data::Batch>& parts, const StepOptions& options,
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
  /// Makes the gradients of this rank's samples their part of the whole batch's, and its loss that of the whole batch. All ranks
  /// call it. Returns whether one was interrupted.
  bool weigh(parallel::WholeBatch& own, bool has_samples, const RandomPosition& start, bool interrupted) const;

  nn::Module& model_;
  optim::Optimizer optimizer_;
  std::vector<metrics::Metric>& metrics_;
  std::optional<parallel::ReplicaGroup> group_;
  std::vector<std::vector<metrics::Metric>> more_metrics_;  ///< of the other devices
  bool undo_, sync_batch_norm_;
  Job job_;

  std::int64_t measured_steps_;
  std::vector<std::vector<double>> row_seconds_;  ///< by step and device, while they are measured
  std::vector<double> measured_shares_;
  bool shares_changed_ = false;
};

}  // namespace clnet::train
