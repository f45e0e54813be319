// Three convolutions in strips of rows (kernels/conv/conv2d_strips_cpu.cl): how high a strip is, and how much of each of the
// three is in registers at a time.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "lib/ops/conv/conv2d_cpu.h"
#include "lib/ops/conv/conv2d_strips.h"

namespace clnet::ops {

namespace {

/// Floats that a work-item has in local memory at most: half of the second-level caches of 1 MiB, or all of the smaller ones,
/// which a strip is read through twice.
constexpr std::int64_t strip_limit = (512 << 10) / 4;
/// Pixels whose sums of the third convolution are taken before they are stored.
constexpr std::int64_t wanted_block = 112;

bool is_pointwise(const Conv2dProblem& p) {
  return p.kh == 1 && p.kw == 1 && p.stride.height == 1 && p.stride.width == 1 && p.oh == p.h && p.ow == p.w && p.top == 0 &&
         p.left == 0 && p.groups == 1;
}

struct Strip {
  std::int64_t width, vectors, rows;  ///< lanes, and of the first convolution's channels so many vectors at a time
  std::int64_t outs;                  ///< vectors of the third one's
  std::int64_t first, second, third;  ///< pixels in registers
  std::int64_t window, pitch, block;  ///< rows and columns of the first one's results with zeros around them; pixels of the third
  std::int64_t seen_rows = 0, seen_columns = 0, seen_size = 0;  ///< of a window of the first one's input; nothing where it is 1x1
  std::int64_t expanded, made, sums, seen = 0;                  ///< floats

  Strip(const Conv2dStrips& p, std::int64_t lanes, std::int64_t of_vectors, std::int64_t of_rows)
      : width(lanes), vectors(of_vectors), rows(of_rows) {
    const auto& d = p.depthwise;
    const bool many = width == 16;  // 32 registers
    outs = p.projection.o <= width ? 1 : 2;
    window = (rows - 1) * d.stride.height + d.kh;
    pitch = std::max(d.left + d.w, (d.ow - 1) * d.stride.width + d.kw);
    const auto pixels = rows * d.ow, least = last_rows(d) * d.ow;
    const auto cut = [](std::int64_t all) { return even_piece(all, wanted_block); };
    block = cut(pixels);
    // What is left for the last block of each strip.
    const auto rest = [&](std::int64_t all) { return all - (ceil_div(all, block) - 1) * block; };
    const bool by_rows = !is_pointwise(p.expansion);
    first = std::min<std::int64_t>(vectors == 3   ? (many ? 8 : 4)
                                   : vectors == 2 ? (many ? 14 : 6)
                                                  : (many ? 14 : 8),
                                   by_rows ? d.w : fewest_seen(d) * d.w);
    second = std::min<std::int64_t>(many ? 7 : 4, d.ow);
    third = std::min<std::int64_t>(many ? 14 : outs == 2 ? 6 : 8, std::min(rest(pixels), rest(least)));
    expanded = vectors * window * pitch * width;
    made = pixels * p.expansion.o;
    sums = (block + width) * outs * width;
    if (!by_rows) return;
    const auto& e = p.expansion;
    seen_rows = (window - 1) * e.stride.height + e.kh;
    seen_columns = (d.w - 1) * e.stride.width + e.kw;
    seen_size = staged_pitch(seen_rows, seen_columns);
    seen = e.c * seen_size;
  }
  explicit Strip(const Conv2dStrips& p, const exec::Config& config)
      : Strip(p, config["lanes"], config["vectors"], config["rows"]) {}

