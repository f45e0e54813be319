// Finding how far to go in a direction.
#pragma once

#include <cstdint>
#include <functional>

#include "clnet/tensor.h"

namespace clnet::optim {

/// A point on the way.
struct Reached {
  double distance = 0;  ///< in lengths of the direction
  double loss = 0;
  double slope = 0;  ///< along the direction
  Tensor gradient;
};

struct LineSearch {
  double sufficient = 1e-4, flatter = 0.9;  ///< Wolfe's c1 and c2
  double tolerance = 1e-9;                  ///< an interval that moves no element further ends the search
  std::int64_t most = 25;                   ///< evaluations beyond the first
};

/// A distance that meets the strong Wolfe conditions: the loss falls by `sufficient` of what the slope at the start promises, and
/// the slope there is `flatter` (Nocedal and Wright 2006, algorithms 3.5 and 3.6, with the bounds of torch.optim.LBFGS); the best
/// one seen where there is none within `most` evaluations. A loss that is no number is too high. `largest` is the direction's
/// largest element.
Reached strong_wolfe(const std::function<Reached(double distance)>& go, const Reached& start, double distance, double largest,
                     const LineSearch& options);

}  // namespace clnet::optim
