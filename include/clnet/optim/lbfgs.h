// Optimization with curvature, for losses that are the same at every evaluation.
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
  std::int64_t max_iter = 20;  ///< iterations per step
  /// Evaluations per step, including line searches (the last one may make one more). 0: 5 per 4 iterations, too few for line
  /// searches with a small max_iter.
  std::int64_t max_eval = 0;
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  std::int64_t history_size = 100;
  bool strong_wolfe = false;  ///< a line search in each iteration; otherwise a step of the learning rate
  bool maximize = false;      ///< maximizes the loss
};

/// L-BFGS (Liu and Nocedal 1989), as torch.optim.LBFGS. A step evaluates the loss several times and waits for each. Vectors stay
/// on the device; the host makes the decisions. With another loss per step, as with batches, rounding errors soon grow without
/// bound unless a line search is on. Frozen parameters keep their values. A handle; copies share it.
class CLNET_API LBFGS {
 public:
  explicit LBFGS(const Parameters& parameters, const LBFGSOptions& options = {});

  /// One step. Each call of `loss` builds the loss (one element) of the present parameters. Returns the first loss. Throws Error
  /// where the loss reaches none of the parameters. After any exception parameters and optimizer are as before.
  double step(const std::function<Tensor()>& loss);

  double learning_rate() const;
  void set_learning_rate(double rate);
  /// Iterations and evaluations of the loss so far.
  std::int64_t iterations() const;
  std::int64_t evaluations() const;

  /// The state for checkpoints, with PyTorch's names: "n_iter" and "func_evals" (i64). After a step there are also "d",
  /// "prev_flat_grad", "old_dirs.<i>" and "old_stps.<i>", f32 vectors of all parameters. "t", "H_diag", "prev_loss" and "ro.<i>"
  /// are three f32 whose sum is the number.
  io::StateDict state_dict() const;
  /// Restores a state_dict(). Throws Error with the entries that are missing or do not fit; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace clnet::optim
