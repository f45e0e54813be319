// Pooling of lines, planes and volumes.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "clnet/error.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/pool/pool_axes.h"

namespace clnet {

using namespace ops;

namespace {

/// f of the batch x, or of the one that a sample makes: errors have seen what the caller gave.
template <class F>
Tensor of_batch(const Tensor& x, const PoolAxes& axes, const F& f) {
  return is_one_sample(x, axes.size()) ? squeeze(f(unsqueeze(x, 0)), 0) : f(x);
}

/// average(), as one function.
Tensor average_of(const Tensor& x, const PoolAxes& axes, bool include_pad, std::int64_t divisor) {
  return composed(average(x, axes, include_pad, divisor), [&] {
    auto fields = fields_of(axes);
    fields.emplace_back("include_pad", include_pad);
    fields.emplace_back("divisor", divisor);
    return Composition{"avg_pool", {x}, std::move(fields), {}};
  });
}

/// largest(), as one function.
MaxPoolResult largest_of_batch(const Tensor& x, const PoolAxes& axes, bool indices) {
  auto result = largest(x, axes, indices);
  note_composition([&] {
    Tensors outputs{result.y};
    if (indices) outputs.push_back(result.indices);
    return Composition{"max_pool", {x}, fields_of(axes), std::move(outputs)};
  });
  return result;
}

MaxPoolResult largest_of(const Tensor& x, const PoolAxes& axes, bool indices) {
  if (!is_one_sample(x, axes.size())) return largest_of_batch(x, axes, indices);
  const auto result = largest_of_batch(unsqueeze(x, 0), axes, indices);
  return {squeeze(result.y, 0), indices ? squeeze(result.indices, 0) : Tensor{}};
}

template <class Size, class Options>
MaxPoolResult max_pool(std::string_view op, const Tensor& x, const Size& kernel_size, const Options& options, bool indices) {
  require_defined(op, {{"x", x}});
  return largest_of(x, pool_axes(op, x.spec(), kernel_size, options), indices);
}

template <class Size>
MaxPoolResult adaptive_max(std::string_view op, const Tensor& x, const Size& output_size, bool indices) {
  require_defined(op, {{"x", x}});
  return largest_of(x, adaptive_axes(op, x.spec(), by_axis(output_size)), indices);
}

template <class Size, class Options>
Tensor avg_pool(std::string_view op, const Tensor& x, const Size& kernel_size, const Options& options) {
  require_defined(op, {{"x", x}});
  const auto axes = pool_axes(op, x.spec(), kernel_size, options);
  const auto divisor = options.divisor_override.value_or(1);
  if (divisor == 0 || std::abs(static_cast<double>(divisor)) > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("{}: divisor_override {} must be a 32-bit number other than 0", op, divisor));
  return of_batch(x, axes, [&](const Tensor& batch) {
    return average_of(batch, axes, options.count_include_pad, options.divisor_override.value_or(0));
  });
}

template <class Size>
Tensor adaptive_avg(std::string_view op, const Tensor& x, const Size& output_size) {
  require_defined(op, {{"x", x}});
  const auto axes = adaptive_axes(op, x.spec(), by_axis(output_size));
  if (outputs(axes) > 1) return of_batch(x, axes, [&](const Tensor& batch) { return average_of(batch, axes, true, 0); });
  Dims dims;
  for (int d = 1; d <= static_cast<int>(axes.size()); ++d) dims.push_back(-d);
  return mean(x, dims, true);
}

template <class Size>
Tensor lp_pool(std::string_view op, const Tensor& x, double power, const Size& kernel_size, const std::optional<Size>& stride,
               bool ceil_mode) {
  require_defined(op, {{"x", x}});
  const auto kernel = by_axis(kernel_size);
  const Extents none(kernel.size(), 0), ones(kernel.size(), 1);
  const auto axes = pool_axes(op, x.spec(), kernel, by_axis(stride.value_or(kernel_size)), none, none, ones, ceil_mode);
  if (!(power > 0)) throw Error(fmt::format("{}: power {} must be above 0", op, power));
  if (std::isinf(power)) return largest_of(abs(x), axes, false).y;
  double area = 1;
  for (auto extent : kernel) area *= static_cast<double>(extent);
  const Tensor all = as_f32(x);
  Tensor powers = all;
  if (power == 2) {
    powers = square(all);
  } else if (power < 1) {
    // The slope at 0 is infinite, and counts as none: times that of an empty window it would be NaN.
    const Tensor zero = eq(all, 0.0);
    powers = where(zero, scalar_like(0, all), pow(where(zero, scalar_like(1, all), all), power));
  } else if (power != 1) {
    powers = pow(all, power);
  }
  const Tensor sums = of_batch(powers, axes, [&](const Tensor& batch) { return average_of(batch, axes, true, 0); }) * area;
  if (power == 1) return cast(sums, x.dtype());
  // The root has no slope at 0.
  const Tensor empty = eq(sums, 0.0), one = scalar_like(1, sums);
  const Tensor root = pow(where(empty, one, sums), 1 / power);
  return cast(where(empty, scalar_like(0, sums), root), x.dtype());
}

}  // namespace

Tensor max_pool1d(const Tensor& x, std::int64_t kernel_size, const MaxPool1dOptions& options) {
  return max_pool("max_pool1d", x, kernel_size, options, false).y;
}
Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options) {
  return max_pool("max_pool2d", x, kernel_size, options, false).y;
}
Tensor max_pool3d(const Tensor& x, Triple kernel_size, const MaxPool3dOptions& options) {
  return max_pool("max_pool3d", x, kernel_size, options, false).y;
}
MaxPoolResult max_pool1d_with_indices(const Tensor& x, std::int64_t kernel_size, const MaxPool1dOptions& options) {
  return max_pool("max_pool1d_with_indices", x, kernel_size, options, true);
}
MaxPoolResult max_pool2d_with_indices(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options) {
  return max_pool("max_pool2d_with_indices", x, kernel_size, options, true);
}
MaxPoolResult max_pool3d_with_indices(const Tensor& x, Triple kernel_size, const MaxPool3dOptions& options) {
  return max_pool("max_pool3d_with_indices", x, kernel_size, options, true);
}

