#include "clnet/nn/norm.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/base/log.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/capture.h"
#include "lib/graph/scope.h"
#include "lib/nn/layer.h"
#include "lib/nn/parameter.h"
#include "lib/nn/shared_statistics.h"
#include "lib/ops/norm/batch_norm.h"

namespace clnet::nn {

namespace {

/// A count that the host knows stays there and costs no kernel, unless the graph is made for other counts, too.
Tensor one_more(const Tensor& count) {
  if (capturing()) return count + 1.0;
  const auto known = exec::asked_value_of(count);
  const auto* host = dynamic_cast<const HostValue*>(known.get());
  if (!host) return count + 1.0;
  std::int64_t value;
  std::memcpy(&value, host->bytes.data(), sizeof value);
  return Tensor::from({value + 1}, Shape{});
}

Tensor filled(const Shape& shape, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}

/// Inference reads the statistics that are there, whatever was written down before it.
void warn_if_awaited(const Module& layer, const Parameter& statistics) {
  if (slot_of(statistics)->awaited == 0) return;
  const auto where = to_string(scope_now());
  logging::warn_once(
      fmt::format("{}{}: is called in inference mode while a call in training mode is not computed yet: it sees the running "
                  "statistics from before that; evaluate what was made of the call in training mode first",
                  where.empty() ? "" : where + ": ", layer.kind()));
}

void require_extents(const char* layer, const Shape& shape) {
  if (shape.rank() == 0 || shape.numel() == 0)
    throw Error(fmt::format("{}: normalized_shape {} must have extents of at least 1", layer, to_string(shape)));
}

/// Throws unless x ends with the dimensions of `shape`.
void require_last(const char* layer, const Tensor& x, const Shape& shape) {
  bool fits = x.rank() >= shape.rank();
  for (int d = 1; fits && d <= shape.rank(); ++d) fits = x.size(-d) == shape[-d];
  if (!fits) throw ShapeError(fmt::format("{}: normalises {}, got {}", layer, to_string(shape), to_string(x.spec())));
}

/// Who adds the statistics of a call in training; nothing: it has only those of its rows.
SumFunction sum_of(const std::optional<dist::Group>& group) {
  const auto* shared = SharedStatistics::now();
  if (!group || group->size() == 1) return shared ? shared->sum() : nullptr;
  const auto of_group = [group = *group](const std::vector<Tensor>& own) { return dist::all_reduce(own, group); };
  return shared ? shared->counted(of_group) : of_group;
}

/// How many batches there were with this one, as each thread that evaluates the graph has found.
class Batches {
 public:
  /// `count` is kept alive: its update, which calls set(), comes before those that call get().
  explicit Batches(std::shared_ptr<Slot> count) : count_(std::move(count)) {}
  Tensor set(const Tensor& next) {
    Tensor now = next;
    const std::lock_guard lock(mutex_);
    std::swap(now_[std::this_thread::get_id()], now);  // what was there is freed without the lock
    return next;
  }
  Tensor get() const {
    const std::lock_guard lock(mutex_);
    const auto found = now_.find(std::this_thread::get_id());
    if (found == now_.end()) throw Error("BatchNorm: the count of batches was not updated");
    return found->second;
  }

