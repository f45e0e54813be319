// A search for a learning rate.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

struct FindRateOptions {
  double first = 1e-7, last = 10;  ///< rates, in equal ratios from one to the other
  std::int64_t steps = 100;
  double smoothing = 0.05;  ///< share of a new loss in the average that is judged; 1: no average
  double divergence = 4;    ///< ends when the average is so many times the best one; 0: never
};
struct RateCurve {
  std::vector<double> rates, losses;  ///< as far as it went; the losses are averages without bias
  double suggestion = 0;              ///< where the losses fall most steeply by the rate's logarithm; 0: nowhere
};

/// Smith 2017's range test: steps at rates that grow, each down `loss()`, which builds the loss of a new batch. Afterwards the
/// module's parameters and buffers, all that the optimizer moves, its state, its rates and the random generator are as they were,
/// also when something throws. Throws Error for options without sense.
CLNET_API RateCurve find_learning_rate(nn::Module& module, Optimizer& optimizer, const std::function<Tensor()>& loss,
                                       const FindRateOptions& options = {});

}  // namespace clnet::optim
