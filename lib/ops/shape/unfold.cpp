// unfold and fold: elements of padded images chosen by the places that windows see, and added up there.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/index_add.h"

namespace clnet {

namespace {

/// Windows over an image.
struct Windows {
  Pair kernel;
  std::int64_t height = 0, width = 0;  ///< of the padded image
  std::int64_t rows = 0, columns = 0;  ///< of windows
  UnfoldOptions options;

  Windows(std::string_view op, Pair image, Pair size, const UnfoldOptions& o) : kernel(size), options(o) {
    const auto &p = o.padding, &d = o.dilation, &s = o.stride;
    constexpr std::int64_t most = 1 << 30;
    for (const auto number : {size.height, size.width, d.height, d.width, s.height, s.width})
      if (number < 1 || number > most) throw ShapeError(fmt::format("{}: kernel, dilation and stride must be positive", op));
    for (const auto number : {p.height, p.width, image.height, image.width})
      if (number < 0 || number > most) throw ShapeError(fmt::format("{}: padding and size must not be negative", op));
    height = image.height + 2 * p.height;
    width = image.width + 2 * p.width;
    const auto reach = [](std::int64_t own, std::int64_t apart) { return apart * (own - 1) + 1; };
    const auto tall = reach(size.height, d.height), broad = reach(size.width, d.width);
    if (tall > height || broad > width)
      throw ShapeError(fmt::format("{}: windows of {} x {} do not fit into the padded {} x {}", op, tall, broad, height, width));
    rows = (height - tall) / s.height + 1;
    columns = (width - broad) / s.width + 1;
  }

  std::int64_t count() const { return rows * columns; }
  std::int64_t area() const { return kernel.height * kernel.width; }

  /// The places in the padded image that element [i, j] of window [row, column] sees, flat.
  Tensor places() const {
    const auto along = [](std::int64_t count, std::int64_t step, const Shape& shape) {
      return reshape(arange(count, 0, static_cast<double>(step), Dtype::i32), shape);
    };
    const auto &d = options.dilation, &s = options.stride;
    const Tensor inside =
        along(kernel.height, d.height * width, {kernel.height, 1, 1, 1}) + along(kernel.width, d.width, {kernel.width, 1, 1});
    const Tensor all = inside + along(rows, s.height * width, {rows, 1}) + along(columns, s.width, {columns});
    return reshape(all, Shape{area() * count()});
  }
};

}  // namespace

Tensor unfold(const Tensor& x, Pair kernel_size, const UnfoldOptions& options) {
  require_defined("unfold", {{"x", x}});
  ops::require_floating("unfold", x.spec());
  if (x.rank() == 3) return squeeze(unfold(unsqueeze(x, 0), kernel_size, options), 0);
  if (x.rank() != 4) throw ShapeError(fmt::format("unfold: {} is not {{N, C, H, W}} or {{C, H, W}}", to_string(x.spec())));
  const Windows windows("unfold", {x.size(2), x.size(3)}, kernel_size, options);
  const auto vertical = options.padding.height, horizontal = options.padding.width;
  const Tensor padded = pad(x, {0, 0, vertical, horizontal}, {0, 0, vertical, horizontal});
  const Tensor lines = reshape(padded, Shape{x.size(0), x.size(1), windows.height * windows.width});
  return reshape(index_select(lines, 2, windows.places()), Shape{x.size(0), x.size(1) * windows.area(), windows.count()});
}

Tensor fold(const Tensor& columns, Pair output_size, Pair kernel_size, const UnfoldOptions& options) {
  require_defined("fold", {{"columns", columns}});
  ops::require_floating("fold", columns.spec());
  if (columns.rank() == 2) return squeeze(fold(unsqueeze(columns, 0), output_size, kernel_size, options), 0);
  const Windows windows("fold", output_size, kernel_size, options);
  if (columns.rank() != 3 || columns.size(1) % windows.area() != 0 || columns.size(2) != windows.count())
    throw ShapeError(fmt::format("fold: {} is not {{N, C {}, {}}}, columns of {} windows", to_string(columns.spec()),
                                 windows.area(), windows.count(), windows.count()));
  const auto batch = columns.size(0), channels = columns.size(1) / windows.area();
  const Tensor lines = reshape(columns, Shape{batch, channels, windows.area() * windows.count()});
  const Tensor sums = ops::added_at(lines, 2, windows.places(), false, Shape{batch, channels, windows.height * windows.width});
  const auto vertical = -options.padding.height, horizontal = -options.padding.width;
  return pad(reshape(sums, Shape{batch, channels, windows.height, windows.width}), {0, 0, vertical, horizontal},
             {0, 0, vertical, horizontal});
}

}  // namespace clnet
