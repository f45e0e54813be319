#include "clnet/nn/adaptive_softmax.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/norm.h"
#include "lib/graph/require.h"
#include "lib/nn/layer.h"
#include "lib/ops/loss/labels.h"

namespace clnet::nn {

namespace {

constexpr const char* adaptive_name = "AdaptiveLogSoftmaxWithLoss";

}  // namespace

AdaptiveLogSoftmaxWithLoss::Sizes AdaptiveLogSoftmaxWithLoss::checked(Sizes sizes) {
  require_positive(adaptive_name, "in_features", sizes.in_features);
  require_positive(adaptive_name, "n_classes", sizes.n_classes);
  const auto& cutoffs = sizes.cutoffs;
  const bool ascending = std::adjacent_find(cutoffs.begin(), cutoffs.end(), std::greater_equal{}) == cutoffs.end();
  if (cutoffs.empty() || !ascending || cutoffs.front() < 1 || cutoffs.back() >= sizes.n_classes)
    throw Error(fmt::format("{}: cutoffs [{}] must be one or more, ascending, from 1 to {}", adaptive_name,
                            fmt::join(cutoffs, ", "), sizes.n_classes - 1));
  return sizes;
}

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(std::int64_t in_features, std::int64_t n_classes,
                                                       const std::vector<std::int64_t>& cutoffs,
                                                       const AdaptiveLogSoftmaxOptions& options)
    : sizes_(checked({in_features, n_classes, cutoffs})),
      options_(options),
      head_(in_features, cutoffs[0] + static_cast<std::int64_t>(cutoffs.size()), {.bias = options.head_bias}) {
  if (!(options.div_value > 0) || !std::isfinite(options.div_value))
    throw Error(fmt::format("{}: div_value {} must be above 0", adaptive_name, options.div_value));
  add("head", head_);
  for (std::size_t cluster = 0; cluster < cutoffs.size(); ++cluster) {
    const auto times = std::pow(options.div_value, static_cast<double>(cluster + 1));
    const auto features = static_cast<double>(in_features);
    // Python's //, which PyTorch takes: 512 / 1.6 is rounded to 320, and 319 whole times 1.6.
    const auto width = std::round((features - std::fmod(features, times)) / times);
    if (!(width >= 1) || width > 1e9)
      throw Error(fmt::format("{}: cluster {} would have {} features: {} divided {} times by {}", adaptive_name, cluster, width,
                              in_features, cluster + 1, options.div_value));
    const auto hidden = static_cast<std::int64_t>(width);
    clusters_.emplace_back(Sequential{Linear{in_features, hidden, {.bias = false}},
                                      Linear{hidden, end_of(cluster) - begin_of(cluster), {.bias = false}}});
    tail_.append(clusters_.back());
  }
  add("tail", tail_);
}

void AdaptiveLogSoftmaxWithLoss::require_input(const Tensor& x) const {
  require_defined(adaptive_name, {{"x", x}});
  if (x.rank() < 1 || x.rank() > 2 || x.size(-1) != sizes_.in_features)
    throw ShapeError(fmt::format("{}: x {} is neither {{batch, {}}} nor {{{}}}", adaptive_name, to_string(x.spec()),
                                 sizes_.in_features, sizes_.in_features));
}

Tensor AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x) {
  require_input(x);
  const Tensor head = log_softmax(head_(x), -1);
  std::vector<Tensor> parts{slice(head, -1, 0, shortlist())};
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const auto place = shortlist() + static_cast<std::int64_t>(i);
    parts.push_back(slice(head, -1, place, place + 1) + log_softmax(clusters_[i](x), -1));
  }
  return concat(parts, x.rank() - 1);
}

AdaptiveLogSoftmaxResult AdaptiveLogSoftmaxWithLoss::of_targets(const Tensor& x, const Tensor& target) {
  require_input(x);
  require_defined(adaptive_name, {{"target", target}});
  if (target.dtype() != Dtype::i32 && target.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("{}: targets must be i32 or i64, got {}", adaptive_name, to_string(target.spec())));
  if (target.rank() != x.rank() - 1 || (x.rank() == 2 && target.size(0) != x.size(0)))
    throw ShapeError(
        fmt::format("{}: target {} does not fit x {}", adaptive_name, to_string(target.spec()), to_string(x.spec())));
  ops::require_classes(adaptive_name, target, sizes_.n_classes);
  const Tensor classes = cast(target, Dtype::i64);
  const auto number = [](std::int64_t value) { return Tensor::scalar(static_cast<double>(value), Dtype::i64); };
  const auto picked = [](const Tensor& values, const Tensor& places) {
    return squeeze(gather(values, -1, unsqueeze(places, -1)), -1);
  };
  // Places beyond the last are no place, and negative ones would count from the end.
  const auto clusters = static_cast<std::int64_t>(clusters_.size());
  Tensor place = where(logical_and(greater_equal(classes, number(0)), less(classes, number(shortlist()))), classes,
                       number(shortlist() + clusters));
  std::vector<Tensor> in_tail;
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    in_tail.push_back(logical_and(greater_equal(classes, number(begin_of(i))), less(classes, number(end_of(i)))));
    place = where(in_tail[i], number(shortlist() + static_cast<std::int64_t>(i)), place);
  }
  Tensor output = picked(log_softmax(head_(x), -1), place);
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const Tensor within = where(in_tail[i], classes - number(begin_of(i)), number(0));
    output = output + where(in_tail[i], picked(log_softmax(clusters_[i](x), -1), within), 0.0);
  }
  return {output, -mean(output)};
}

std::string AdaptiveLogSoftmaxWithLoss::kind() const {
  return fmt::format("{}({}, {}, cutoffs=[{}])", adaptive_name, sizes_.in_features, sizes_.n_classes,
                     fmt::join(sizes_.cutoffs, ", "));
}

}  // namespace clnet::nn
