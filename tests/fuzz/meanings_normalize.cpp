// What batch and layer normalisation and cross entropy mean, with their gradients.
#include "tests/fuzz/interpret.h"
#include "tests/reference/loss/cross_entropy.h"
#include "tests/reference/norm/batch_norm.h"

namespace clnet::fuzz {

namespace reference = testing::reference;

namespace {

/// Outputs: y, mean, unbiased variance, reciprocal deviation, and what the mean lost by rounding: nothing here.
Arrays batch_norm(const Call& call) {
  const auto& x = call.in[0];
  const bool weighted = call.flag("weighted"), biased = call.flag("biased");
  const double eps = call.number("eps");
  const auto result = reference::batch_norm(x, weighted ? &call.in[1] : nullptr, biased ? &call.in.back() : nullptr, eps);
  const auto count = static_cast<double>(x.numel() / x.size(1));
  Array rstd(result.var.shape);
  for (std::int64_t c = 0; c < rstd.numel(); ++c) rstd[c] = 1 / std::sqrt(result.var[c] * (count - 1) / count + eps);
  return {result.y, result.mean, result.var, rstd, Array(rstd.shape)};
}

/// dx = rstd (h - mean(h) - xhat mean(h xhat)) with h = g weight, over the elements that `group` numbers; also the sums of
/// g xhat and g by `group`.
struct NormGradient {
  Array dx, terms;  ///< terms: the sizes of dx's terms
  std::vector<double> by_weight, by_bias;
};
template <class Group, class Weight>
NormGradient norm_gradient(const Array& x, const Array& g, const Array& mean, const Array& rstd, Group group, Weight weight) {
  const auto groups = static_cast<std::size_t>(mean.numel());
  NormGradient result{Array(x.shape), Array(x.shape), std::vector<double>(groups), std::vector<double>(groups)};
  std::vector<double> h_sum(groups), h_product(groups), h_size(groups), product_size(groups);
  const auto normalized = [&](std::int64_t i) { return (x[i] - mean[group(i)]) * rstd[group(i)]; };
  const auto normalized_size = [&](std::int64_t i) { return (std::fabs(x[i]) + std::fabs(mean[group(i)])) * rstd[group(i)]; };
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto k = static_cast<std::size_t>(group(i));
    result.by_bias[k] += g[i];
    result.by_weight[k] += g[i] * normalized(i);
    h_sum[k] += g[i] * weight(i);
    h_product[k] += g[i] * weight(i) * normalized(i);
    h_size[k] += std::fabs(g[i] * weight(i));
    product_size[k] += std::fabs(g[i] * weight(i)) * normalized_size(i);
  }
  const auto count = static_cast<double>(x.numel()) / static_cast<double>(groups);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto k = static_cast<std::size_t>(group(i));
    result.dx[i] = rstd[group(i)] * (g[i] * weight(i) - h_sum[k] / count - normalized(i) * h_product[k] / count);
    result.terms[i] =
        rstd[group(i)] * (std::fabs(g[i] * weight(i)) + h_size[k] / count + normalized_size(i) * product_size[k] / count);
  }
  return result;
}

/// Inputs: x, the gradient of y, mean, reciprocal deviation, what the mean lost; weight.
NormGradient batch_norm_gradient(const Call& call) {
  const auto& x = call.in[0];
  const auto channels = x.size(1), spatial = x.numel() / x.size(0) / channels;
  const auto channel = [&](std::int64_t i) { return i / spatial % channels; };
  const bool weighted = call.flag("weighted");
  return norm_gradient(x, call.in[1], call.in[2], call.in[3], channel,
                       [&](std::int64_t i) { return weighted ? call.in[5][channel(i)] : 1.0; });
}
Arrays batch_norm_backward(const Call& call) {
  auto result = batch_norm_gradient(call);
  return {std::move(result.dx), Array(call.shape(1), std::move(result.by_weight)),
          Array(call.shape(2), std::move(result.by_bias))};
}

/// Outputs: y, mean and reciprocal deviation.
Arrays layer_norm(const Call& call) {
  const auto& x = call.in[0];
  const bool weighted = call.flag("weighted"), biased = call.flag("biased");
  const double eps = call.number("eps");
  std::int64_t length = 1;
  for (std::int64_t d = 1; d <= call.integer("dims"); ++d) length *= x.size(static_cast<int>(-d));
  Array mean(call.shape(1)), rstd(call.shape(2));
  for (std::int64_t row = 0; row < mean.numel(); ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < length; ++i) mean[row] += x[row * length + i] / static_cast<double>(length);
    for (std::int64_t i = 0; i < length; ++i) squares += std::pow(x[row * length + i] - mean[row], 2);
    rstd[row] = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
  }
  return {reference::layer_norm(x, length, weighted ? &call.in[1] : nullptr, biased ? &call.in.back() : nullptr, eps), mean,
          rstd};
}

/// Inputs: x, the gradient of y, mean, reciprocal deviation; weight.
NormGradient layer_norm_gradient(const Call& call) {
  const auto& x = call.in[0];
  const auto length = x.numel() / std::max<std::int64_t>(1, call.in[2].numel());
  const bool weighted = call.flag("weighted");
  return norm_gradient(
      x, call.in[1], call.in[2], call.in[3], [&](std::int64_t i) { return i / length; },
      [&](std::int64_t i) { return weighted ? call.in[4][i % length] : 1.0; });
}

