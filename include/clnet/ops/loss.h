// Losses: a scalar, or one value per element (or sample) with Reduction::none. They throw ShapeError, DtypeError or Error for
// arguments that do not fit.
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
/// Cross-entropy of logits {N, C, ...} and targets {N, ...}, i32 or i64; or of one sample {C} with a target {} or {C}. Targets of
/// a floating dtype are probabilities of the logits' shape; ignore_index does not apply then, and the mean divides by the rows.
///
/// A target that is neither ignore_index nor a class throws Error, with its value and sample, where the host knows the targets.
/// These are targets of Tensor::from() and data::batches(), up to 1 MiB once on a device, and their casts and slices. Elsewhere,
/// and in arguments of compiled functions, it gives NaN. Throws Error for a label_smoothing outside of 0..1.
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options);
CLNET_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
/// The same for log-probabilities instead of logits: the sum of -weight[t] x[t].
struct NllLossOptions {
  Tensor weight = {};  ///< per class {C}, or undefined
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;  ///< mean: divided by the summed weights of the targets that count
};
CLNET_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const NllLossOptions& options);
CLNET_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets);

// ---- Elementwise losses of an input and a target of one floating dtype. Shapes broadcast, as in PyTorch, and the mean is over
// the common shape. binary_cross_entropy(), binary_cross_entropy_with_logits() and sigmoid_focal_loss() need equal shapes.
// mse_loss() to huber_loss() warn once where shapes differ.

/// (input - target)^2, and |input - target|.
CLNET_API Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
CLNET_API Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// With d = |input - target|: d^2 / (2 beta) below beta, else d - beta / 2 (Girshick 2015). `beta` 0 is l1_loss; Error for a
/// negative one.
CLNET_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                double beta = 1);
/// With d = |input - target|: d^2 / 2 below delta, else delta (d - delta / 2). Throws Error unless `delta` is positive.
CLNET_API Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean, double delta = 1);
/// -(t log x + (1 - t) log(1 - x)), each logarithm at least -100. `weight` broadcasts to the input.
CLNET_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                      const Tensor& weight = {});
/// binary_cross_entropy() of sigmoid(logits). `weight` scales each loss, `pos_weight` the target's part, -t log sigmoid(x). Both
/// broadcast to the logits.
CLNET_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                                  Reduction reduction = Reduction::mean, const Tensor& weight = {},
                                                  const Tensor& pos_weight = {});
/// torchvision's sigmoid_focal_loss (Lin et al. 2017): binary_cross_entropy_with_logits times (1 - p)^gamma, where p is the
/// probability of the target's side. A factor alpha (1 - alpha where the target is 0) follows, unless alpha is negative.
CLNET_API Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                                    double alpha = 0.25, double gamma = 2);
struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool batch_mean = false;  ///< the sum divided by the first extent, in place of `reduction`: the divergence itself
  bool log_target = false;  ///< the target is a log-probability, too
};
/// target (log target - input) for log-probabilities `input`; 0 where the target is 0.
CLNET_API Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options);
CLNET_API Tensor kl_div(const Tensor& input, const Tensor& target);
struct PoissonNllOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log target! for targets above 1
  double eps = 1e-8;      ///< added to the rate inside its logarithm
  Reduction reduction = Reduction::mean;
};
/// exp(input) - target input, or input - target log(input + eps) without log_input.
CLNET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options);
CLNET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target);
struct GaussianNllOptions {
  bool full = false;  ///< adds log(2 pi) / 2
  double eps = 1e-6;  ///< lower bound of the variance; the gradient ignores it
  Reduction reduction = Reduction::mean;
};
/// (log var + (input - target)^2 / var) / 2. `var` has the input's shape, possibly with a last extent of 1 or without the last
/// dimension. Throws Error unless eps is positive.
CLNET_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNllOptions& options);
CLNET_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var);
struct CtcOptions {
  std::int64_t blank = 0;
  Reduction reduction = Reduction::mean;  ///< mean of the losses, each divided by its target's length (at least 1)
  bool zero_infinity = false;             ///< a target that does not fit into its input has loss 0 instead of infinity
};
/// Connectionist temporal classification (Graves et al., ICML 2006): -log of the summed probabilities of all alignments.
/// `log_probs` {T, N, C}, floating; `targets` {N, S}, i32 or i64, without blanks; `input_lengths` and `target_lengths` {N}, i32
/// or i64. One sequence is {T, C} with targets {S} and lengths {} or {1}.
///
/// Targets may also be {sum of target_lengths}, one sequence after the other. With lengths from the host this saves memory, and
/// their sum is checked (ShapeError); otherwise each sequence gets room for all targets. Lengths that do not fit and targets that
/// are no class give NaN. Throws Error for a blank that is no class.
///
/// The gradient of an infinite loss is 0, with zero_infinity and without. (In PyTorch it is NaN without.) Second derivatives use
/// other operations, with as many nodes as steps.
CLNET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, const CtcOptions& options);
CLNET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths);

// ---- Margin losses, mostly with targets of 1 or -1

/// log(1 + exp(-target input)). The target broadcasts to the input.
CLNET_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// The mean over the classes of binary_cross_entropy_with_logits(), for logits and targets {..., C} from 0 to 1. `weight` {C} or
/// undefined. Shapes broadcast; the logits' last extent is C.
CLNET_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                                             const Tensor& weight = {});

struct MultiMarginOptions {
  int p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< per class {C}, or undefined
  Reduction reduction = Reduction::mean;
};
/// For scores {N, C} or {C} and classes i32 or i64 {N} or {}: the sum over all other classes i of max(0, margin - x[y] + x[i])^p,
/// times weight[y], divided by C. A target that is no class is an Error or NaN, as in cross_entropy(). Throws Error unless p is 1
/// or 2.
CLNET_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& options);
CLNET_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target);
/// For scores {N, C} or {C} and targets of the same shape, i32 or i64: each sample's classes come first, and a negative number
/// ends them. The sum over these classes y and all others i of max(0, 1 - x[y] + x[i]), divided by C. A target of C or more gives
/// NaN. C * C elements are computed per row, as in PyTorch.
CLNET_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

/// input where the target is 1, max(0, margin - input) where it is -1.
CLNET_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                                      Reduction reduction = Reduction::mean);
/// max(0, margin - target (a - b)): the target is 1 where a should be larger, else -1. Dimensions of 1 broadcast.
CLNET_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                                     Reduction reduction = Reduction::mean);
/// For a, b {N, D} and target {N}, or {D} and {}: 1 - cos(a, b) where the target is 1, max(0, cos - margin) where it is -1.
/// Dimensions of 1 broadcast.
CLNET_API Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                                       Reduction reduction = Reduction::mean);
struct TripletMarginOptions {
  double margin = 1;
  double p = 2;       ///< exponent of the norm |x|_p, at least 1
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< uses the smaller of the negative's distances from anchor and positive
  Reduction reduction = Reduction::mean;
};
/// max(0, |anchor - positive| - |anchor - negative| + margin), with norms over the last dimension. Dimensions of 1 broadcast.
/// Throws Error for p below 1.
CLNET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     const TripletMarginOptions& options);
CLNET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

}  // namespace clnet
