// Operations on tensors. Every function builds graph and returns at once; shapes and dtypes are checked at the call (ShapeError,
// DtypeError). Names, options and formulas are PyTorch's unless a comment says otherwise; image tensors are NCHW. Gradients are
// defined for every operation with floating inputs and outputs, except where a comment says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

// ---- Options shared by several operations

/// A pair {height, width}; one number stands for both.
struct Pair {
  std::int64_t height = 1, width = 1;
  constexpr Pair(std::int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Pair(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  bool operator==(const Pair&) const = default;
};

/// Padding of images: one number for all sides, {vertical, horizontal}, or {top, left, bottom, right}.
struct Padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  constexpr Padding(std::int64_t all = 0) : Padding(all, all) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding(std::int64_t vertical, std::int64_t horizontal) : Padding(vertical, horizontal, vertical, horizontal) {}
  constexpr Padding(std::int64_t t, std::int64_t l, std::int64_t b, std::int64_t r) : top(t), left(l), bottom(b), right(r) {}
  bool operator==(const Padding&) const = default;
};

enum class Reduction : std::uint8_t { none, mean, sum };

// ---- Making tensors

CLNET_API Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32);
CLNET_API Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor ones(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor zeros_like(const Tensor& x);
CLNET_API Tensor ones_like(const Tensor& x);
/// start, start + step, ...: `count` values.
CLNET_API Tensor arange(std::int64_t count, double start = 0, double step = 1, Dtype dtype = Dtype::i64);
/// Seeds the process's generator, from which rand(), randn(), dropout() and initialisers take their random offsets.
CLNET_API void manual_seed(std::uint64_t seed);
/// The generator's seed and next offset: what a checkpoint keeps.
struct RandomState {
  std::uint64_t seed = 0, offset = 0;
};
CLNET_API RandomState random_state();
CLNET_API void set_random_state(const RandomState& state);
/// Uniform in [0, 1), and standard normal, by Philox4x32-10 on the device: same seed and device, same bits.
CLNET_API Tensor rand(const Shape& shape, Dtype dtype = Dtype::f32);
CLNET_API Tensor randn(const Shape& shape, Dtype dtype = Dtype::f32);

// ---- Elementwise, with NumPy's broadcasting

// Both operands have the same dtype. A number beside a tensor is weak: with a floating tensor it takes part as f32, and the
// result has the tensor's dtype; an integer tensor keeps its dtype beside a whole number that the dtype holds (bool becomes i64)
// and becomes f32 beside any other. Comparisons of integers with numbers are exact. docs/dtypes.md has all dtypes and errors.

CLNET_API Tensor cast(const Tensor& x, Dtype dtype);

#define CLNET_BINARY(name)                                 \
  CLNET_API Tensor name(const Tensor& a, const Tensor& b); \
  CLNET_API Tensor name(const Tensor& a, double b);        \
  CLNET_API Tensor name(double a, const Tensor& b);
CLNET_BINARY(operator+)
CLNET_BINARY(operator-)
CLNET_BINARY(operator*)
/// For integers C's division, towards zero.
CLNET_BINARY(operator/)
/// Of floating values; x^y. The gradient of the exponent is defined for positive bases.
CLNET_BINARY(pow)
/// Ties share the gradient equally.
CLNET_BINARY(maximum)
CLNET_BINARY(minimum)
// Comparisons give bool.
CLNET_BINARY(equal)
CLNET_BINARY(not_equal)
CLNET_BINARY(less)
CLNET_BINARY(less_equal)
CLNET_BINARY(greater)
CLNET_BINARY(greater_equal)
#undef CLNET_BINARY
/// Of bool tensors.
CLNET_API Tensor logical_and(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_or(const Tensor& a, const Tensor& b);
CLNET_API Tensor logical_not(const Tensor& x);
/// `condition` (bool) chooses between a and b, all three broadcast.
CLNET_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

CLNET_API Tensor operator-(const Tensor& x);
CLNET_API Tensor abs(const Tensor& x);
CLNET_API Tensor sign(const Tensor& x);
CLNET_API Tensor exp(const Tensor& x);
CLNET_API Tensor log(const Tensor& x);
CLNET_API Tensor log1p(const Tensor& x);
CLNET_API Tensor sqrt(const Tensor& x);
CLNET_API Tensor rsqrt(const Tensor& x);
CLNET_API Tensor square(const Tensor& x);
CLNET_API Tensor reciprocal(const Tensor& x);
CLNET_API Tensor sin(const Tensor& x);
CLNET_API Tensor cos(const Tensor& x);
CLNET_API Tensor erf(const Tensor& x);
CLNET_API Tensor floor(const Tensor& x);
CLNET_API Tensor ceil(const Tensor& x);
CLNET_API Tensor round(const Tensor& x);  ///< halves to even
CLNET_API Tensor tanh(const Tensor& x);
CLNET_API Tensor sigmoid(const Tensor& x);
CLNET_API Tensor log_sigmoid(const Tensor& x);
CLNET_API Tensor relu(const Tensor& x);
CLNET_API Tensor relu6(const Tensor& x);
CLNET_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
CLNET_API Tensor elu(const Tensor& x, double alpha = 1.0);
CLNET_API Tensor celu(const Tensor& x, double alpha = 1.0);
CLNET_API Tensor selu(const Tensor& x);
enum class Gelu : std::uint8_t { erf, tanh };
CLNET_API Tensor gelu(const Tensor& x, Gelu form);
CLNET_API Tensor gelu(const Tensor& x);  ///< the exact form, by erf
CLNET_API Tensor silu(const Tensor& x);
CLNET_API Tensor mish(const Tensor& x);
CLNET_API Tensor hardswish(const Tensor& x);
CLNET_API Tensor hardsigmoid(const Tensor& x);
CLNET_API Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
CLNET_API Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
CLNET_API Tensor softsign(const Tensor& x);
CLNET_API Tensor clamp(const Tensor& x, double low, double high = std::numeric_limits<double>::infinity());
CLNET_API Tensor is_nan(const Tensor& x);

// ---- Reductions over dimensions (none given: all). keepdim leaves extents of 1.

// Sums and products of integers and bool are i64. Over no elements: sum 0, prod 1, mean NaN.

using Dims = std::vector<int>;
CLNET_API Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Ties share the gradient equally. Throws ShapeError over no elements.
CLNET_API Tensor max(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
CLNET_API Tensor min(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The i64 index of the first largest (smallest) element along one dimension. No gradient.
CLNET_API Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
CLNET_API Tensor argmin(const Tensor& x, int dim, bool keepdim = false);
/// The variance over dimensions: divided by n - correction.
CLNET_API Tensor var(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
/// Sums x over the dimensions along which `shape` was broadcast to x's shape: the gradient of broadcasting.
CLNET_API Tensor sum_to(const Tensor& x, const Shape& shape);

// ---- Shape: the same elements otherwise arranged

/// One extent may be -1: what is left.
CLNET_API Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& extents);
CLNET_API Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
CLNET_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins dimensions first..last.
CLNET_API Tensor flatten(const Tensor& x, int first = 1, int last = -1);
CLNET_API Tensor squeeze(const Tensor& x, int dim);
CLNET_API Tensor unsqueeze(const Tensor& x, int dim);
CLNET_API Tensor transpose(const Tensor& x, int dim0, int dim1);
/// Dimension i of the result is dimension dims[i] of x.
CLNET_API Tensor permute(const Tensor& x, const std::vector<int>& dims);
CLNET_API Tensor expand(const Tensor& x, const Shape& shape);
CLNET_API Tensor concat(const std::vector<Tensor>& tensors, int dim);
CLNET_API Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);
/// Pieces of the given lengths along a dimension; their sum is its extent.
CLNET_API std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& lengths, int dim);
/// Elements start, start + step, ... before stop, along one dimension; start and stop are clamped, negative ones count from the
/// end; `step` is not 0, and may be negative.
CLNET_API Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
                       std::int64_t step = 1);
enum class PadMode : std::uint8_t { constant, reflect, edge };
/// before[d] and after[d] elements are added at each dimension (negative: taken away), one entry per dimension.
CLNET_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                     double value = 0, PadMode mode = PadMode::constant);
/// out[..., j, ...] = x[..., indices[j], ...] along `dim`: the result's shape is x's with `dim` replaced by indices' shape.
/// Indices are i32 or i64; negative ones count from the end; one that is out of range gives NaN (0 for integers) and no gradient.
CLNET_API Tensor index_select(const Tensor& x, int dim, const Tensor& indices);
/// PyTorch's gather: out[i][j] = x[indices[i][j]][j] for dim 0, and so on; same rank, indices' shape.
CLNET_API Tensor gather(const Tensor& x, int dim, const Tensor& indices);
/// Rows of `weight` {count, width}: shape {...indices, width}.
/// No gradient flows to row `padding_index` (counted from the end where negative).
CLNET_API Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_index = std::nullopt);
/// 1 where the last dimension's index equals the class, else 0; classes out of range give zeros.
CLNET_API Tensor one_hot(const Tensor& indices, std::int64_t classes, Dtype dtype = Dtype::f32);

