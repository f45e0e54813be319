// Tensors made from numbers: full and its relatives, arange.
#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"

namespace clnet {

namespace {

/// Inputs: the first value and the step, f64 for f64, f32 for other floating dtypes and i64 for others.
class Arange : public Op {
 public:
  Arange(std::int64_t count, Dtype dtype) : count_(count), dtype_(dtype) {}
  std::string_view name() const override { return "arange"; }
  Fields fields() const override { return {{"count", count_}, {"dtype", std::string(to_string(dtype_))}}; }

  Specs infer(const Specs&) const override { return {{{count_}, dtype_}}; }
  Expression expr(const Specs&) const override { return {"a + b * i"}; }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(2); }

 private:
  std::int64_t count_;
  Dtype dtype_;
};

}  // namespace

Tensor full(const Shape& shape, double value, Dtype dtype) { return expand(Tensor::scalar(value, dtype), shape); }
Tensor zeros(const Shape& shape, Dtype dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, Dtype dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) {
  require_defined("zeros_like", {{"x", x}});
  return zeros(x.shape(), x.dtype());
}
Tensor ones_like(const Tensor& x) {
  require_defined("ones_like", {{"x", x}});
  return ones(x.shape(), x.dtype());
}

Tensor full_like(const Tensor& x, double value) {
  require_defined("full_like", {{"x", x}});
  return full(x.shape(), value, x.dtype());
}

Tensor linspace(double start, double stop, std::int64_t count, Dtype dtype) {
  if (!is_floating(dtype)) throw DtypeError(fmt::format("linspace: needs f32, f16, bf16 or f64, got {}", to_string(dtype)));
  if (count < 0) throw ShapeError(fmt::format("linspace: {} values", count));
  const double last = static_cast<double>(count) - 1, step = last > 0 ? (stop - start) / last : 0;
  // From either end to the middle, so that both ends are exact.
  const Tensor places = arange(count, 0, 1, dtype == Dtype::f64 ? dtype : Dtype::f32);
  return cast(where(less(places, last / 2 + 0.25), places * step + start, stop - (last - places) * step), dtype);
}

Tensor logspace(double start, double stop, std::int64_t count, double base, Dtype dtype) {
  if (!is_floating(dtype)) throw DtypeError(fmt::format("logspace: needs f32, f16, bf16 or f64, got {}", to_string(dtype)));
  if (count < 0) throw ShapeError(fmt::format("logspace: {} values", count));
  return cast(pow(base, linspace(start, stop, count, dtype == Dtype::f64 ? dtype : Dtype::f32)), dtype);
}

Tensor eye(std::int64_t rows, std::int64_t columns, Dtype dtype) {
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0) throw ShapeError(fmt::format("eye: {} rows and {} columns", rows, columns));
  return cast(eq(reshape(arange(rows), Shape{rows, 1}), arange(columns)), dtype);
}

Tensor arange(std::int64_t count, double start, double step, Dtype dtype) {
  if (count < 0) throw ShapeError(fmt::format("arange: {} values", count));
  if (dtype == Dtype::boolean) throw DtypeError("arange: bool holds no sequence of numbers");
  if (!is_floating(dtype) && (start != std::floor(start) || step != std::floor(step)))
    throw Error(fmt::format("arange: start {} and step {} must be whole numbers for dtype {}", start, step, to_string(dtype)));
  const auto wide = dtype == Dtype::f64 ? dtype : is_floating(dtype) ? Dtype::f32 : Dtype::i64;
  return apply(std::make_shared<Arange>(count, dtype), {Tensor::scalar(start, wide), Tensor::scalar(step, wide)});
}

}  // namespace clnet
