// Direct convolution of volumes for CPUs (kernels/conv/conv3d_cpu.cl), without the images that a kernel along the depth would be
// unfolded to, and the gradient of its input with all phases of a stride in one launch. Images are volumes of one slice.
#include <array>

#include "lib/ops/conv/conv2d_cpu.h"

namespace clnet::ops {

namespace {

/// One axis of a direction, from the source that it reads to the target that it makes.
struct Line {
  std::int64_t source, target, kernel, stride, before, dilation;
  bool backward;

  std::int64_t target_step() const { return backward ? stride : 1; }
  std::int64_t source_step() const { return backward ? 1 : stride; }
  std::int64_t phases() const { return std::min(target_step(), target); }
  /// The most positions that a phase has.
  std::int64_t count() const { return ceil_div(target, target_step()); }
  std::int64_t kernel_step() const { return backward ? stride / std::gcd(stride, dilation) : 1; }
  Axis axis(std::int64_t phase) const {
    return backward ? backward_axis(phase, target, kernel, stride, before, dilation)
                    : forward_axis(target, kernel, stride, before, dilation);
  }
};

struct Lines {
  std::array<Line, 3> all;  ///< depth, height, width
  std::int64_t volumes, in, out;
  std::int64_t lowest[3] = {}, reach[3] = {};  ///< the first element that position 0 reads, and how many from there on
  std::int64_t taps = 0;                       ///< of a phase along the depth, at most

  Lines(const Conv2dProblem& p, bool backward) {
    const auto windows = p.volume.value_or(DepthWindows{});
    const auto line = [&](auto x, auto y, auto kernel, auto stride, auto before, auto dilation) {
      return Line{backward ? y : x, backward ? x : y, kernel, stride, before, dilation, backward};
    };
    const auto& axis = windows.axis;
    all = {line(windows.depth, windows.out, windows.kernel, axis.stride, axis.before, axis.dilation),
           line(p.h, p.oh, p.kh, p.stride.height, p.top, p.dilation.height),
           line(p.w, p.ow, p.kw, p.stride.width, p.left, p.dilation.width)};
    volumes = p.n / windows.out;
    const auto of_volume = p.group_in() / windows.kernel;
    in = backward ? p.group_out() : of_volume;
    out = backward ? of_volume : p.group_out();
    for (std::size_t i = 0; i < 3; ++i) find_window(i);
  }
  std::int64_t terms() const { return in * taps; }
  std::int64_t window(std::size_t i, std::int64_t positions) const { return (positions - 1) * all[i].source_step() + reach[i]; }
  /// Elements that a position of each phase of rows and columns comes to.
  std::int64_t each() const { return all[1].target_step() * all[2].target_step(); }