// ---- Matrix products

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  ///< of the last two dimensions
};
/// {..., M, K} x {..., K, N} -> {..., M, N}; leading dimensions broadcast. Vectors as in PyTorch's matmul: a first {K} and a
/// second {K} count as a row and a column, and that dimension is dropped from the result.
CLNET_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// x {..., in} and weight {out, in}: x weight^T + bias. An undefined bias adds nothing.
CLNET_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// ---- Convolution

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {out, C / groups, kh, kw}, bias {out} or undefined.
CLNET_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
struct ConvTranspose2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
/// x {N, C, H, W}, weight {C, out / groups, kh, kw}, bias {out} or undefined.
CLNET_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTranspose2dOptions& options = {});

// ---- Pooling of {N, C, H, W}

struct MaxPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  ///< the kernel's size when not given
  Padding padding = 0;                        ///< counts as -infinity
  Pair dilation = 1;
  bool ceil_mode = false;
};
/// The first of equal elements in row order takes the gradient. NaN wins over numbers.
CLNET_API Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options = {});
struct AvgPool2dOptions {
  std::optional<Pair> stride = std::nullopt;
  Padding padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
CLNET_API Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options = {});
CLNET_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size);
CLNET_API Tensor global_avg_pool2d(const Tensor& x);  ///< {N, C, 1, 1}
CLNET_API Tensor global_max_pool2d(const Tensor& x);  ///< {N, C, 1, 1}

