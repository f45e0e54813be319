// max_unpool: elements put where max pooling found them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/pool/pool_axes.h"

namespace clnet {

namespace ops {

namespace {

/// Inputs: x and indices {planes, inputs}. Output: {planes, outputs}.
class MaxUnpool : public Op {
 public:
  explicit MaxUnpool(std::int64_t outputs) : outputs_(outputs) {}
  std::string_view name() const override { return "max_unpool"; }
  Fields fields() const override { return {{"outputs", outputs_}}; }

  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape.with(1, outputs_), inputs[0].dtype}}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto& index = inputs[1];
    const Tensor valid = logical_and(greater_equal(index, 0.0), less(index, static_cast<double>(outputs_)));
    const Tensor picked = gather(gradients[0], 1, index);
    return {where(valid, picked, scalar_like(0, picked)), Tensor{}};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    const auto planes = shape[0], count = shape[1], all = planes * outputs_;
    recorder.kernel("max_unpool", "max_unpool").define("FILL", 1).out("y", recorder.output()).args({all}).range({all}, {64});
    // A work-item per plane, so that the last of several wins; no more elements at once than llvmpipe's loops reach.
    constexpr std::int64_t most = 50000;
    for (std::int64_t begin = 0; begin < count; begin += most)
      recorder.kernel("max_unpool", "max_unpool")
          .in("x", recorder.input(0))
          .in("index", recorder.input(1))
          .inout("y", recorder.output())
          .args({planes, count, outputs_, begin, std::min(begin + most, count)})
          .range({planes}, {1})
          .detail(fmt::format("{} x {} to {}", planes, count, outputs_));
  }

 private:
  std::int64_t outputs_;
};

template <class Size, class Options>
Tensor unpool(std::string_view op, const Tensor& x, const Tensor& indices, const Size& kernel_size, const Options& options) {
  require_defined(op, {{"x", x}, {"indices", indices}});
  const auto kernel = by_axis(kernel_size), stride = by_axis(options.stride.value_or(kernel_size));
  const auto first = before(options.padding), last = after(options.padding);
  require_axes(op, x.spec(), kernel.size());
  if (indices.dtype() != Dtype::i32 && indices.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("{}: indices must be i32 or i64, got {}", op, to_string(indices.spec())));
  if (indices.shape() != x.shape())
    throw ShapeError(
        fmt::format("{}: indices {} do not have the shape of {}", op, to_string(indices.spec()), to_string(x.spec())));
  const auto rank = static_cast<int>(kernel.size());
  const auto shape = x.shape();
  Extents extents(shape.begin(), shape.end() - rank);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    if (kernel[i] < 1 || stride[i] < 1 || first[i] < 0 || last[i] < 0 ||
        std::max({kernel[i], stride[i], first[i], last[i]}) > most)
      throw ShapeError(fmt::format("{}: kernel size {}, stride {} and padding {} and {} are not from 1 (padding: 0) to {}", op,
                                   kernel[i], stride[i], first[i], last[i], most));
    auto extent = (x.size(static_cast<int>(i) - rank) - 1) * stride[i] + kernel[i] - first[i] - last[i];
    if (options.output_size) {
      const auto wanted = by_axis(*options.output_size)[i];
      if (wanted <= extent - stride[i] || wanted >= extent + stride[i])
        throw ShapeError(fmt::format("{}: output size {} of {} is not between {} and {}", op, wanted, to_string(x.spec()),
                                     extent - stride[i] + 1, extent + stride[i] - 1));
      extent = wanted;
    }
    if (extent < 1) throw ShapeError(fmt::format("{}: {} gives an output of {}", op, to_string(x.spec()), extent));
    extents.push_back(extent);
  }
  const auto planes = x.size(0) * (x.rank() == rank + 2 ? x.size(1) : 1);
  const Shape result(std::move(extents));
  if (planes == 0) return zeros(result, x.dtype());
  const Shape flat{planes, x.numel() / planes};
  return reshape(apply(std::make_shared<MaxUnpool>(result.numel() / planes), {reshape(x, flat), reshape(indices, flat)}), result);
}

}  // namespace

}  // namespace ops

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, std::int64_t kernel_size, const MaxUnpool1dOptions& options) {
  return ops::unpool("max_unpool1d", x, indices, kernel_size, options);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Pair kernel_size, const MaxUnpool2dOptions& options) {
  return ops::unpool("max_unpool2d", x, indices, kernel_size, options);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, Triple kernel_size, const MaxUnpool3dOptions& options) {
  return ops::unpool("max_unpool3d", x, indices, kernel_size, options);
}

}  // namespace clnet