 private:
  const std::shared_ptr<Slot> count_;
  mutable std::mutex mutex_;
  std::map<std::thread::id, Tensor> now_;
};

}  // namespace

BatchNorm::BatchNorm(std::int64_t num_features, const BatchNormOptions& options) : features_(num_features), options_(options) {
  require_positive("BatchNorm", "num_features", num_features);
  const Shape shape{num_features};
  if (options.affine) {
    weight_ = add_parameter("weight", filled(shape, 1));
    bias_ = add_parameter("bias", filled(shape, 0));
  }
  if (options.track_running_stats) {
    mean_ = add_buffer("running_mean", filled(shape, 0));
    var_ = add_buffer("running_var", filled(shape, 1));
    count_ = add_buffer("num_batches_tracked", Tensor::scalar(0, Dtype::i64));
  }
}

Tensor BatchNorm::forward(const Tensor& x) {
  const Tensor weight = value_or_none(weight_), bias = value_or_none(bias_);
  if (!training() && mean_) {
    warn_if_awaited(*this, *mean_);
    const auto kept = options_.momentum ? std::optional(1 - *options_.momentum) : std::nullopt;
    return ops::batch_norm_of_layer(x, *mean_, *var_, weight, bias, options_.eps, kept);
  }
  const auto sum = training() ? sum_of(options_.group) : nullptr;
  const auto result =
      sum ? batch_norm_over(sum, x, weight, bias, options_.eps) : batch_norm_training(x, weight, bias, options_.eps);
  if (training() && mean_) {
    // The count comes first, for those after it to know; all are of one node, and so of one evaluation.
    const auto batches = std::make_shared<Batches>(options_.momentum ? nullptr : slot_of(*count_));
    const auto count = [batches](const Tensor& now, const Tensor&) { return batches->set(one_more(now)); };
    const auto blend = [momentum = options_.momentum, batches](const Tensor& now, const Tensor& batch) {
      if (momentum) return now * (1 - *momentum) + batch * *momentum;
      const Tensor share = 1.0 / cast(batches->get(), Dtype::f32);
      return now * (1.0 - share) + batch * share;
    };
    follow_together(
        std::vector<Following>{{*count_, result.mean, count}, {*mean_, result.mean, blend}, {*var_, result.var, blend}});
    if (auto* shared = SharedStatistics::now())
      for (const auto& buffer : {*count_, *mean_, *var_}) shared->add(buffer);
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

Tensor BatchNorm3d::forward(const Tensor& x) {
  require_rank(x, "BatchNorm3d", {5});
  return BatchNorm::forward(x);
}
std::string BatchNorm3d::kind() const { return fmt::format("BatchNorm3d({})", features_); }

InstanceNorm::InstanceNorm(int axes, std::int64_t num_features, const InstanceNormOptions& options)
    : axes_(axes), features_(num_features), options_(options) {
  require_positive("InstanceNorm", "num_features", num_features);
  if (options.affine) {
    weight_ = add_parameter("weight", filled({num_features}, 1));
    bias_ = add_parameter("bias", filled({num_features}, 0));
  }
  if (!options.track_running_stats) return;
  mean_ = add_buffer("running_mean", filled({num_features}, 0));
  var_ = add_buffer("running_var", filled({num_features}, 1));
  add_buffer("num_batches_tracked", Tensor::scalar(0, Dtype::i64));
}

Tensor InstanceNorm::forward(const Tensor& x) {
  const bool one = x.rank() == axes_ + 1 && x.size(0) == features_;  // a sample without a batch
  if (training() && (one || (x.rank() == axes_ + 2 && x.size(1) == features_)) && x.numel() == (one ? 1 : x.size(0)) * features_)
    throw ShapeError(
        fmt::format("{}: expected more than 1 value per channel when training, got {}", kind(), to_string(x.spec())));
  if (one) return squeeze(forward(unsqueeze(x, 0)), 0);
  if (x.rank() != axes_ + 2 || x.size(1) != features_)
    throw ShapeError(fmt::format("{}: expected {{batch, {}, {}}}, got {}", kind(), features_,
                                 axes_ == 1   ? "length"
                                 : axes_ == 2 ? "height, width"
                                              : "depth, height, width",
                                 to_string(x.spec())));
  const Tensor weight = value_or_none(weight_), bias = value_or_none(bias_);
  if (!mean_ || x.numel() == 0) return instance_norm(x, weight, bias, options_.eps);
  if (!training()) {
    warn_if_awaited(*this, *mean_);
    return batch_norm_inference(x, *mean_, *var_, weight, bias, options_.eps);
  }
  // Each channel of each sample is a channel of one sample, so that output and statistics are of one operation.
  const auto samples = x.size(0), channels = features_;
  const auto of_all = [&](const Tensor& t) { return t.defined() ? tile(t, {samples}) : t; };
  const Tensor joined = reshape(x, x.shape().with(0, 1).with(1, samples * channels));
  const auto result = batch_norm_training(joined, of_all(weight), of_all(bias), options_.eps);
  const auto blend = [take = options_.momentum, samples, channels](const Tensor& now, const Tensor& each) {
    return now * (1 - take) + mean(reshape(each, {samples, channels}), 0) * take;
  };
  follow_together(std::vector<Following>{{*mean_, result.mean, blend}, {*var_, result.var, blend}});
  return reshape(result.y, x.shape());
}

std::string InstanceNorm::kind() const { return fmt::format("InstanceNorm{}d({})", axes_, features_); }

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options)
    : groups_(num_groups), channels_(num_channels), eps_(options.eps) {
  require_positive("GroupNorm", "num_groups", num_groups);
  require_positive("GroupNorm", "num_channels", num_channels);
  if (num_channels % num_groups != 0)
    throw Error(fmt::format("GroupNorm: num_channels {} must be divisible by num_groups {}", num_channels, num_groups));
  if (!options.affine) return;
  weight_ = add_parameter("weight", filled({num_channels}, 1));
  bias_ = add_parameter("bias", filled({num_channels}, 0));
}

Tensor GroupNorm::forward(const Tensor& x) {
  if (x.rank() < 2 || x.size(1) != channels_)
    throw ShapeError(fmt::format("GroupNorm: a layer for {} channels got {}", channels_, to_string(x.spec())));
  return group_norm(x, groups_, value_or_none(weight_), value_or_none(bias_), eps_);
}

std::string GroupNorm::kind() const { return fmt::format("GroupNorm({}, {})", groups_, channels_); }

Tensor LocalResponseNorm::forward(const Tensor& x) {
  return local_response_norm(x, size_, options_.alpha, options_.beta, options_.k);
}
std::string LocalResponseNorm::kind() const {
  return fmt::format("LocalResponseNorm({}, alpha={}, beta={}, k={})", size_, options_.alpha, options_.beta, options_.k);
}

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  require_extents("LayerNorm", shape_);
  if (!options.elementwise_affine) return;
  weight_ = add_parameter("weight", filled(shape_, 1));
  if (options.bias) bias_ = add_parameter("bias", filled(shape_, 0));
}

Tensor LayerNorm::forward(const Tensor& x) {
  require_last("LayerNorm", x, shape_);
  return layer_norm(x, shape_.rank(), value_or_none(weight_), value_or_none(bias_), eps_);
}

std::string LayerNorm::kind() const { return fmt::format("LayerNorm({})", to_string(shape_)); }

RMSNorm::RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options) : shape_(normalized_shape), eps_(options.eps) {
  require_extents("RMSNorm", shape_);
  if (options.elementwise_affine) weight_ = add_parameter("weight", filled(shape_, 1));
}

Tensor RMSNorm::forward(const Tensor& x) {
  require_last("RMSNorm", x, shape_);
  const double epsilon = x.dtype() == Dtype::f16 ? 0x1p-10 : x.dtype() == Dtype::bf16 ? 0x1p-7 : 0x1p-23;
  return rms_norm(x, shape_.rank(), value_or_none(weight_), eps_.value_or(epsilon));
}

std::string RMSNorm::kind() const { return fmt::format("RMSNorm({})", to_string(shape_)); }

}  // namespace clnet::nn
