// Random tensors of other distributions, of uniform and normal ones.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"

namespace clnet {

namespace {

void require_real(std::string_view op, Dtype dtype) {
  if (!is_floating(dtype)) throw DtypeError(fmt::format("{}: needs f32, f16, bf16 or f64, got {}", op, to_string(dtype)));
}

void require_normal(std::string_view op, double mean, double stddev) {
  if (!std::isfinite(mean) || !(stddev >= 0) || std::isinf(stddev))
    throw Error(fmt::format("{}: there is no mean {} with a standard deviation of {}", op, mean, stddev));
}

}  // namespace

Tensor rand_like(const Tensor& x) {
  require_defined("rand_like", {{"x", x}});
  require_real("rand_like", x.dtype());
  return rand(x.shape(), x.dtype());
}

Tensor randn_like(const Tensor& x) {
  require_defined("randn_like", {{"x", x}});
  require_real("randn_like", x.dtype());
  return randn(x.shape(), x.dtype());
}

Tensor normal(double mean, double stddev, const Shape& shape, Dtype dtype) {
  require_real("normal", dtype);
  require_normal("normal", mean, stddev);
  return cast(randn(shape, ops::computed_in(dtype)) * stddev + mean, dtype);
}

Tensor truncated_normal(const Shape& shape, double mean, double stddev, double low, double high, Dtype dtype) {
  require_real("truncated_normal", dtype);
  require_normal("truncated_normal", mean, stddev);
  // What lies below the bounds, as erf() counts: from -1 to 1.
  const double least = std::erf((low - mean) / (stddev * std::numbers::sqrt2)),
               most = std::erf((high - mean) / (stddev * std::numbers::sqrt2));
  constexpr double rounding = 0x1p-20;
  if (!(most - least > rounding))
    throw Error(
        fmt::format("truncated_normal: next to nothing of mean {} and deviation {} lies from {} to {}", mean, stddev, low, high));
  const Tensor spread =
      erfinv(rand(shape, ops::computed_in(dtype)) * (most - least) + least) * (stddev * std::numbers::sqrt2) + mean;
  return cast(clamp(spread, low, high), dtype);
}

Tensor exponential(const Shape& shape, double rate, Dtype dtype) {
  require_real("exponential", dtype);
  if (!(rate > 0) || std::isinf(rate)) throw Error(fmt::format("exponential: the rate {} is not positive", rate));
  // Never 0 or infinite.
  const Tensor waits = -log(clamp(rand(shape, ops::computed_in(dtype)), 0x1p-25, 1 - 0x1p-24));
  return cast(rate == 1 ? waits : waits / rate, dtype);
}

}  // namespace clnet
