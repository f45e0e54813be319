#include "lib/nn/shared_statistics.h"

#include <utility>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/base/leave_scope.h"

namespace clnet::nn {

namespace {

thread_local SharedStatistics* innermost_statistics = nullptr;

}  // namespace

SharedStatistics::SharedStatistics(SumFunction sum, bool counts)
    : counts_(counts), sum_(counted(std::move(sum))), outer_(std::exchange(innermost_statistics, this)) {}
SharedStatistics::~SharedStatistics() { leave_scope(innermost_statistics, this, &SharedStatistics::outer_); }

SumFunction SharedStatistics::counted(SumFunction sum) const {
  if (counts_ || !sum) return sum;
  return [sum = std::move(sum)](const std::vector<Tensor>& own) {
    std::vector<Tensor> nothing;
    for (const auto& each : own) nothing.push_back(each * 0.0);
    return sum(nothing);
  };
}

SharedStatistics* SharedStatistics::now() { return innermost_statistics; }

BatchNormResult batch_norm_over(const SumFunction& sum_of_all, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                double eps, Variance variance) {
  std::vector<int> others;
  std::vector<std::int64_t> beside(static_cast<std::size_t>(x.rank()), 1);
  for (int d = 0; d < x.rank(); ++d)
    if (d != 1) others.push_back(d);
  beside[1] = x.size(1);
  const Shape channels(beside);
  const Tensor wide = cast(x, Dtype::f32);
  const auto own = static_cast<double>(x.numel() / x.size(1));
  const auto sums = sum_of_all({sum(wide, others), Tensor::scalar(own)});
  const Tensor &count = sums[1], mean = sums[0] / count;
  const Tensor centred = wide - reshape(mean, channels);
  const Tensor squares = sum_of_all({sum(square(centred), others)})[0];
  // y is made from what running averages follow, so that it is computed along.
  const bool unbiased = variance == Variance::unbiased;
  const Tensor var = squares / (unbiased ? count - 1.0 : count);
  const Tensor of_all = unbiased ? var * ((count - 1.0) / count) : var;
  Tensor y = centred * reshape(rsqrt(of_all + eps), channels);
  if (weight.defined()) y = y * reshape(weight, channels);
  if (bias.defined()) y = y + reshape(bias, channels);
  return {cast(y, x.dtype()), mean, var};
}

}  // namespace clnet::nn
