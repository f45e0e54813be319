// A loss scale at work: its state lives on the device, so that no step waits to know whether it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/optim/loss_scale.h"
#include "clnet/tensor.h"
#include "lib/exec/collect/copy.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

class Scaling {
 public:
  /// `made`: steps that were made before there was this scale, an i64 scalar.
  Scaling(const LossScale& options, const Tensor& made);

  /// f32 and i64 scalars.
  Tensor scale() const { return scale_; }
  Tensor made() const { return made_; }

  /// Gradients of the scaled loss, undefined ones among them, as those of the loss, in f32.
  std::vector<Tensor> unscaled(const std::vector<Tensor>& gradients) const;
  using Devices = std::vector<std::shared_ptr<ocl::Context>>;
  /// Whether all are finite numbers: a bool scalar. The gradients are on `devices`.
  Tensor all_finite(const std::vector<Tensor>& gradients, const Devices& devices) const;
  /// To be called before anything is made of it: its state comes to `device` unless it is on one, or has been told.
  void settle(const std::shared_ptr<ocl::Context>& device);
  /// Where its state is or comes to, for a step that fails: set_home() undoes settle(). Null: not known.
  const std::shared_ptr<ocl::Context>& home() const { return home_; }
  void set_home(std::shared_ptr<ocl::Context> home) { home_ = std::move(home); }
  /// Knows where the scale will be.
  exec::DeviceFinder finder() const { return {scale(), home_}; }
  /// A tensor made of it as it is on a device.
  Tensor moved(const Tensor& tensor, const std::shared_ptr<ocl::Context>& device) const;

  using Changes = std::vector<std::pair<nn::Parameter, Tensor>>;
  /// What a step does to the state.
  Changes after(const Tensor& finite) const;

  /// All of its state.
  std::vector<nn::Parameter> parts() const { return {scale_, good_, made_}; }
  io::StateDict state_dict() const;
  /// What load_state_dict() is to set, and the number of steps made; faults are the reader's.
  Changes read(StateReader& reader, std::int64_t& made) const;

 private:
  LossScale options_;
  nn::Parameter scale_, good_, made_;
  std::shared_ptr<ocl::Context> home_;  ///< where these are, or come to; null: not known
};

}  // namespace clnet::optim
