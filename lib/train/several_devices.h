// What fit() asks where several devices of this process work on one training (clnet/parallel.h).
#pragma once

#include <functional>
#include <memory>
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
  /// Moves model and optimizer to the first device. All must outlive this object; `metrics` are those of the first device.
  SeveralDevices(nn::Module& model, optim::Optimizer optimizer, const std::vector<Device>& devices,
                 const std::vector<double>& shares, std::vector<metrics::Metric>& metrics);

  parallel::Replicas::Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
    return group_.batches(dataset, options);
  }

  struct StepOptions {
    bool accumulate = false;
    double loss_factor = 1;  ///< of the gradient alone
  };
  /// Steps down the loss of the parts, or adds its gradient up. Returns the loss of the whole batch.
  double step(const std::vector<data::Batch>& parts, const StepOptions& options,
              const std::function<Step(nn::Module& model, const data::Batch& batch)>& function);

  /// Adds the metrics of all devices to those of the first.
  void collect();
  /// Gives all devices the buffers of the first.
  void share_buffers() { group_.share_buffers(); }

 private:
  optim::Optimizer optimizer_;
  std::vector<metrics::Metric>& metrics_;
  parallel::ReplicaGroup group_;
  std::vector<std::vector<metrics::Metric>> more_metrics_;  ///< of the other devices
};

}  // namespace clnet::train
