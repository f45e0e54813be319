// A range test for the learning rate.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/optim/optimizer.h"

namespace clnet::optim {

/// Options of find_learning_rate().
struct FindRateOptions {
  double first = 1e-7, last = 10;  ///< the first and last rate; the others lie between in equal ratios
  std::int64_t steps = 100;
  double smoothing = 0.05;  ///< weight of a new loss in the average; 1: no average
  double divergence = 4;    ///< stops when the average exceeds this multiple of the best one; 0: never
};
/// The result of find_learning_rate().
struct RateCurve {
  std::vector<double> rates, losses;  ///< up to the stop; the losses are averages without bias
  double suggestion = 0;              ///< the rate where the losses fall most steeply over its logarithm; 0: none
};

/// The range test of Smith 2017: makes steps at growing rates. `loss` builds the loss of a new batch for each. Afterwards, also
/// after an exception, everything is restored: the module's parameters and buffers, the optimizer's parameters, state and rates,
/// and the random generator. Throws Error for options out of range.
CLNET_API RateCurve find_learning_rate(nn::Module& module, Optimizer& optimizer, const std::function<Tensor()>& loss,
                                       const FindRateOptions& options = {});

}  // namespace clnet::optim