 private:
  void find_window(std::size_t i) {
    std::int64_t low = 0, high = 0;
    bool any = false;
    for (std::int64_t phase = 0; phase < all[i].phases(); ++phase) {
      const auto axis = all[i].axis(phase);
      if (axis.taps == 0) continue;
      const auto last = axis.tap_first + (axis.taps - 1) * axis.tap_step;
      low = any ? std::min({low, axis.tap_first, last}) : std::min(axis.tap_first, last);
      high = any ? std::max({high, axis.tap_first, last}) : std::max(axis.tap_first, last);
      any = true;
      if (i == 0) taps = std::max(taps, axis.taps);
    }
    lowest[i] = low;
    reach[i] = high - low + 1;
  }
};

/// What a work-item makes; RB, WB, PB and CB are the kernel's names for the blocks.
struct VolumeBlocks {
  std::int64_t panels = 1, images = 1, rows_block = 1, columns_block = 1, panel_block = 1, term_block = 1;
  std::int64_t rows = 1, columns = 1, pitch = 1;  ///< the staged windows
  std::int64_t panel_size = 0, sums_size = 0;     ///< floats of local memory
  std::int64_t taps = 1;                          ///< of rows and columns, in all phases
  std::int64_t offsets() const { return term_block * taps; }
  std::int64_t total() const { return sums_size + term_block * pitch + offsets(); }
};

VolumeBlocks cut(const Conv2dProblem& p, const Lines& l, const Tile& tile, const DeviceInfo& device) {
  VolumeBlocks b;
  const auto &depth = l.all[0], &vertical = l.all[1], &horizontal = l.all[2];
  const auto slices = l.volumes * depth.count(), each = l.each();
  // Each phase has its own tiles, of which the last is not full.
  const auto block_pixels = tile.block * std::min<std::int64_t>(each, 4);
  b.panels = ceil_div(l.out, tile.lanes());
  b.panel_block = b.panels;
  b.taps = p.kh * p.kw;
  b.columns_block =
      horizontal.count() * each <= 4 * tile.block ? horizontal.count() : even_piece(horizontal.count(), block_pixels / each);
  const auto update = [&] {
    b.rows = l.window(1, b.rows_block);
    b.columns = l.window(2, b.columns_block);
    b.pitch = staged_pitch(b.images * b.rows, b.columns);
    const auto size = (b.images * b.rows_block * b.columns_block * each + tile.width) * tile.lanes();
    b.panel_size = b.term_block < l.terms() ? size : 0;
    b.sums_size = b.panel_size > 0 ? b.panel_block * size : size;
  };
  const auto halve = [&](std::int64_t& block, std::int64_t total) {
    block = even_piece(total, ceil_div(block, 2));
    update();
  };
  const auto items = [&] {
    return ceil_div(slices, b.images) * depth.phases() * p.groups * ceil_div(vertical.count(), b.rows_block) *
           ceil_div(horizontal.count(), b.columns_block) * ceil_div(b.panels, b.panel_block);
  };
  // The taps of one phase are read again and again.
  const auto taps = std::max<std::int64_t>(ceil_div(b.taps, each), 1);
  b.term_block = even_piece(std::max<std::int64_t>(l.terms(), 1),
                            std::clamp<std::int64_t>(first_level / (taps * tile.lanes() + cache_line), 1, 256));
  b.rows_block = even_piece(vertical.count(), block_pixels / (b.columns_block * each));
  if (b.rows_block == vertical.count() && b.columns_block == horizontal.count())
    b.images = even_piece(slices, block_pixels / (vertical.count() * horizontal.count() * each));
  update();
  const auto wanted = wanted_items(device);
  while (items() < wanted && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (items() < wanted && b.images > 1) halve(b.images, slices);
  while (items() < wanted && b.rows_block * b.columns_block > 2 * tile.pixels && b.rows_block > 1)
    halve(b.rows_block, vertical.count());
  const auto limit = scratch(device);
  while (b.sums_size > limit / 2 && b.panel_block > 1) halve(b.panel_block, b.panels);
  while (b.total() > limit && b.term_block > 8) halve(b.term_block, l.terms());
  while (b.total() > limit && b.images > 1) halve(b.images, slices);
  while (b.total() > limit && b.rows_block > 1) halve(b.rows_block, vertical.count());
  while (b.total() > limit && b.columns_block > 1) halve(b.columns_block, horizontal.count());
  while (b.total() > limit && b.term_block > 1) halve(b.term_block, l.terms());
  while (b.total() > limit && b.panel_block > 1) halve(b.panel_block, b.panels);
  return b;
}

/// What the kernel and the packing of its weights know of the axes.
void pass_lines(exec::Launch& launch, const Lines& l) {
  for (const auto field : {&Line::kernel, &Line::stride, &Line::before, &Line::dilation})
    for (const auto& line : l.all) launch.arg(line.*field);
  for (const auto& line : l.all) launch.arg(line.kernel_step());
  launch.arg(l.terms());
  if (l.all[0].backward) launch.define("BACKWARD", 1);
}

/// Whether channels fill the vectors as they are. Folding has as many as the kernel is deep times as many, but for each of them
/// an element to store and to load.
bool few_idle_lanes(const Conv2dProblem& p, const DepthWindows& windows, const DeviceInfo& device) {
  const auto width = vector_width(device);
  const auto lanes = [&](std::int64_t channels) {
    constexpr double single = 1.4;  // tiles of one vector take so long for what two take
    return channels <= width ? single * static_cast<double>(width)
                             : static_cast<double>(ceil_div(channels, 2 * width) * 2 * width);
  };
  const auto channels = p.group_in() / windows.kernel, folded = p.group_in();
  const double products =
      static_cast<double>(p.group_out() * p.kh * p.kw) / static_cast<double>(p.stride.height * p.stride.width);
  constexpr double element = 2;  // in instructions
  return products * static_cast<double>(windows.kernel) * lanes(channels) <=
         products * lanes(folded) + element * static_cast<double>(width * folded);
}

}  // namespace

bool conv3d_cpu_serves(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo& device) {
  if (direction == Conv2dDirection::backward_weights) return false;
  if (direction == Conv2dDirection::forward) return p.volume.has_value();
  const auto windows = p.volume.value_or(DepthWindows{});
  const auto across = p.stride.height * p.stride.width;
  // Phases with unequally many taps are faster in blocks of their own, and beyond so many phases a block has few pixels of each.
  constexpr std::int64_t most_phases = 16;
  if (!phases_are_even(windows, {p.kh, p.kw}, p.stride) || across > most_phases) return false;
  if (!p.volume) return across > 1;
  return few_idle_lanes(p, windows, device);
}

std::int64_t conv3d_cpu_floats(const Conv2dProblem& p, Conv2dDirection direction, const Tile& tile, const DeviceInfo& device) {
  return cut(p, Lines(p, direction == Conv2dDirection::backward_data), tile, device).total();
}

void conv3d_cpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  const bool backward = direction == Conv2dDirection::backward_data;
  const Lines l(p, backward);
  const auto& [depth, vertical, horizontal] = l.all;
  const Tile tile(recorder.config());
  const auto b = cut(p, l, tile, recorder.device());
  const auto taps = depth.kernel * vertical.kernel * horizontal.kernel, row = (backward ? l.out : l.in) * taps;  // of the weight
  const auto configured = [&](const char* name) -> exec::Launch& {
    return recorder.kernel(name, name).define("VW", tile.width).define("VECTORS", tile.vectors).define("TILE", tile.pixels);
  };
  const auto size = depth.phases() * p.groups * b.panels * tile.lanes() * l.terms() * vertical.kernel * horizontal.kernel;
  const auto packed = recorder.prepack({Shape{size}, Dtype::f32}, p.weight);
  auto& packing = configured("conv3d_pack_cpu").in("w", p.weight).out("packed", packed);
  packing.args({p.groups, l.in, l.out, backward ? row : taps, backward ? taps : row, vertical.target, horizontal.target});
  pass_lines(packing, l);
  packing.arg(b.term_block).range({b.panels, ceil_div(l.terms(), b.term_block), depth.phases() * p.groups}, {1, 1, 1});

  auto& launch = configured("conv3d_cpu").in("x", backward ? p.y : p.x).in("w", packed);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", backward ? p.x : p.y);
  launch.args({l.volumes, b.images, p.groups, l.in, l.out});
  for (const auto field : {&Line::source, &Line::target})
    for (const auto& line : l.all) launch.arg(line.*field);
  pass_lines(launch, l);
  launch
      .args({l.lowest[1], l.lowest[2], b.rows_block, b.columns_block, b.panel_block, b.term_block, b.rows, b.columns, b.pitch,
             b.panel_size})
      .local_memory(static_cast<std::size_t>(b.sums_size) * 4)
      .local_memory(static_cast<std::size_t>(b.term_block * b.pitch) * 4)
      .local_memory(static_cast<std::size_t>(b.offsets()) * 4)
      .range({ceil_div(b.panels, b.panel_block),
              ceil_div(vertical.count(), b.rows_block) * ceil_div(horizontal.count(), b.columns_block),
              ceil_div(l.volumes * depth.count(), b.images) * depth.phases() * p.groups},
             {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, p.groups * l.out, depth.target * vertical.target * horizontal.target);
}

}  // namespace clnet::ops
