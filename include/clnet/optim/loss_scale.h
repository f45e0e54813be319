// Loss scaling for gradients in f16.
#pragma once

#include <cstdint>

namespace clnet::optim {

/// Loss scaling (Micikevicius and others 2018, as torch.amp.GradScaler). The loss is multiplied by a scale before
/// differentiation, and gradients are divided by it. So small gradients do not vanish in f16, whose smallest number is 6e-8. A
/// step with a gradient that is not finite is skipped and lowers the scale; many good steps in a row raise it.
struct LossScale {
  double initial = 65536;
  double growth = 2;             ///< factor after `interval` good steps in a row
  double backoff = 0.5;          ///< factor after a skipped step
  std::int64_t interval = 2000;  ///< 0: the scale never grows
};

}  // namespace clnet::optim
