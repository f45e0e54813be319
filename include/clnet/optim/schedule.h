// Learning rates and momenta as functions of the step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clnet/export.h"
#include "clnet/io.h"

namespace clnet::optim {

/// The learning rate or momentum of a step, counted from 0; or of an epoch, where the caller counts epochs.
using Schedule = std::function<double(std::int64_t step)>;

// PyTorch's torch.optim.lr_scheduler in closed form. All throw Error for options out of range.

/// The same rate at every step.
CLNET_API Schedule constant(double rate);
/// rate * factor(step) (LambdaLR).
CLNET_API Schedule scaled(double rate, std::function<double(std::int64_t step)> factor);
/// Multiplied by gamma every `every` steps (StepLR).
CLNET_API Schedule step_decay(double rate, std::int64_t every, double gamma = 0.1);
/// Multiplied by gamma at each milestone; milestones may have any order, and duplicates count twice (MultiStepLR).
CLNET_API Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double gamma = 0.1);
/// rate * gamma^step (ExponentialLR).
CLNET_API Schedule exponential(double rate, double gamma);
/// rate * (1 - step / total)^power, then 0 (PolynomialLR).
CLNET_API Schedule polynomial(double rate, std::int64_t total, double power = 1);
/// From rate * first to rate * last over `total` steps in equal parts (LinearLR).
CLNET_API Schedule linear(double rate, std::int64_t total, double first = 1.0 / 3, double last = 1);
/// rate * factor for `total` steps, then `rate` (ConstantLR).
CLNET_API Schedule constant_factor(double rate, std::int64_t total, double factor = 1.0 / 3);
/// Half a cosine from `rate` to `final_rate` over `total` steps, then final_rate (CosineAnnealingLR would rise again).
CLNET_API Schedule cosine(double rate, std::int64_t total, double final_rate = 0);
/// Repeated cosines: the first takes `first` steps, each later one `factor` times as many as the one before
/// (CosineAnnealingWarmRestarts; Loshchilov and Hutter 2016).
CLNET_API Schedule cosine_restarts(double rate, std::int64_t first, std::int64_t factor = 1, double final_rate = 0);

struct OneCycleOptions {
  double warmup_share = 0.3;                         ///< share of the steps in which the rate rises from max / div to max
  double div = 25, final_div = 1e4;                  ///< the end is max / div / final_div
  bool linear = false;                               ///< linear instead of half a cosine
  bool three_phase = false;                          ///< falls to max / div in as many steps as it rises, then to the end
  double base_momentum = 0.85, max_momentum = 0.95;  ///< of one_cycle_momentum()
};
/// Smith and Topin 2018, as PyTorch's OneCycleLR: the learning rate.
CLNET_API Schedule one_cycle(double max_rate, std::int64_t total, const OneCycleOptions& options = {});
/// The momentum of one_cycle() (cycle_momentum), for Optimizer::set_momentum() or FitOptions::momentum: from max_momentum to
/// base_momentum while the rate rises, and back while it falls.
CLNET_API Schedule one_cycle_momentum(std::int64_t total, const OneCycleOptions& options = {});

enum class Cycle : std::uint8_t {
  triangular,   ///< constant height
  triangular2,  ///< each half as high as the one before
  exp_range     ///< height times gamma^step
};
struct CyclicOptions {
  std::int64_t up = 2000, down = 0;  ///< steps of a cycle; down 0: as many as up
  Cycle mode = Cycle::triangular;
  double gamma = 1;                                ///< for exp_range
  double base_momentum = 0.8, max_momentum = 0.9;  ///< of cyclic_momentum()
};
/// From base to max and back (CyclicLR; Smith 2017).
CLNET_API Schedule cyclic(double base_rate, double max_rate, const CyclicOptions& options = {});
/// The momentum of cyclic() (cycle_momentum): from max_momentum to base_momentum while the rate rises, and back while it falls.
CLNET_API Schedule cyclic_momentum(const CyclicOptions& options = {});

/// Rises linearly over the first `steps` steps to the value of `after` at their end, then equals `after`, counted from the same
/// 0.
CLNET_API Schedule warm_up(std::int64_t steps, Schedule after);
/// Schedules in a row: schedules[i + 1] begins at step milestones[i] and counts from its own 0 (SequentialLR).
CLNET_API Schedule sequential(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones);
/// The product of all schedules: one of rates, the others of factors, made with the rate 1 (ChainedScheduler).
CLNET_API Schedule product(std::vector<Schedule> schedules);

struct PlateauOptions {
  bool maximize = false;       ///< a larger metric is better
  double factor = 0.1;         ///< factor of a reduction, below 1
  std::int64_t patience = 10;  ///< number of metrics without improvement before a reduction
  double threshold = 1e-4;     ///< the least improvement that counts
  bool relative = true;        ///< the threshold is a share of the best metric
  std::int64_t cooldown = 0;   ///< number of metrics ignored after a reduction
  double min_rate = 0;
  double eps = 1e-8;  ///< the least change of the rate
};
/// A rate that falls when a metric stops improving (ReduceLROnPlateau). The constructor throws Error for options out of range.
class CLNET_API Plateau {
 public:
  explicit Plateau(double rate, const PlateauOptions& options = {});
  /// Takes one more metric and returns the rate. NaN is never an improvement.
  double step(double metric);
  double rate() const { return rate_; }

  /// "rate", "best" (the number is the sum of three f32), "bad" and "cooldown" (i64).
  io::StateDict state_dict() const;
  /// Restores a state_dict(). Throws Error with the entries that do not fit; nothing is changed then.
  void load_state_dict(const io::StateDict& state);

 private:
  PlateauOptions options_;
  double rate_, best_;
  std::int64_t bad_ = 0, cooling_ = 0;
};

}  // namespace clnet::optim
