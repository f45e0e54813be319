// A loss scale at work: its state lives on the device, so that no step waits to know whether it is made.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/optim/loss_scale.h"
#include "clnet/tensor.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

class Scaling {
 public:
  /// `made`: steps that were made before there was this scale, an i64 scalar. The state comes to where the `first` parameter is.
  Scaling(const LossScale& options, const Tensor& made, nn::Parameter first);

  /// f32 and i64 scalars.
  Tensor scale() const { return scale_; }
  Tensor made() const { return made_; }

  /// Gradients of the scaled loss, undefined ones among them, as those of the loss, in f32.
  std::vector<Tensor> unscaled(const std::vector<Tensor>& gradients) const;
  /// Whether all are finite numbers: a bool scalar.
  Tensor all_finite(const std::vector<Tensor>& gradients) const;
  /// A tensor of these here where `other` is, where gradients are on several devices.
  Tensor beside(const Tensor& tensor, const Tensor& other) const;

  using Changes = std::vector<std::pair<nn::Parameter, Tensor>>;
  /// What a step does to the state.
  Changes after(const Tensor& finite) const;

  void to(const Device& device);
  io::StateDict state_dict() const;
  /// What load_state_dict() is to set, and the number of steps made; faults are the reader's.
  Changes read(StateReader& reader, std::int64_t& made) const;

 private:
  LossScale options_;
  nn::Parameter scale_, good_, made_, first_;
};

}  // namespace clnet::optim
