#include "clnet/nn/norm.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/norm.h"
#include "lib/exec/record/work.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

/// A count that the host knows stays there and costs no kernel.
Tensor one_more(const Tensor& count) {
  const auto known = exec::value_of(count);
  const auto* host = dynamic_cast<const HostValue*>(known.get());
  if (!host) return count + 1.0;
  std::int64_t value;
  std::memcpy(&value, host->bytes.data(), sizeof value);
  return Tensor::from({value + 1}, Shape{});
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t num_features, const BatchNormOptions& options) : features_(num_features), options_(options) {
  require_positive("BatchNorm", "num_features", num_features);
  const std::vector<float> ones_row(static_cast<std::size_t>(num_features), 1.0F), zeros_row(ones_row.size(), 0.0F);
  const Shape shape{num_features};
  if (options.affine) {
    weight_ = add_parameter("weight", Tensor::from(ones_row, shape));
    bias_ = add_parameter("bias", Tensor::from(zeros_row, shape));
  }
  if (options.track_running_stats) {
    mean_ = add_buffer("running_mean", Tensor::from(zeros_row, shape));
    var_ = add_buffer("running_var", Tensor::from(ones_row, shape));
    count_ = add_buffer("num_batches_tracked", Tensor::scalar(0, Dtype::i64));
  }
}

Tensor BatchNorm::forward(const Tensor& x) {
  const Tensor weight = value_or_none(weight_), bias = value_or_none(bias_);
  if (!training() && mean_) return batch_norm_inference(x, *mean_, *var_, weight, bias, options_.eps);
  const auto result = batch_norm_training(x, weight, bias, options_.eps);
  if (training() && mean_) {
    const auto blend = [take = options_.momentum](const Tensor& now, const Tensor& batch) {
      return now * (1 - take) + batch * take;
    };
    mean_->follow(result.mean, blend);
    var_->follow(result.var, blend);
    count_->follow(result.mean, [](const Tensor& now, const Tensor&) { return one_more(now); });
  }
  return result.y;
}

void BatchNorm::require_rank(const Tensor& x, const char* name, std::initializer_list<int> ranks) const {
  for (int rank : ranks)
    if (x.rank() == rank && x.size(1) == features_) return;
  throw ShapeError(fmt::format("{}: a layer for {} channels got {}", name, features_, to_string(x.spec())));
}

Tensor BatchNorm1d::forward(const Tensor& x) {
  require_rank(x, "BatchNorm1d", {2, 3});
  return BatchNorm::forward(x);
}
std::string BatchNorm1d::kind() const { return fmt::format("BatchNorm1d({})", features_); }

Tensor BatchNorm2d::forward(const Tensor& x) {
  require_rank(x, "BatchNorm2d", {4});
  return BatchNorm::forward(x);
}
std::string BatchNorm2d::kind() const { return fmt::format("BatchNorm2d({})", features_); }

LayerNorm::LayerNorm(const Shape& normalized_shape, double eps, bool affine) : shape_(normalized_shape), eps_(eps) {
  if (!affine) return;
  const auto count = static_cast<std::size_t>(shape_.numel());
  weight_ = add_parameter("weight", Tensor::from(std::vector<float>(count, 1.0F), shape_));
  bias_ = add_parameter("bias", Tensor::from(std::vector<float>(count, 0.0F), shape_));
}

Tensor LayerNorm::forward(const Tensor& x) {
  bool fits = x.rank() >= shape_.rank();
  for (int d = 1; fits && d <= shape_.rank(); ++d) fits = x.size(-d) == shape_[-d];
  if (!fits) throw ShapeError(fmt::format("LayerNorm: normalises {}, got {}", to_string(shape_), to_string(x.spec())));
  return layer_norm(x, shape_.rank(), value_or_none(weight_), value_or_none(bias_), eps_);
}

std::string LayerNorm::kind() const { return fmt::format("LayerNorm({})", to_string(shape_)); }

}  // namespace clnet::nn
