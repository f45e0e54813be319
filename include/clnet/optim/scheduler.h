// A schedule with its position, for loops of one's own.
#pragma once

#include <cstdint>
#include <memory>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/optim/optimizer.h"
#include "clnet/optim/schedule.h"

namespace clnet::optim {

/// Sets an optimizer's rate, and momentum where given, step by step, as the schedulers of torch.optim. A handle; copies share the
/// position.
///   optim::Scheduler scheduler(adam, optim::cosine(1e-3, total));
///   adam.step(loss);
///   scheduler.step();
class CLNET_API Scheduler {
 public:
  /// Sets the rate of step 0. Throws Error without a schedule of the rate.
  Scheduler(const Optimizer& optimizer, Schedule rate, Schedule momentum = nullptr);
  /// Sets the rate of the next step. Throws Error inside compile(), where later calls would not run it.
  void step();
  /// The number of calls of step() so far.
  std::int64_t steps() const;

  /// "step" (i64), and the present "rate" and "momentum".
  io::StateDict state_dict() const;
  /// Goes on from there. Throws Error with the entries that do not fit, also where the schedules give another rate or momentum at
  /// that step; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace clnet::optim
