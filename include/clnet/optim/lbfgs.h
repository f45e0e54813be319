// Optimization by curvature, for losses that are the same at every evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "clnet/export.h"
#include "clnet/io.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

struct LBFGSOptions {
  double learning_rate = 1;
  std::int64_t max_iter = 20;  ///< iterations of a step
  /// Evaluations of a step, those of line searches among them (the last of which may make one more); 0: 5 for 4 iterations, which
  /// is hardly anything for line searches where max_iter is small.
  std::int64_t max_eval = 0;
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  std::int64_t history_size = 100;
  bool strong_wolfe = false;  ///< a line search in each iteration; else a step of the learning rate
  bool maximize = false;      ///< climbs instead of going down
};

/// L-BFGS as torch.optim.LBFGS. A step evaluates the loss several times and waits for each: the vectors stay on the device,
/// decisions are the host's. Where each step has another loss, as with batches, rounding soon grows to any size without a line
/// search. Frozen parameters stay as they are. A handle; copies share it.
class CLNET_API LBFGS {
 public:
  explicit LBFGS(const Parameters& parameters, const LBFGSOptions& options = {});

  /// One step: `loss` builds the loss (one element) of the parameters' present values each time that it is called. Returns the
  /// first loss. Throws Error when the loss reaches none of the parameters; whatever is thrown, the parameters and the optimizer
  /// are as before.
  double step(const std::function<Tensor()>& loss);

  double learning_rate() const;
  void set_learning_rate(double rate);
  /// Iterations and evaluations of the loss so far.
  std::int64_t iterations() const;
  std::int64_t evaluations() const;

  /// PyTorch's names: "n_iter" and "func_evals" (i64); after a step "d", "prev_flat_grad", "old_dirs.<i>" and "old_stps.<i>" (f32
  /// vectors of all parameters), "t", "H_diag", "prev_loss" and "ro.<i>" (three of f32 whose sum is the number). For checkpoints.
  io::StateDict state_dict() const;
  /// Throws Error naming what is missing or does not fit; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace clnet::optim