/// The gradients of weight and bias. Inputs: x, the gradient of y, mean, reciprocal deviation.
struct ParameterGradients {
  Arrays values;
  Array terms;  ///< sizes of the first one's terms
};
ParameterGradients layer_norm_parameter_gradients(const Call& call) {
  const auto &x = call.in[0], &g = call.in[1], &mean = call.in[2], &rstd = call.in[3];
  const auto length = x.numel() / std::max<std::int64_t>(1, mean.numel());
  ParameterGradients result{{Array(call.shape(0))}, Array(call.shape(0))};
  if (call.flag("biased")) result.values.emplace_back(call.shape(1));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto row = i / length, column = i % length;
    result.values[0][column] += g[i] * (x[i] - mean[row]) * rstd[row];
    result.terms[column] += std::fabs(g[i]) * (std::fabs(x[i]) + std::fabs(mean[row])) * rstd[row];
    if (call.flag("biased")) result.values[1][column] += g[i];
  }
  return result;
}

/// A row of logits {N, C, ...}: where its first class lies, and how far the next one.
struct Rows {
  std::int64_t classes, positions;
  explicit Rows(const Array& logits) : classes(logits.size(1)), positions(1) {
    for (int d = 2; d < logits.shape.rank(); ++d) positions *= logits.size(d);
  }
  std::int64_t at(std::int64_t row, std::int64_t c) const {
    return (row / positions * classes + c) * positions + row % positions;
  }
};

/// Outputs by row: the loss, the weight with which it counts, the largest logit, and the logarithm of the sum of exponentials
/// below it.
Arrays cross_entropy(const Call& call) {
  const auto &x = call.in[0], &targets = call.in[1];
  const Rows rows(x);
  const bool weighted = call.flag("weighted");
  const double smoothing = call.number("label_smoothing");
  const auto ignore = call.integer("ignore_index");
  const auto weight_of = [&](std::int64_t c) { return weighted ? call.in[2][c] : 1.0; };
  Array loss(targets.shape), counted(targets.shape), peak(targets.shape), logs(targets.shape);
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    double most = -INFINITY, sum = 0, plain = 0;
    for (std::int64_t c = 0; c < rows.classes; ++c) most = std::max(most, x[rows.at(row, c)]);
    for (std::int64_t c = 0; c < rows.classes; ++c) sum += std::exp(x[rows.at(row, c)] - most);
    peak[row] = most;
    logs[row] = std::log(sum);
    const auto loss_of = [&](std::int64_t c) { return weight_of(c) * (most + logs[row] - x[rows.at(row, c)]); };
    for (std::int64_t c = 0; c < rows.classes; ++c) plain += loss_of(c);
    const auto target = static_cast<std::int64_t>(targets[row]);
    if (target == ignore) continue;
    const bool valid = target >= 0 && target < rows.classes;
    counted[row] = valid ? weight_of(target) : NAN;
    loss[row] = valid ? (1 - smoothing) * loss_of(target) + smoothing / static_cast<double>(rows.classes) * plain : NAN;
  }
  return {loss, counted, peak, logs};
}

/// Inputs: logits, targets, the rows' peak and logs, the gradient of their losses; the classes' weights.
Arrays cross_entropy_backward(const Call& call) {
  const auto &x = call.in[0], &targets = call.in[1], &peak = call.in[2], &logs = call.in[3], &g = call.in[4];
  const Rows rows(x);
  const bool weighted = call.flag("weighted");
  const double smoothing = call.number("label_smoothing");
  const auto ignore = call.integer("ignore_index");
  Array dx(x.shape);
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    const auto target = static_cast<std::int64_t>(targets[row]);
    if (target == ignore) continue;
    // The weight with which each class's -log p enters the loss.
    std::vector<double> share(static_cast<std::size_t>(rows.classes));
    double total = 0;
    for (std::int64_t c = 0; c < rows.classes; ++c) {
      const double weight = weighted ? call.in[5][c] : 1.0;
      auto& mine = share[static_cast<std::size_t>(c)];
      mine = weight * (smoothing / static_cast<double>(rows.classes) + (c == target ? 1 - smoothing : 0));
      total += mine;
    }
    for (std::int64_t c = 0; c < rows.classes; ++c) {
      const double p = std::exp(x[rows.at(row, c)] - peak[row] - logs[row]);
      dx[rows.at(row, c)] =
          target < 0 || target >= rows.classes ? NAN : g[row] * (total * p - share[static_cast<std::size_t>(c)]);
    }
  }
  return {dx};
}

}  // namespace

Meanings normalize_meanings() {
  return {
      {"batch_norm", {batch_norm, false, 2}},
      {"batch_norm_backward", {batch_norm_backward, false, 2, [](const Call& call) { return batch_norm_gradient(call).terms; }}},
      {"layer_norm", {layer_norm, false, 2}},
      {"layer_norm_backward",
       {[](const Call& call) { return Arrays{layer_norm_gradient(call).dx}; }, false, 2,
        [](const Call& call) { return layer_norm_gradient(call).terms; }}},
      {"layer_norm_parameters",
       {[](const Call& call) { return layer_norm_parameter_gradients(call).values; }, false, 2,
        [](const Call& call) { return layer_norm_parameter_gradients(call).terms; }}},
      {"cross_entropy", {cross_entropy}},
      {"cross_entropy_backward", {cross_entropy_backward}}};
}

}  // namespace clnet::fuzz
