// Data-parallel training: replicas of a model, each of which computes its share of every batch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/export.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "clnet/train.h"

namespace clnet::parallel {

class ReplicaGroup;

/// Options of Replicas.
struct ReplicasOptions {
  std::vector<double> shares = {};  ///< of the batch, in proportion, by device; empty: equal ones
  /// Batch norm, of nn and of ONNX files, uses the statistics of the whole batch: each device adds its sums to those of the
  /// others, forward and backward, and waits for them there. So the step function only builds graph: what depends on batch norm
  /// has no value before step() computes. Otherwise each device uses its rows.
  bool sync_batch_norm = false;
};

/// One model on several devices. The model object stays one: its class needs no clone(), and it may come from an ONNX file. The
/// first device has the model's own parameters and buffers. The others have copies of them.
///
///   parallel::Replicas replicas(model, {Device::find("0:0"), Device::find("0:1")});
///   optim::Adam adam(model, 1e-3);
///   auto parts = replicas.batches(images, {.batch_size = 128, .shuffle = true});
///   while (parts.next()) replicas.step(adam, parts.now(), loss);
///
/// A step has the loss and the gradients of the whole batch, within rounding: the sum over all samples by their number. Random
/// tensors that have the batch as their first extent are rows of the whole batch's; others are each replica's own. Batch norm
/// uses the statistics of each device's rows, and the model keeps those of the first; or those of the whole batch
/// (ReplicasOptions::sync_batch_norm).
///
/// Devices compute at the same time, each in a host thread of its own. The host adds the gradients, in the order of the devices,
/// and the optimizer steps on the first. The same seed and shares give the same bits.
class CLNET_API Replicas {
 public:
  /// Moves the model to the first device, and copies it to the others. A device may come several times. `model` must outlive this
  /// object and get no other parameters. Throws Error without devices, for shares that do not fit them, and for a device that
  /// comes twice with sync_batch_norm.
  Replicas(nn::Module& model, std::vector<Device> devices, const ReplicasOptions& options = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  const std::vector<Device>& devices() const;
  /// Each device's share of batches.
  data::Share share(std::size_t device) const;

  /// The batches of an epoch as their parts, one for each device, on it.
  class CLNET_API Parts {
   public:
    /// Goes to the first batch, then to the next ones. False at the end. Rethrows an exception of a background thread.
    bool next();
    /// The parts of the present batch.
    const std::vector<data::Batch>& now() const { return now_; }

   private:
    friend class ReplicaGroup;
    std::vector<data::Batches> batches_;
    std::vector<Device> devices_;
    std::vector<data::Batches::Iterator> at_;
    std::vector<data::Batch> now_;
  };
  /// As data::batches(); `dataset` must outlive the parts. Throws Error for options with a share.
  Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const;

  /// One step of the optimizer, which is the model's, down the loss of the parts together. `function` is called once for each
  /// part that has samples, by this thread, and builds the same graph for each. Its Step::count tells how many numbers the part's
  /// loss is the mean of; without one these are the samples. Returns the loss of the whole batch, and waits for it.
  ///
  /// Throws Error where there are not as many parts as devices, where the parts are none of one batch, where the loss does not
  /// reach a parameter that is not frozen, where replicas draw different numbers of random tensors, and for an optimizer with a
  /// loss scale. After an exception parameters and states are as before. Running statistics may have changed.
  double step(optim::Optimizer& optimizer, const std::vector<data::Batch>& parts, const train::StepFunction& function);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clnet::parallel
