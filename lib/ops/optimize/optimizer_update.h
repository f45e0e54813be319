// The update of parameters by an optimizer's formula, as one operation: a step is graph like everything else and takes few
// launches.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/tensor.h"
#include "lib/graph/op.h"

namespace clnet::ops {

enum class UpdateRule : std::uint8_t { sgd, sgd_momentum, adam, rmsprop, rmsprop_momentum };

/// The number of state tensors of a rule per parameter.
int state_count(UpdateRule rule);

/// The constants of a rule.
struct UpdateConstants {
  double decay = 0;  ///< weight decay, added to the gradient
  double beta2 = 0;  ///< decay of the mean square
  double eps = 0;
  bool nesterov = false;
};

/// The f32 scalars that change from step to step: leaf inputs, so that a schedule never compiles a new plan. Rate and
/// second_scale may be computed.
struct UpdateScalars {
  Tensor rate;
  Tensor shrink;        ///< factor of the parameter before the step: 1 - rate * decay of AdamW
  Tensor second_scale;  ///< Adam: 1 / sqrt(1 - beta2^t)
  Tensor beta1;         ///< decay of the momentum
  Tensor beta1_rest;    ///< 1 - beta1, of which f32 would leave few digits
  Tensor finite = {};   ///< bool: false keeps all old values; may be undefined
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
