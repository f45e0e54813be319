// Normalization.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/nn/shared_statistics.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"
#include "lib/ops/norm/batch_norm.h"

namespace clnet::onnx {
namespace {

/// Statistics of the file follow those of batches where the module is in training, by the node's momentum.
Outputs batch_norm(const Call& call) {
  const auto& options = call.runner().options();
  const double eps = call.attribute("epsilon", 1e-5), momentum = call.attribute("momentum", 0.9);
  if (call.attribute("spatial", std::int64_t{1}) == 0) call.refuse("statistics per element (spatial=0)");
  const bool asked = call.opset() >= 14 ? call.attribute("training_mode", std::int64_t{0}) != 0
                                        : call.wants(1) || call.wants(2) || call.wants(3) || call.wants(4);
  const Tensor &x = call.x(0), &scale = call.x(1), &bias = call.x(2), &mean_now = call.x(3), &var_now = call.x(4);
  if (!asked && (!options.training || options.freeze_statistics))
    return {call.give(ops::batch_norm_of_layer(x, mean_now, var_now, scale, bias, eps, momentum))};
  auto* shared = nn::SharedStatistics::now();
  const bool sums = shared && shared->sum();
  const auto result = sums ? nn::batch_norm_over(shared->sum(), x, scale, bias, eps, nn::Variance::of_population)
                           : batch_norm_training(x, scale, bias, eps);
  // ONNX's variances are of the whole population.
  const auto count = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(1, x.size(1)));
  const auto next = [momentum](const Tensor& now, const Tensor& value, double factor) {
    return now * momentum + cast(value, now.dtype()) * ((1 - momentum) * factor);
  };
  const double of_var = sums ? 1 : (count - 1) / std::max(count, 1.0);
  if (asked)
    return {call.give(result.y), call.give(next(mean_now, result.mean, 1), 3), call.give(next(var_now, result.var, of_var), 4)};
  const auto follow = [&](std::size_t input, const Tensor& value, double factor) {
    auto parameter = call.in(input).parameter();
    if (!parameter) return;
    parameter->follow(value, [next, factor](const Tensor& now, const Tensor& batch) { return next(now, batch, factor); });
    if (shared) shared->add(*parameter);
  };
  follow(3, result.mean, 1);
  follow(4, result.var, of_var);
  return {call.give(result.y)};
}

Outputs instance_norm_of(const Call& call) {
  return {call.give(instance_norm(call.x(0), call.x(1), call.x(2), call.attribute("epsilon", 1e-5)))};
}

Outputs layer_norm_of(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), x.rank());
  const double eps = call.attribute("epsilon", 1e-5);
  const auto& extents = x.shape().extents();
  const Shape inner(std::vector<std::int64_t>(extents.begin() + axis, extents.end()));
  Dims dims;
  for (int d = axis; d < x.rank(); ++d) dims.push_back(d);
  const bool fits = call.shape(1) == inner && (!call.has(2) || call.shape(2) == inner);
  Outputs out;
  if (fits) {
    out.push_back(call.give(layer_norm(x, x.rank() - axis, call.x(1), call.optional(2), eps)));
  } else {
    Tensor y = layer_norm(x, x.rank() - axis, {}, {}, eps) * call.x(1);
    if (call.has(2)) y = y + call.x(2);
    out.push_back(call.give(y));
  }
  if (!call.wants(1) && !call.wants(2)) return out;
  const auto [variance, mean] = var_mean(cast(x, Dtype::f32), dims, 0, true);
  out.emplace_back(mean);
  out.emplace_back(rsqrt(variance + eps));
  return out;
}

Outputs rms_norm_of(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), x.rank());
  const double eps = call.attribute("epsilon", 1e-5);
  const auto& extents = x.shape().extents();
  if (call.shape(1) == Shape(std::vector<std::int64_t>(extents.begin() + axis, extents.end())))
    return {call.give(rms_norm(x, x.rank() - axis, call.x(1), eps), 1)};
  return {call.give(rms_norm(x, x.rank() - axis, {}, eps) * call.x(1), 1)};
}

/// Operator set 18 has a scale per group, 21 one per channel.
Outputs group_norm_of(const Call& call) {
  const Tensor& x = call.x(0);
  const auto groups = call.attribute("num_groups", std::int64_t{1});
  const double eps = call.attribute("epsilon", 1e-5);
  Tensor scale = call.x(1), bias = call.x(2);
  if (call.opset() < 21) {
    if (groups < 1 || x.rank() < 2 || x.size(1) % groups != 0)
      call.fail(fmt::format("{} groups of {}", groups, to_string(x.shape())));
    scale = repeat_interleave(scale, x.size(1) / groups, 0);
    bias = repeat_interleave(bias, x.size(1) / groups, 0);
  }
  return {call.give(group_norm(x, groups, scale, bias, eps))};
}

Outputs local_response(const Call& call) {
  return {call.give(local_response_norm(call.x(0), call.attribute("size", std::int64_t{1}), call.attribute("alpha", 1e-4),
                                        call.attribute("beta", 0.75), call.attribute("bias", 1.0)))};
}

Outputs lp_norm(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), x.rank());
  const auto length = norm(x, static_cast<double>(call.attribute("p", std::int64_t{2})), {axis}, true);
  return {call.give(x / where(eq(length, 0.0), 1.0, length))};
}

Outputs mean_variance(const Call& call) {
  const Tensor& x = call.x(0);
  Dims dims;
  for (const auto axis : call.integers("axes")) dims.push_back(Call::axis(axis, x.rank()));
  if (dims.empty()) dims = {0, 2, 3};
  const auto [variance, mean] = var_mean(x, dims, 0, true);
  return {call.give((x - mean) / (sqrt(variance) + 1e-9))};
}

}  // namespace

std::vector<Operator> norm_operators() {
  using enum Role;
  return {
      {"BatchNormalization", 1, batch_norm, {data, weight, weight, statistic, statistic}},
      {"GroupNormalization", 18, group_norm_of, {data, weight}},
      {"InstanceNormalization", 1, instance_norm_of, {data, weight}},
      {"LRN", 1, local_response},
      {"LayerNormalization", 17, layer_norm_of, {data, weight}},
      {"LpNormalization", 1, lp_norm},
      {"MeanVarianceNormalization", 9, mean_variance},
      {"RMSNormalization", 23, rms_norm_of, {data, weight}},
  };
}

}  // namespace clnet::onnx
