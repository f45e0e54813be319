// ctc_loss as graph.
#pragma once

#include <cstdint>

#include "clnet/tensor.h"

namespace clnet::ops {

/// What ctc_loss reads, and its losses.
struct CtcInputs {
  Tensor log_probs, targets;             ///< {T, N, C}, {N, S}
  Tensor input_lengths, target_lengths;  ///< {N}
  Tensor losses;                         ///< {N}
  std::int64_t blank = 0;
};

/// The losses {N} operation by operation: of any order of derivatives. T is 1 or more. Those that are infinite or NaN are taken
/// from `losses`, and have no gradient.
Tensor ctc_composed(const CtcInputs& in);

}  // namespace clnet::ops