// ---- Normalisation

/// What batch normalisation in training gives: the output and the batch's statistics, {C} each; `var` is unbiased, as running
/// averages want it. The statistics are f32, whatever x is.
struct BatchNormResult {
  Tensor y, mean, var;
};
/// x {N, C, ...} normalised by its own statistics over all but dimension 1. `weight` and `bias` {C} or undefined.
CLNET_API BatchNormResult batch_norm_training(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// The same with given statistics {C}.
CLNET_API Tensor batch_norm_inference(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight,
                                      const Tensor& bias, double eps = 1e-5);
/// Over the last weight.rank() dimensions (or `normalized_dims` when weight is undefined).
CLNET_API Tensor layer_norm(const Tensor& x, int normalized_dims, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
CLNET_API Tensor softmax(const Tensor& x, int dim);
CLNET_API Tensor log_softmax(const Tensor& x, int dim);
/// Zeroes elements with probability p and scales the rest by 1 / (1 - p). Takes its random offset from the process's generator.
CLNET_API Tensor dropout(const Tensor& x, double p);

// ---- Losses: a scalar, or unreduced with Reduction::none

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

/// sqrt of the sum of squares over all tensors: the norm that gradient clipping uses.
CLNET_API Tensor global_norm(const std::vector<Tensor>& tensors);

}  // namespace clnet
