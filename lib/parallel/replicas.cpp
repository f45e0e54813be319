#include <utility>

#include "clnet/error.h"
#include "clnet/parallel.h"
#include "lib/graph/random_stream.h"
#include "lib/parallel/replica_group.h"

namespace clnet::parallel {

struct Replicas::Impl {
  nn::Module& model;
  ReplicaGroup group;
};

Replicas::Replicas(nn::Module& model, std::vector<Device> devices, const ReplicasOptions& options)
    : impl_(new Impl{model, {model, std::move(devices), options.shares, options.sync_batch_norm}}) {}

Replicas::~Replicas() = default;

const std::vector<Device>& Replicas::devices() const { return impl_->group.devices(); }
data::Share Replicas::share(std::size_t device) const { return impl_->group.share(device); }

Replicas::Parts Replicas::batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
  return impl_->group.batches(dataset, options);
}

bool Replicas::Parts::next() {
  now_.clear();
  const bool begins = at_.empty();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceScope here(devices_[i]);
    on_behalf_of(i, [&] {
      if (begins)
        at_.push_back(batches_[i].begin());
      else if (at_[i] != batches_[i].end())
        ++at_[i];
    });
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (at_[i] == batches_[i].end()) {
      now_.clear();
      return false;
    }
    now_.push_back(*at_[i]);
  }
  return true;
}

double Replicas::step(optim::Optimizer& optimizer, const std::vector<data::Batch>& parts, const train::StepFunction& function) {
  if (!function) throw Error("Replicas: step() without a step function");
  if (!optimizer.made_for(impl_->model)) throw Error("Replicas: the optimizer is not the model's");
  if (optimizer.loss_scale().defined()) throw Error("Replicas: an optimizer with a loss scale steps on one device only");
  auto whole = impl_->group.compute(
      optimizer.parameters(), parts,
      [&](std::size_t, nn::Module& model, const data::Batch& batch) -> PartStep { return {function(model, batch)}; });
  const DeviceScope first(devices()[0]);
  optimizer.apply(whole.gradients);
  set_random_position(whole.random);
  return whole.loss;
}

}  // namespace clnet::parallel
