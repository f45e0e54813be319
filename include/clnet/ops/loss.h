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
/// logits {N, C, ...}, targets i32 or i64 {N, ...}. A target that is neither ignore_index nor a class is an Error that names it
/// and its sample where the host knows the targets: those of Tensor::from() and data::batches(), of up to 1 MiB once they are on
/// a device, and casts and slices of these. Elsewhere, and as an argument of what compile() made, it gives NaN. Targets of a
/// floating dtype are probabilities of the logits' shape; ignore_index does not apply then, and the mean divides by the rows.
/// Logits {C} are one sample, with a target {} or {C}.
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options);
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
/// The same for logarithms of probabilities instead of logits: the sum of -weight[t] x[t].
struct NllLossOptions {
  Tensor weight = {};  ///< per class {C}, or undefined
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;  ///< mean: divided by the summed weights of the targets that count
};
CLNET_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const NllLossOptions& options);
CLNET_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets);

// ---- Of an input and a target of one floating dtype, by element. Shapes broadcast, as in PyTorch, and the mean is over the
// common one; of binary_cross_entropy(), binary_cross_entropy_with_logits() and sigmoid_focal_loss() they are one. mse_loss() to
// huber_loss() warn once where shapes differ.

CLNET_API Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
CLNET_API Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// d = |input - target|: d^2 / (2 beta) below beta, else d - beta / 2. `beta` 0: l1_loss.
CLNET_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                double beta = 1);
/// d^2 / 2 below delta, else delta (d - delta / 2). `delta` is positive.
CLNET_API Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean, double delta = 1);
/// -(t log x + (1 - t) log(1 - x)), each logarithm at least -100. One shape; `weight` broadcasts to the input.
CLNET_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                      const Tensor& weight = {});
/// `weight` scales each loss and `pos_weight` the part of it that is due to the target, -t log sigmoid(x); both broadcast to the
/// logits, whose shape the target has.
CLNET_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                                  Reduction reduction = Reduction::mean, const Tensor& weight = {},
                                                  const Tensor& pos_weight = {});
/// torchvision's sigmoid_focal_loss: binary_cross_entropy_with_logits times (1 - p)^gamma, p the probability of the target's
/// side, times alpha (1 - alpha where the target is 0) unless alpha is negative.
CLNET_API Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                                    double alpha = 0.25, double gamma = 2);
struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool batch_mean = false;  ///< the sum divided by the first extent: the divergence itself; `reduction` does not matter then
  bool log_target = false;  ///< the target, too, is given as logarithms
};
/// target (log target - input), the input being logarithms of probabilities; 0 where the target is 0.
CLNET_API Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options);
CLNET_API Tensor kl_div(const Tensor& input, const Tensor& target);
struct PoissonNllOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log target! for targets above 1
  double eps = 1e-8;      ///< added to the rate inside its logarithm
  Reduction reduction = Reduction::mean;
};
CLNET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options);
CLNET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target);
struct GaussianNllOptions {
  bool full = false;  ///< adds log(2 pi) / 2
  double eps = 1e-6;  ///< the least variance; the gradient does not see the bound
  Reduction reduction = Reduction::mean;
};
/// (log var + (input - target)^2 / var) / 2. `var` has the input's shape, or with a last extent of 1, or without it.
CLNET_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNllOptions& options);
CLNET_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var);
struct CtcOptions {
  std::int64_t blank = 0;
  Reduction reduction = Reduction::mean;  ///< mean: of the losses divided by their targets' lengths (at least 1)
  bool zero_infinity = false;             ///< a target that does not fit into its input costs nothing, instead of infinity
};
/// Connectionist temporal classification (Graves et al., ICML 2006): -log of the summed probabilities of all alignments.
/// `log_probs` {T, N, C}, floating; `targets` {N, S}, i32 or i64, without blanks; how much of each counts: `input_lengths` and
/// `target_lengths` {N}, i32 or i64. Targets of all sequences one after the other are {sum of target_lengths}: lengths from the
/// host keep the memory small, and are checked against their number; else each sequence gets room for all. One sequence is {T, C}
/// with targets {S} and lengths {} or {1}. Lengths that do not fit and targets that are no class give NaN.
///
/// The gradient of an infinite loss is 0, with zero_infinity and without. (In PyTorch it is NaN without.) Gradients of the
/// gradient are made of other operations: as many nodes as there are steps.
CLNET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, const CtcOptions& options);
CLNET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths);

// ---- Of several inputs, with targets of 1 or -1

/// log(1 + exp(-target input)). The target broadcasts to the input.
CLNET_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// Of logits and targets {..., C} from 0 to 1: the mean over the classes of binary_cross_entropy_with_logits(). `weight` {C} or
/// undefined. Shapes broadcast; the logits' tell the classes.
CLNET_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                             const Tensor& weight = {});

struct MultiMarginOptions {
  int p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< per class {C}, or undefined
  Reduction reduction = Reduction::mean;
};
/// Scores {N, C} or {C} and classes i32 or i64 {N} or {}: the sum over all other classes i of max(0, margin - x[y] + x[i])^p,
/// times weight[y], divided by C. A target that is no class is an Error or NaN, as of cross_entropy().
CLNET_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& options);
CLNET_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target);
/// Scores {N, C} or {C}, and of their shape the classes of each, i32 or i64, in front; a negative one ends them. The sum over
/// these classes y and all others i of max(0, 1 - x[y] + x[i]), divided by C. A target above the classes gives NaN. As in PyTorch
/// C * C elements are computed for each row.
CLNET_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

/// input where the target is 1, max(0, margin - input) where it is -1.
CLNET_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                                      Reduction reduction = Reduction::mean);
/// max(0, margin - target (a - b)): a shall be the larger where the target is 1. Dimensions of 1 broadcast.
CLNET_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                                     Reduction reduction = Reduction::mean);
/// a, b {N, D} and target {N}: 1 - cos(a, b) where the target is 1, max(0, cos - margin) where it is -1. Also {D} and {}.
/// Dimensions of 1 broadcast.
CLNET_API Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                                       Reduction reduction = Reduction::mean);
struct TripletMarginOptions {
  double margin = 1;
  double p = 2;       ///< of the norm |x|_p, at least 1
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< the negative's distance is the smaller of those from anchor and positive
  Reduction reduction = Reduction::mean;
};
/// max(0, |anchor - positive| - |anchor - negative| + margin), norms over the last dimension. Dimensions of 1
/// broadcast.
CLNET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     const TripletMarginOptions& options);
CLNET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

}  // namespace clnet