  std::int64_t floats() const { return expanded + made + sums + seen; }
  std::int64_t count(const Conv2dProblem& d) const { return ceil_div(d.oh, rows); }
  /// Of the last strip.
  std::int64_t last_rows(const Conv2dProblem& d) const { return d.oh - (count(d) - 1) * rows; }
  /// Rows of the image that a strip from `row` on sees.
  std::int64_t rows_seen(const Conv2dProblem& d, std::int64_t row) const {
    const auto source = row * d.stride.height - d.top, high = (std::min(rows, d.oh - row) - 1) * d.stride.height + d.kh;
    return std::max<std::int64_t>(0, std::min(high, d.h - source) - std::max<std::int64_t>(0, -source));
  }
  /// The fewest of a strip that sees any.
  std::int64_t fewest_seen(const Conv2dProblem& d) const {
    auto least = d.h;
    for (std::int64_t row = 0; row < d.oh; row += rows)
      if (const auto here = rows_seen(d, row); here > 0) least = std::min(least, here);
    return least;
  }
  /// Multiply-adds of the thread that has the most strips.
  double cost(const Conv2dStrips& p, const DeviceInfo& device) const {
    const auto& d = p.depthwise;
    const auto each = window * d.w * p.expansion.c * p.expansion.kh * p.expansion.kw * p.expansion.o +
                      rows * d.ow * p.expansion.o * (d.kh * d.kw + ceil_div(p.projection.o, outs * width) * outs * width);
    return static_cast<double>(ceil_div(count(d) * d.n, device.compute_units)) * static_cast<double>(each);
  }
};

std::int64_t limit(const DeviceInfo& device) {
  return std::min<std::int64_t>(strip_limit, static_cast<std::int64_t>(device.local_memory) / 4);
}

/// The strips of so many lanes that fit into the caches, those first that keep the threads busy with the fewest rows made twice.
std::vector<Strip> strips(const Conv2dStrips& p, std::int64_t width, const DeviceInfo& device) {
  std::vector<Strip> result;
  for (const std::int64_t vectors : {3, 2, 1}) {
    if (p.expansion.o % (vectors * width) != 0) continue;
    std::int64_t tried = 0;
    for (std::int64_t count = 1; count <= p.depthwise.oh; ++count) {
      const auto rows = ceil_div(p.depthwise.oh, count);
      if (std::exchange(tried, rows) == rows) continue;
      if (const Strip strip(p, width, vectors, rows); strip.floats() <= limit(device)) result.push_back(strip);
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [&](const Strip& a, const Strip& b) { return a.cost(p, device) < b.cost(p, device); });
  return result;
}

bool is_plain(const Conv2dProblem& p) { return p.slices == 1 && !p.volume && p.n > 0 && p.c > 0 && p.o > 0 && p.pixels() > 0; }

/// The weight in panels: see conv2d_pack_cpu.
exec::Ref packed(const Conv2dProblem& p, std::int64_t lanes, exec::Recorder& recorder) {
  const auto in = p.group_in(), panels = ceil_div(p.o, lanes), taps = p.kh * p.kw;
  const auto result = recorder.prepack({Shape{panels * lanes * in * taps}, Dtype::f32}, p.weight);
  recorder.kernel("conv2d_pack_cpu", "conv2d_pack_cpu")
      .define("LANES", lanes)
      .in("w", p.weight)
      .out("packed", result)
      .args({in, p.o, taps, in * taps, p.kw, p.kh, p.kw, 0, 0, 1, 1, in})
      .range({panels, 1, 1}, {1, 1, 1});
  return result;
}

}  // namespace

std::string Conv2dStrips::text() const {
  return fmt::format("{} {}x{} s{}x{} {}", expansion.text(), depthwise.kh, depthwise.kw, depthwise.stride.height,
                     depthwise.stride.width, projection.o);
}

std::optional<std::string> conv2d_strips_cpu_rejects(const Conv2dStrips& p, const DeviceInfo& device) {
  const auto& d = p.depthwise;
  if (!device.prefers_vector_kernels) return "the device is no CPU with vectors";
  if (!is_plain(p.expansion) || !is_plain(d) || !is_plain(p.projection)) return "nothing to compute, or a volume";
  if (p.expansion.dtype != Dtype::f32) return "elements are not f32";
  if (!is_pointwise(p.projection)) return "the last convolution is not 1x1";
  const auto& e = p.expansion;
  if (e.groups != 1) return "the first one has groups";
  if (e.stride.height != e.stride.width || e.stride.height > 2) return "the first one's strides differ or are not 1 or 2";
  if (e.dilation.height != 1 || e.dilation.width != 1 || e.top < 0 || e.left < 0)
    return "the first one is dilated, or its padding negative";
  if (d.groups != d.c || d.o != d.c) return "the one between is not depthwise";
  if (d.stride.height != d.stride.width || d.stride.height > 2) return "its strides differ or are not 1 or 2";
  if (d.dilation.height != 1 || d.dilation.width != 1) return "it is dilated";
  if (d.top < 0 || d.left < 0) return "its padding is negative";
  if (d.kh > 7 || d.kw > 7) return "its taps do not fit into the registers";
  if (e.c * e.kh * e.kw > 256) return "the sums of the first one are long";
  if (p.expansion.o % vector_width(device) != 0) return "its channels are not whole vectors";
  if (strips(p, vector_width(device), device).empty()) return "not even one row of all channels fits into the caches";
  return std::nullopt;
}

std::optional<std::string> conv2d_strips_cpu_declines(const Conv2dStrips& p, const DeviceInfo& device) {
  if (p.depthwise.kh * p.depthwise.kw > 9) return "it was measured with 3x3 only";
  // Apart, the three take about twice as long, if there is work for all threads.
  const auto threads = static_cast<double>(device.compute_units);
  if (strips(p, vector_width(device), device).front().cost(p, device) * threads > 1.5 * p.flops() / 2)
    return "for so many threads its strips are few, or so low that most rows of the first one are made twice";
  return std::nullopt;
}

std::vector<exec::Config> conv2d_strips_cpu_configs(const Conv2dStrips& p, const DeviceInfo& device) {
  // Measured: fewer lanes take a tenth longer even where 16 run in halves.
  constexpr std::size_t most = 8, of_fewer_lanes = 2;
  std::vector<exec::Config> result;
  for (const auto width : vector_widths(device)) {
    const auto all = strips(p, width, device);
    const auto count = std::min(all.size(), width == vector_width(device) ? most : of_fewer_lanes);
    for (const auto& strip : std::span(all).first(count))
      result.push_back({{"lanes", width}, {"vectors", strip.vectors}, {"rows", strip.rows}});
  }
  return result;
}

void conv2d_strips_cpu(const Conv2dStrips& p, exec::Recorder& recorder) {
  const Strip s(p, recorder.config());
  const auto &e = p.expansion, &d = p.depthwise, &o = p.projection;
  const auto w1 = packed(e, s.vectors * s.width, recorder), w2 = packed(d, s.width, recorder),
             w3 = packed(o, s.outs * s.width, recorder);
  auto& launch = recorder.kernel("conv2d_strips_cpu", "conv2d_strips_cpu");
  launch.define("VW", s.width)
      .define("VECTORS1", s.vectors)
      .define("TILE1", s.first)
      .define("TILE2", s.second)
      .define("VECTORS", s.outs)
      .define("TILE", s.third)
      .define("STEP", d.stride.height)
      .define("KH", d.kh)
      .define("KW", d.kw);
  launch.in("x", e.x).in("w1", w1);
  if (e.has_bias()) launch.in("bias1", e.bias).define("BIAS1", 1);
  launch.in("w2", w2);
  if (d.has_bias()) launch.in("bias2", d.bias).define("BIAS2", 1);
  launch.in("w3", w3);
  if (o.has_bias()) launch.in("bias", o.bias).define("BIAS", 1);
  launch.out("y", o.y)
      .args({e.c, d.h, d.w, d.c, d.oh, d.ow, o.o, d.top, d.left, s.rows, s.pitch, s.block})
      .local_memory(static_cast<std::size_t>(s.expanded) * 4)
      .local_memory(static_cast<std::size_t>(s.made) * 4)
      .local_memory(static_cast<std::size_t>(s.sums) * 4);
  if (is_pointwise(e))
    launch.arg(e.pixels());
  else
    launch.define("TAPS_H", e.kh)
        .define("TAPS_W", e.kw)
        .define("FIRST_STEP", e.stride.height)
        .args({e.h, e.w, e.top, e.left, s.seen_rows, s.seen_columns, s.seen_size})
        .local_memory(static_cast<std::size_t>(s.seen) * 4);
  launch.range({s.count(d), d.n, 2}, {1, 1, 1}).flops(p.flops()).detail(p.text());
  recorder.inner_epilogue(launch, 0, "INNER1", e.o, e.pixels());
  recorder.inner_epilogue(launch, 1, "INNER2", d.o, d.pixels());
  recorder.epilogue(launch, o.o, o.pixels());
}

}  // namespace clnet::ops
