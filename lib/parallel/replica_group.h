// A model on several devices that compute at the same time: what Replicas and fit() have in common.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn.h"
#include "clnet/parallel.h"
#include "clnet/train.h"
#include "lib/exec/collect/copy.h"
#include "lib/graph/random_stream.h"
#include "lib/nn/replica_slots.h"
#include "lib/parallel/lane.h"

namespace clnet::parallel {

/// One part's loss as graph, and what is computed along with it on the part's device.
struct PartStep {
  train::Step step;
  std::vector<Tensor> more = {};
};
/// Called in the caller's thread, in the order of the parts, each in the surroundings of its replica.
using PartFunction = std::function<PartStep(std::size_t part, nn::Module& model, const data::Batch& batch)>;

/// A device failed, as DeviceError says it.
class DeviceFailed : public DeviceError {
 public:
  DeviceFailed(std::size_t which, const std::string& what) : DeviceError(what), device(which) {}
  const std::size_t device;  ///< its place in the group
};

/// Runs what only the group's device of this place can fail.
template <class Work>
auto on_behalf_of(std::size_t device, const Work& work) {
  try {
    return work();
  } catch (const exec::TwoDevices&) {
    throw;
  } catch (const DeviceError& error) {
    throw DeviceFailed(device, error.what());
  }
}

struct ComputeOptions {
  /// Gradients are computed of the whole batch's loss times this, and divided by it: a loss scale.
  double of_loss = 1;
  double factor = 1;  ///< what gradients are multiplied by
  /// Parameters that the loss does not reach get no gradient. Otherwise they are an Error.
  bool may_miss = false;
};

/// What a step is made from.
struct WholeBatch {
  double loss = 0;   ///< the mean over all that counts
  double count = 0;  ///< of what counts
  std::vector<Tensor>
      gradients;          ///< by parameter, f32 in the host's memory; undefined for frozen ones and those that were missed
  RandomPosition random;  ///< behind the batch
  /// By device: from its first command to the last gradient on the host, less what it waited for others and added for all; 0
  /// where it had no samples.
  std::vector<double> seconds;
};

/// The first device has the model's own parameters and buffers, the others have copies. Each device has a lane, in which it
/// computes and is waited for; the caller's thread only builds graph meanwhile. One thread calls at a time.
class ReplicaGroup {
 public:
  /// As Replicas.
  ReplicaGroup(nn::Module& model, std::vector<Device> devices, std::vector<double> shares, bool sync_batch_norm);

  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<double>& shares() const { return shares_; }
  data::Share share(std::size_t device) const { return {shares_, first_ + device}; }
  /// Of later batches(), as many as devices.
  void set_shares(std::vector<double> shares);
  /// From now on the devices are those from `first` on among more, as of several processes, with these shares of a batch. So the
  /// parts that compute() gets are some of a batch, or none.
  void set_place(std::vector<double> shares_of_all, std::size_t first);
  Replicas::Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const;

  /// Loss and gradients of the parts together, all of `parameters`. Changes no parameter, and the caller's random numbers only by
  /// the returned position. Throws as Replicas::step(), and DeviceFailed for a DeviceError, when all devices have ended their
  /// work.
  WholeBatch compute(const nn::NamedParameters& parameters, const std::vector<data::Batch>& parts, const PartFunction& function,
                     const ComputeOptions& options = {});
  /// Gives all replicas the buffers of the model, as statistics of batch norm are each replica's own.
  void share_buffers();

  /// The buffers of each replica, to undo a step.
  std::vector<std::vector<Tensor>> buffers() const;
  /// Puts them back. No device is asked for anything.
  void set_buffers(const std::vector<std::vector<Tensor>>& buffers) const;
  /// Gives the model the second device's values. Asks the first one only for parameters that changed since the last compute().
  void leave_first();

 private:
  std::optional<SlotScope> slots_of(std::size_t device) const;
  /// Throws Error unless they are those of one batch. Returns whether there is something to compute.
  bool has_rows(const std::vector<data::Batch>& parts) const;
  /// Gives a replica that had no samples the buffers of another one.
  void hand_on(const std::vector<nn::Parameter>& buffers, std::size_t from, std::size_t to) const;

  nn::Module& model_;
  std::vector<Device> devices_;
  std::vector<double> shares_;  ///< of all devices, also of those that are others'
  std::size_t first_ = 0;       ///< the place of the first device among them
  bool sync_batch_norm_;
  std::deque<nn::ReplicaSlots> copies_;  ///< of all devices but the first
  std::vector<std::size_t> lane_of_;     ///< by device; a device that comes twice has one
  std::optional<Lanes> lanes_;
};

}  // namespace clnet::parallel
