// Convolution as matrix products over unfolded images, a chunk of the batch at a time.
//
// With columns = (image, output pixel) of a chunk and, for every group, rows = (channel, kh, kw):
//   y' {out, columns} = weight {out, rows} col {rows, columns}, then swapped to {image, out, pixel}
//   col = weight^T y', then folded into dx
//   dweight = y' col^T, summed over the chunks
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/ops/conv/conv2d.h"
#include "lib/ops/matmul/matmul_solvers.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t workspace_limit = 64 << 20;

std::int64_t rows(const Conv2dProblem& p) { return p.c * p.kh * p.kw; }
/// Bytes per image of the unfolded images and of the output's copy.
std::int64_t bytes_per_image(const Conv2dProblem& p) { return 4 * (rows(p) + p.o) * p.pixels(); }
std::int64_t chunk_size(const Conv2dProblem& p) { return std::clamp<std::int64_t>(workspace_limit / bytes_per_image(p), 1, p.n); }

class Chunks {
 public:
  Chunks(const Conv2dProblem& problem, exec::Recorder& recorder) : p(problem), r(recorder), chunk(chunk_size(problem)) {}

  void forward() {
    const auto weight = as_f32(p.weight);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      unfold(first, count);
      const auto columns = count * p.pixels(), k = rows(p) / p.groups, m = p.group_out();
      multiply(weight, col, y, m, columns, k);
      write_images(first, count);
    });
  }

  void backward_data() {
    const auto weight = as_f32(p.weight);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      swap(p.y.at(first * p.o * p.pixels()), y, count, p.o, p.pixels());
      const auto columns = count * p.pixels(), m = rows(p) / p.groups, k = p.group_out();
      multiply(weight, y, col, m, columns, k, true);
      const auto image = p.c * p.h * p.w;
      auto& launch = r.kernel("conv2d_col2im", "conv2d_col2im").in("col", col).out("x", p.x.at(first * image));
      sizes(launch.touches(count * image), columns).range({p.h * p.w, count * p.c}, {64, 1});
      r.epilogue(launch, p.c, p.h * p.w);
    });
  }

  void backward_weights() {
    const auto parts = (p.n + chunk - 1) / chunk, size = p.weight_size();
    const bool in_place = parts == 1 && p.dtype == Dtype::f32;
    const auto sums = in_place ? p.weight : r.temporary({Shape{parts, size}, Dtype::f32});
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      unfold(first, count);
      swap(p.y.at(first * p.o * p.pixels()), y, count, p.o, p.pixels());
      const auto columns = count * p.pixels(), m = p.group_out(), n = rows(p) / p.groups;
      multiply(y, col, sums.at(first / chunk * size), m, n, columns, false, true);
    });
    if (!in_place) add_up_weight(p, sums, parts, r);
  }

 private:
  template <class Body>
  void for_each_chunk(Body body) {
    for (std::int64_t first = 0; first < p.n; first += chunk) {
      const auto count = std::min(chunk, p.n - first);
      col = r.temporary({Shape{rows(p), count * p.pixels()}, Dtype::f32});
      y = r.temporary({Shape{p.o, count * p.pixels()}, Dtype::f32});
      body(first, count);
    }
  }

  void unfold(std::int64_t first, std::int64_t count) {
    const auto columns = count * p.pixels();
    sizes(r.kernel("conv2d_im2col", "conv2d_im2col").in("x", p.x.at(first * p.c * p.h * p.w)).out("col", col), columns)
        .range({columns, p.c}, {64, 1});
  }

  exec::Launch& sizes(exec::Launch& launch, std::int64_t columns) {
    return launch.args({columns, p.c, p.h, p.w, p.kh, p.kw, p.oh, p.ow, p.stride.height, p.stride.width, p.top, p.left,
                        p.dilation.height, p.dilation.width});
  }

  void swap(exec::Ref from, exec::Ref to, std::int64_t a, std::int64_t b, std::int64_t pixels) {
    auto& launch = r.kernel("conv2d_swap", "conv2d_swap").in("x", from).out("y", to).touches(a * b * pixels);
    launch.args({a, b, pixels}).range({pixels, a * b}, {64, 1});
  }

  /// The products of a chunk to the images that they are of, with the bias. Slices lie apart.
  void write_images(std::int64_t first, std::int64_t count) {
    const bool apart = p.slices > 1;
    const auto plane = p.o * p.pixels();
    auto& launch = r.kernel("conv2d_swap", "conv2d_swap").in("x", y);
    if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
    launch.out("y", apart ? p.y : p.y.at(first * plane)).touches((apart ? p.n : count) * plane);
    if (apart && count < p.n) launch.scattered();
    launch.args({p.o, count, p.pixels()}).range({p.pixels(), p.o * count}, {64, 1});
    if (apart) launch.define("SLICES", 1).args({first, p.slices});
  }

  exec::Ref as_f32(exec::Ref ref) {
    const auto& spec = r.spec(ref);
    if (spec.dtype == Dtype::f32) return ref;
    const auto count = spec.shape.numel();
    const auto copy = r.temporary({spec.shape, Dtype::f32});
    swap(ref, copy, 1, 1, count);
    return copy;
  }

  /// One product {m, k} x {k, n} for every group.
  void multiply(exec::Ref a, exec::Ref b, exec::Ref c, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false,
                bool transpose_b = false) {
    MatmulProblem product;
    product.a = a;
    product.b = b;
    product.c = c;
    product.m = m;
    product.n = n;
    product.k = k;
    product.transpose_a = transpose_a;
    product.transpose_b = transpose_b;
    product.batch = p.groups;
    product.stride_a = m * k;
    product.stride_b = k * n;
    product.stride_c = m * n;
    matmul_solvers().lower(product, r.device(), r);
  }

  const Conv2dProblem& p;
  exec::Recorder& r;
  std::int64_t chunk;
  exec::Ref col, y;
};

}  // namespace

std::optional<std::string> conv2d_im2col_rejects(const Conv2dProblem& p, const DeviceInfo& device) {
  if (p.n == 0 || p.c == 0 || p.o == 0 || p.h == 0 || p.w == 0) return "nothing to compute";
  if (p.group_in() == 1 && p.group_out() == 1) return "depthwise: its matrix products are vectors";
  const auto bytes = 4 * std::max(rows(p), p.o) * p.pixels();
  if (bytes > static_cast<std::int64_t>(device.max_allocation) || bytes / 4 > std::numeric_limits<std::int32_t>::max())
    return fmt::format("one unfolded image takes {} bytes", bytes);
  return std::nullopt;
}

void conv2d_im2col(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder) {
  Chunks chunks(problem, recorder);
  switch (direction) {
    case Conv2dDirection::forward: chunks.forward(); break;
    case Conv2dDirection::backward_data: chunks.backward_data(); break;
    case Conv2dDirection::backward_weights: chunks.backward_weights(); break;
  }
}

}  // namespace clnet::ops
