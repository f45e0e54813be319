// Loss scaling for gradients in f16.
#pragma once

#include <cstdint>

namespace clnet::optim {

/// The loss is multiplied by a scale before its gradient is taken, so that small gradients do not vanish in f16, whose least
/// number is 6e-8, and gradients are divided by it. The scale follows what happens: a step with a gradient that is no finite
/// number is skipped and lowers it, many good steps in a row raise it (Micikevicius and others 2018, as torch.amp.GradScaler).
struct LossScale {
  double initial = 65536;
  double growth = 2;             ///< the scale is multiplied by this after `interval` good steps in a row
  double backoff = 0.5;          ///< and by this after a skipped step
  std::int64_t interval = 2000;  ///< 0: it never grows
};

}  // namespace clnet::optim
