// Normalisations that others make up: over groups of channels, by the root of the mean square, and over neighbouring channels.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

using ops::as_f32;

namespace {

/// {C} as {1, C, 1, ...}, in f32.
Tensor per_channel(std::string_view op, std::string_view name, const Tensor& values, const Tensor& x) {
  if (values.shape() != Shape{x.size(1)})
    throw ShapeError(fmt::format("{}: {} {} is not one value for each channel of {}", op, name, to_string(values.spec()),
                                 to_string(x.spec())));
  ops::require_floating(op, values.spec());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  extents[1] = x.size(1);
  return as_f32(reshape(values, Shape(extents)));
}

Tensor grouped(std::string_view op, const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  ops::require_floating(op, x.spec());
  if (x.rank() < 2) throw ShapeError(fmt::format("{}: {} has no channels", op, to_string(x.spec())));
  if (groups < 1 || x.size(1) % groups != 0)
    throw ShapeError(fmt::format("{}: {} channels of {} do not make {} groups", op, x.size(1), to_string(x.spec()), groups));
  if (x.numel() == 0) return x;
  const bool plain = !weight.defined() && !bias.defined();
  const Tensor rows = reshape(plain ? x : as_f32(x), Shape{x.size(0), groups, x.numel() / (x.size(0) * groups)});
  Tensor y = reshape(layer_norm(rows, 1, {}, {}, eps), x.shape());
  if (weight.defined()) y = y * per_channel(op, "weight", weight, x);
  if (bias.defined()) y = y + per_channel(op, "bias", bias, x);
  return composed(ops::rounded(y, x.dtype()), [&] {
    return Composition{op, {x, weight, bias}, {{"groups", groups}, {"eps", eps}}, {}};
  });
}

}  // namespace

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  require_defined("group_norm", {{"x", x}});
  return grouped("group_norm", x, groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  require_defined("instance_norm", {{"x", x}});
  if (x.rank() < 3)
    throw ShapeError(fmt::format("instance_norm: {} is no {{N, C, ...}} of several elements", to_string(x.spec())));
  return grouped("instance_norm", x, std::max<std::int64_t>(1, x.size(1)), weight, bias, eps);
}

Tensor rms_norm(const Tensor& x, int normalized_dims, const Tensor& weight, double eps) {
  require_defined("rms_norm", {{"x", x}});
  ops::require_floating("rms_norm", x.spec());
  const int dims = weight.defined() ? weight.rank() : normalized_dims;
  if (dims < 1 || dims > x.rank())
    throw ShapeError(fmt::format("rms_norm: {} has no {} last dimensions", to_string(x.spec()), dims));
  Dims last;
  for (int d = -dims; d < 0; ++d) last.push_back(d);
  const Tensor all = as_f32(x);
  Tensor y = all * rsqrt(mean(square(all), last, true) + eps);
  if (weight.defined()) {
    for (int d = 1; d <= dims; ++d)
      if (weight.size(-d) != x.size(-d))
        throw ShapeError(fmt::format("rms_norm: weight {} is not of the last dimensions of {}", to_string(weight.spec()),
                                     to_string(x.spec())));
    ops::require_floating("rms_norm", weight.spec());
    y = y * as_f32(weight);
  }
  return composed(ops::rounded(y, x.dtype()), [&] {
    return Composition{"rms_norm", {x, weight}, {{"dims", std::int64_t{dims}}, {"eps", eps}}, {}};
  });
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha, double beta, double k) {
  require_defined("local_response_norm", {{"x", x}});
  ops::require_floating("local_response_norm", x.spec());
  if (x.rank() < 2) throw ShapeError(fmt::format("local_response_norm: {} has no channels", to_string(x.spec())));
  if (size < 1) throw Error(fmt::format("local_response_norm: size {} is not positive", size));
  if (x.numel() == 0) return x;
  const Tensor all = as_f32(x);
  const auto c = x.size(1), inner = x.numel() / (x.size(0) * c);
  const Tensor squares = reshape(square(all), Shape{x.size(0), 1, c, inner});
  const Tensor padded = pad(squares, {0, 0, size / 2, 0}, {0, 0, (size - 1) / 2, 0});
  const Tensor means = reshape(avg_pool2d(padded, {size, 1}, {.stride = 1}), x.shape());
  return composed(ops::rounded(all * pow(means * alpha + k, -beta), x.dtype()), [&] {
    return Composition{"local_response_norm", {x}, {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"k", k}}, {}};
  });
}

}  // namespace clnet
