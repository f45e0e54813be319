// The update of parameters by an optimizer's formula, as one operation, so that a step is graph like everything else and takes
// few launches.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/op.h"

namespace clnet::ops {

enum class UpdateRule : std::uint8_t { sgd, sgd_momentum, adam, rmsprop, rmsprop_momentum };

/// How many tensors of state a rule keeps per parameter.
int state_count(UpdateRule rule);

/// What does not change from step to step.
struct UpdateConstants {
  double decay = 0;  ///< weight decay that joins the gradient
  double beta2 = 0;  ///< of the mean square
  double eps = 0;
  bool nesterov = false;
};

/// What changes, as f32 scalars: leaf inputs, so that a schedule never makes a new plan. Rate and second_scale may be computed.
struct UpdateScalars {
  Tensor rate;
  Tensor shrink;        ///< the parameter is multiplied by this first: 1 - rate * decay of AdamW
  Tensor second_scale;  ///< Adam: 1 / sqrt(1 - beta2^t)
  Tensor beta1;         ///< of the momentum
  Tensor beta1_rest;    ///< 1 - beta1, of which f32 would leave few digits
  Tensor finite = {};   ///< bool: where it is false all outputs are the old values; may be undefined
};

/// A parameter with its gradient; `state` has state_count(rule) tensors of f32 and the parameter's shape.
struct UpdateTensors {
  Tensor parameter, gradient;
  Tensors state;
};

/// For each parameter in turn: its new value, then its new state.
Tensors optimizer_update(UpdateRule rule, const std::vector<UpdateTensors>& tensors, const UpdateConstants& constants,
                         const UpdateScalars& scalars);

}  // namespace clnet::ops
