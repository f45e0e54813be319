// Winograd's F(4x4, 3x3) turned round: the gradient of a weight of 3x3 from tiles of 4x4 gradients and 6x6 inputs, by 36 products
// instead of 144. Both are transformed for a part of the images, as many as the cache holds; the products of a part are 36
// products of matrices, summed over its tiles, of which at last the weight is made.
#include <fmt/format.h>

#include "lib/ops/conv/conv2d_cpu.h"
#include "lib/ops/conv/conv2d_winograd_cpu.h"
#include "lib/ops/matmul/matmul_solvers.h"

namespace clnet::ops {

namespace {

/// Floats of what both sides of a part become, and of the products of all parts.
constexpr std::int64_t part_limit = 4 << 20, sums_limit = 16 << 20;

struct WeightCut {
  std::int64_t width = 0, lanes_in = 0, lanes_out = 0;  ///< lanes of a vector; channels rounded up to whole vectors
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::int64_t images = 1, parts = 1, rows_block = 1;

  std::int64_t tiles() const { return tile_rows * tile_columns; }
  /// From one product's values to the next: not a multiple of a cache's way, lest the 36 fall into the same lines.
  static std::int64_t pitch(std::int64_t values) { return (ceil_div(values, 16) | 1) * 16; }
  std::int64_t pitch_in() const { return pitch(images * tiles() * lanes_in); }
  std::int64_t pitch_out() const { return pitch(images * tiles() * lanes_out); }
  std::int64_t pitch_sums() const { return pitch(lanes_in * lanes_out); }
  /// A part's sums, without what would follow the last product's.
  std::int64_t part_sums() const { return (winograd_products - 1) * pitch_sums() + lanes_in * lanes_out; }
  std::int64_t staged_size() const { return (winograd_out * rows_block + 2) * (winograd_out * tile_columns + 2) * width; }
};

WeightCut cut(const Conv2dProblem& p, std::int64_t width) {
  constexpr std::int64_t staged_limit = (128 << 10) / 4;
  WeightCut c{.width = width, .lanes_in = ceil_div(p.c, width) * width, .lanes_out = ceil_div(p.o, width) * width};
  c.tile_rows = ceil_div(p.oh, winograd_out);
  c.tile_columns = ceil_div(p.ow, winograd_out);
  const auto image = winograd_products * c.tiles() * (c.lanes_in + c.lanes_out),
             sums = winograd_products * c.lanes_in * c.lanes_out;
  const auto most_parts = std::max<std::int64_t>(1, sums_limit / sums);
  c.images = ceil_div(p.n, std::min(ceil_div(p.n, std::max<std::int64_t>(1, part_limit / image)), most_parts));
  c.parts = ceil_div(p.n, c.images);
  while (c.rows_block < c.tile_rows) {
    auto next = c;
    ++next.rows_block;
    if (next.staged_size() > staged_limit) break;
    c = next;
  }
  c.rows_block = even_piece(c.tile_rows, c.rows_block);
  return c;
}

}  // namespace

std::optional<std::string> conv2d_backward_weights_winograd_cpu_rejects(const Conv2dProblem& p, const DeviceInfo& device) {
  const auto c = cut(p, vector_width(device));
  if (p.top < 0 || p.left < 0 || p.left + p.w > winograd_out * c.tile_columns + 2) return "the padding is larger than the kernel";
  if (winograd_products * std::max({c.pitch_in(), c.pitch_out(), c.parts * c.pitch_sums()}) > winograd_indices)
    return "its tiles are too many when transformed";
  if (c.staged_size() > scratch(device)) return fmt::format("its rows take {} KiB of local memory", c.staged_size() / 256);
  return std::nullopt;
}

std::optional<std::string> conv2d_backward_weights_winograd_cpu_declines(const Conv2dProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t few = 16;
  if (std::min(p.c, p.o) < few) return "of few channels transforms cost what products save";
  if (2 * winograd_products * ceil_div(p.oh, winograd_out) * ceil_div(p.ow, winograd_out) > 9 * p.oh * p.ow)
    return "much of its tiles lies outside of the images";
  // Measured: as fast as direct sums where an image takes 58 MB, 1.8 times as fast with half of that.
  const auto c = cut(p, vector_width(device));
  if (winograd_products * c.tiles() * (c.lanes_in + c.lanes_out) > 3 * part_limit)
    return "an image's tiles are beyond the caches";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_backward_weights_winograd_cpu_configs(const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device)) result.push_back({{"lanes", lanes}});
  return result;
}

void conv2d_backward_weights_winograd_cpu(const Conv2dProblem& p, exec::Recorder& recorder) {
  const auto c = cut(p, recorder.config()["lanes"]);
  const auto configure = [&](exec::Launch& launch) -> exec::Launch& {
    return launch.define("VW", c.width).define("VECTORS", 1).define("TILE", 1).detail(p.text());
  };
  const auto blocks = ceil_div(c.tile_rows, c.rows_block);
  const auto sums = recorder.temporary({Shape{c.parts, c.part_sums()}, Dtype::f32});
  for (std::int64_t part = 0; part < c.parts; ++part) {
    const auto first = part * c.images, images = std::min(c.images, p.n - first);
    const auto inputs = recorder.temporary({Shape{winograd_products, c.pitch_in()}, Dtype::f32});
    configure(recorder.kernel("conv2d_winograd_input_cpu", "conv2d_winograd_input_cpu"))
        .in("x", p.x.at(first * p.c * p.h * p.w))
        .out("values", inputs)
        .args({images, 1, p.c, p.h, p.w, c.tile_rows, c.tile_columns, c.rows_block, p.top, p.left, c.pitch_in(), c.lanes_in})
        .local_memory(static_cast<std::size_t>(c.staged_size()) * 4)
        .range({blocks, images, c.lanes_in / c.width}, {1, 1, 1});
    const auto gradients = recorder.temporary({Shape{winograd_products, c.pitch_out()}, Dtype::f32});
    configure(recorder.kernel("conv2d_backward_weights_winograd_gradient_cpu", "conv2d_backward_weights_winograd_gradient_cpu"))
        .in("x", p.y.at(first * p.o * p.pixels()))
        .out("values", gradients)
        .args({p.o, p.oh, p.ow, c.tile_rows, c.tile_columns, c.rows_block, c.pitch_out(), c.lanes_out})
        .local_memory(static_cast<std::size_t>(c.staged_size()) * 4)
        .range({blocks, images, c.lanes_out / c.width}, {1, 1, 1});
    MatmulProblem product;
    product.a = gradients;
    product.b = inputs;
    product.c = sums.at(part * c.part_sums());
    product.m = c.lanes_out;
    product.n = c.lanes_in;
    product.k = images * c.tiles();
    product.transpose_a = true;
    product.batch = winograd_products;
    product.stride_a = c.pitch_out();
    product.stride_b = c.pitch_in();
    product.stride_c = c.pitch_sums();
    matmul_solvers().lower(product, recorder.device(), recorder);
  }
  const auto rows = std::max<std::int64_t>(1, p.o / wanted_items(recorder.device()));
  configure(recorder.kernel("conv2d_backward_weights_winograd_cpu", "conv2d_backward_weights_winograd_cpu"))
      .in("x", sums)
      .out("y", p.weight)
      .args({p.o, p.c, c.lanes_in, c.pitch_sums(), c.parts, c.part_sums(), rows})
      .range({ceil_div(p.o, rows)}, {1});
}

}  // namespace clnet::ops
