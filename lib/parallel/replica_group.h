// A model on several devices that compute at the same time: what Replicas and fit() have in common.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/nn.h"
#include "clnet/parallel.h"
#include "clnet/train.h"
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

/// Factors of the gradient.
struct GradientScale {
  double of_loss = 1;  ///< gradients are computed of the loss times this, and divided by it: a loss scale
  double factor = 1;   ///< what they are multiplied by
};

/// What a step is made from.
struct WholeBatch {
  double loss = 0;                ///< the mean over all that counts
  std::vector<Tensor> gradients;  ///< by parameter, f32 in the host's memory; undefined for frozen ones
  RandomPosition random;          ///< behind the batch
};

/// The first device has the model's own parameters and buffers, the others have copies. Each device has a lane, in which it
/// computes and is waited for; the caller's thread only builds graph meanwhile. One thread calls at a time.
class ReplicaGroup {
 public:
  /// As Replicas.
  ReplicaGroup(nn::Module& model, std::vector<Device> devices, std::vector<double> shares);

  const std::vector<Device>& devices() const { return devices_; }
  data::Share share(std::size_t device) const { return {shares_, device}; }
  Replicas::Parts batches(const data::Dataset& dataset, const data::BatchOptions& options) const;

  /// Loss and gradients of the parts together, all of `parameters`. Changes no parameter, and the caller's random numbers only by
  /// the returned position. Throws as Replicas::step(), when all devices have ended their work.
  WholeBatch compute(const nn::NamedParameters& parameters, const std::vector<data::Batch>& parts, const PartFunction& function,
                     const GradientScale& scale = {});
  /// Gives all replicas the buffers of the model, as statistics of batch norm are each replica's own.
  void share_buffers();

 private:
  /// What a device has computed: means over its samples.
  struct Part {
    double loss = 0, count = 0;
    std::vector<std::vector<float>> gradients;  ///< empty for frozen parameters
  };
  class Running;

  std::optional<SlotScope> slots_of(std::size_t device) const;
  static WholeBatch added(const std::vector<Part>& parts, const nn::NamedParameters& parameters, const std::vector<bool>& moving,
                          double factor);

  nn::Module& model_;
  std::vector<Device> devices_;
  std::vector<double> shares_;
  std::deque<nn::ReplicaSlots> copies_;  ///< of all devices but the first
  std::vector<std::size_t> lane_of_;     ///< by device; a device that comes twice has one
  std::optional<Lanes> lanes_;
};

}  // namespace clnet::parallel
