// How train::fit() finds and sets the modes of a model's parts.
#pragma once

#include <cstddef>

#include "clnet/nn/module.h"

namespace clnet::nn {

class Modes {
 public:
  /// Whether the module and all its parts are in inference mode.
  static bool all_in_inference(const Module& module);
  /// Switches to training what has a parameter that is not frozen, and what has no parameters and lies within such a part. Parts
  /// all of whose parameters are frozen stay as they are. Returns how many layers with parameters these have.
  static std::size_t train_unfrozen(const Module& module);
};

}  // namespace clnet::nn
