// Averages of weights.
#pragma once

#include <cstdint>
#include <memory>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/nn/module.h"

namespace clnet::optim {

struct EMAOptions {
  double decay = 0.999;
  /// Limits the decay of update n (from 0) to (1 + n) / (10 + n), so that the first values are soon forgotten.
  bool warm_up = false;
};

/// Exponential moving averages of a module's parameters, in f32. Each update() sets average = decay average + (1 - decay)
/// parameter; averages begin at the present values. Buffers are not averaged: running statistics are averages already. A handle;
/// copies share the averages.
///
///   optimizer.step(loss);
///   average.update();
///   ...
///   average.swap();  // validate with the averages
///   average.swap();  // and train on
class CLNET_API EMA {
 public:
  EMA(const nn::Module& module, double decay);
  explicit EMA(const nn::Module& module, const EMAOptions& options = {});

  /// Enqueues the new averages and returns at once. Throws Error while they are swapped.
  void update();
  /// The number of updates so far.
  std::int64_t updates() const;
  /// The averages, in the parameters' dtypes, under the parameters' names.
  io::StateDict values() const;

  /// Exchanges the module's values and the averages; the next call exchanges them again. Throws Error and changes nothing where
  /// something else, as a training step, has set a parameter meanwhile.
  void swap();
  bool swapped() const;
  /// Whether all averages are of parameters of this module or a copy that shares them, under any names.
  bool made_for(const nn::Module& module) const;
  /// Copies the averages to a device; call the module's own to(device) first. Throws Error while they are swapped.
  void to(const Device& device);
  /// Sets the module's parameters to the averages permanently.
  void apply_to_module();

  /// The averages (f32) under "average.<parameter>" and the updates as "step" (i64), also while they are swapped.
  io::StateDict state_dict() const;
  /// Restores a state_dict(). Throws Error with the entries that are missing or do not fit, and while the averages are swapped;
  /// nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace clnet::optim
