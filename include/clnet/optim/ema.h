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
  /// The decay of update n (from 0) is at most (1 + n) / (10 + n), so that the first values are soon forgotten.
  bool warm_up = false;
};

/// Exponential moving averages of a module's parameters: average = decay average + (1 - decay) parameter with each update(), in
/// f32. They begin at the present values. Buffers are not averaged: running statistics are averages already. A handle; copies
/// share the averages.
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

  /// Enqueues the new averages, without waiting. Throws Error while they are swapped.
  void update();
  /// Updates made so far.
  std::int64_t updates() const;
  /// The averages, of the parameters' dtypes, under their names.
  io::StateDict values() const;

  /// Exchanges the module's values and the averages; the next call exchanges them again. Throws Error, and changes nothing, where
  /// something else has set a parameter meanwhile, a step of training, say.
  void swap();
  bool swapped() const;
  /// Copies the averages to a device: after the module's own to(device). Throws Error while they are swapped.
  void to(const Device& device);
  /// Sets the module's parameters to the averages for good.
  void apply_to_module();

  /// The averages (f32) under "average.<parameter>" and the updates as "step" (i64), also while they are swapped.
  io::StateDict state_dict() const;
  /// Throws Error naming what is missing or does not fit, and while they are swapped; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace clnet::optim
