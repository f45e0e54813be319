// Losses: a scalar, or unreduced with Reduction::none.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/ops/options.h"
#include "clnet/tensor.h"

namespace clnet {

struct CrossEntropyOptions {
  Tensor weight = {};  ///< per class {C}, or undefined
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;  ///< mean: divided by the summed weights of the targets that count
};
/// logits {N, C, ...}, targets i32 or i64 {N, ...}. A target that is neither ignore_index nor a class gives NaN. Targets of a
/// floating dtype are probabilities of the logits' shape; ignore_index does not apply then, and the mean divides by the rows.
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options);
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
CLNET_API Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
CLNET_API Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
CLNET_API Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                                 const Tensor& weight = {});

}  // namespace clnet
