// Batch norm over rows that several devices or ranks have.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "clnet/nn/parameter.h"
#include "clnet/ops/norm.h"

namespace clnet::nn {

/// Sums of tensors over all who compute a part of the batch, as graph: gradients flow through it.
using SumFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& own)>;

/// While it lives, batch norm that this thread calls in training uses the rows of all parts of the batch. A layer with a group of
/// its own keeps to that.
class SharedStatistics {
 public:
  /// `sum`: null where this thread's part is the whole batch, or batch norm has the statistics of each part. `counts`: whether
  /// this thread's rows are of the batch; others, which only stand in for none, add nothing to any sums.
  explicit SharedStatistics(SumFunction sum, bool counts = true);
  ~SharedStatistics();
  SharedStatistics(const SharedStatistics&) = delete;
  SharedStatistics& operator=(const SharedStatistics&) = delete;

  /// This thread's innermost one, or null.
  static SharedStatistics* now();
  const SumFunction& sum() const { return sum_; }
  /// As a layer's own `sum` has to be.
  SumFunction counted(SumFunction sum) const;
  /// A buffer that follows such statistics, and so has equal values in all parts.
  void add(const Parameter& buffer) { buffers_.push_back(buffer); }
  const std::vector<Parameter>& buffers() const { return buffers_; }

 private:
  const bool counts_;
  SumFunction sum_;
  std::vector<Parameter> buffers_;
  SharedStatistics* outer_;
};

/// What `var` of a result is divided by: the number of values less one, or that number.
enum class Variance : std::uint8_t { unbiased, of_population };

/// batch_norm_training() over the rows of all parts. Two sums each way: the mean first, then the deviations from it.
BatchNormResult batch_norm_over(const SumFunction& sum, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                                Variance variance = Variance::unbiased);

}  // namespace clnet::nn