Tensor avg_pool1d(const Tensor& x, std::int64_t kernel_size, const AvgPool1dOptions& options) {
  return avg_pool("avg_pool1d", x, kernel_size, options);
}
Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options) {
  return avg_pool("avg_pool2d", x, kernel_size, options);
}
Tensor avg_pool3d(const Tensor& x, Triple kernel_size, const AvgPool3dOptions& options) {
  return avg_pool("avg_pool3d", x, kernel_size, options);
}

Tensor lp_pool1d(const Tensor& x, double power, std::int64_t kernel_size, std::optional<std::int64_t> stride, bool ceil_mode) {
  return lp_pool("lp_pool1d", x, power, kernel_size, stride, ceil_mode);
}
Tensor lp_pool2d(const Tensor& x, double power, Pair kernel_size, std::optional<Pair> stride, bool ceil_mode) {
  return lp_pool("lp_pool2d", x, power, kernel_size, stride, ceil_mode);
}
Tensor lp_pool3d(const Tensor& x, double power, Triple kernel_size, std::optional<Triple> stride, bool ceil_mode) {
  return lp_pool("lp_pool3d", x, power, kernel_size, stride, ceil_mode);
}

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output_size) {
  return adaptive_avg("adaptive_avg_pool1d", x, output_size);
}
Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size) { return adaptive_avg("adaptive_avg_pool2d", x, output_size); }
Tensor adaptive_avg_pool3d(const Tensor& x, Triple output_size) { return adaptive_avg("adaptive_avg_pool3d", x, output_size); }
Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output_size) {
  return adaptive_max("adaptive_max_pool1d", x, output_size, false).y;
}
Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size) {
  return adaptive_max("adaptive_max_pool2d", x, output_size, false).y;
}
Tensor adaptive_max_pool3d(const Tensor& x, Triple output_size) {
  return adaptive_max("adaptive_max_pool3d", x, output_size, false).y;
}
MaxPoolResult adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output_size) {
  return adaptive_max("adaptive_max_pool1d_with_indices", x, output_size, true);
}
MaxPoolResult adaptive_max_pool2d_with_indices(const Tensor& x, Pair output_size) {
  return adaptive_max("adaptive_max_pool2d_with_indices", x, output_size, true);
}
MaxPoolResult adaptive_max_pool3d_with_indices(const Tensor& x, Triple output_size) {
  return adaptive_max("adaptive_max_pool3d_with_indices", x, output_size, true);
}

Tensor global_avg_pool1d(const Tensor& x) { return adaptive_avg("global_avg_pool1d", x, 1); }
Tensor global_avg_pool2d(const Tensor& x) { return adaptive_avg("global_avg_pool2d", x, Pair(1)); }
Tensor global_avg_pool3d(const Tensor& x) { return adaptive_avg("global_avg_pool3d", x, Triple(1)); }
Tensor global_max_pool1d(const Tensor& x) { return adaptive_max("global_max_pool1d", x, 1, false).y; }
Tensor global_max_pool2d(const Tensor& x) { return adaptive_max("global_max_pool2d", x, Pair(1), false).y; }
Tensor global_max_pool3d(const Tensor& x) { return adaptive_max("global_max_pool3d", x, Triple(1), false).y; }

}  // namespace clnet
