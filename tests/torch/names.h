// What operations and layers of several files call the tensor that they take.
#pragma once

#include "tests/torch/given.h"

namespace clnet::torch {

inline const Names input{"x", "input", "a", "self"}, layer_input{"x", "input"};

}  // namespace clnet::torch
