// Average pooling of planes, which that of lines and volumes is made of.
#include <numeric>

#include "lib/exec/choose/solver.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/loops.h"
#include "lib/ops/pool/pool_axes.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

/// Either direction: `from` are the values that are averaged, or the gradients that are spread.
struct AvgPool2dProblem {
  exec::Ref from, to;
  std::int64_t planes = 0;
  PoolWindows windows;
  bool include_pad = true, backward = false;
  std::int64_t divisor = 0;  ///< 0: the number of elements

  std::int64_t height() const { return backward ? windows.h : windows.out_h; }
  std::int64_t width() const { return backward ? windows.w : windows.out_w; }
  std::int64_t results() const { return planes * height() * width(); }
};

/// With what all kernels need to know to divide.
exec::Launch& launch_of(const AvgPool2dProblem& p, exec::Recorder& recorder, std::string_view kernel) {
  auto& launch = recorder.kernel(kernel, kernel);
  if (p.include_pad) launch.define("INCLUDE_PAD", 1);
  if (p.divisor != 0) launch.define("DIVISOR_OVERRIDE", p.divisor);
  return launch;
}
/// The same for the kernels for CPUs, which have both directions and vectors.
exec::Launch& launch_on_cpu(const AvgPool2dProblem& p, exec::Recorder& recorder, std::string_view kernel) {
  auto& launch = launch_of(p, recorder, kernel).define("VW", recorder.config()["lanes"]).in("x", p.from).out("y", p.to);
  if (p.backward) launch.define("BACKWARD", 1);
  return launch;
}

void lower_direct(const AvgPool2dProblem& p, exec::Recorder& recorder) {
  auto& launch = launch_of(p, recorder, p.backward ? "avg_pool2d_backward_direct" : "avg_pool2d_direct");
  launch.in(p.backward ? "g" : "x", p.from).out(p.backward ? "dx" : "y", p.to);
  launch_pool(launch, p.windows, p.planes, p.height(), p.width(), 0);
  recorder.epilogue(launch, 1, p.results());
}

/// Results of a row that avg_pool2d_windows_cpu.cl makes at a time, and the columns that they see.
struct Block {
  std::int64_t results = 0, columns = 0;
};
Block block_of(const AvgPool2dProblem& p, const DeviceInfo& device) {
  const auto& windows = p.windows;
  const auto room = std::min<std::int64_t>(4096, static_cast<std::int64_t>(device.local_memory) / 32);
  if (p.backward) return {std::min(windows.w, room), 0};
  if (windows.w <= room) return {std::min(windows.out_w, room), windows.w};
  // The last of them may begin and end between columns.
  const auto results =
      windows.adaptive ? (room - 2) * windows.out_w / windows.w : (room - windows.kernel.width) / windows.stride.width + 1;
  const bool fits = windows.adaptive || windows.kernel.width <= room;
  return {fits ? std::min({results, windows.out_w, room}) : 0, room};
}

std::optional<std::string> rejects_windows(const AvgPool2dProblem& p, const DeviceInfo& device) {
  if (auto refusal = needs_vector_cpu(device)) return refusal;
  if (block_of(p, device).results < 1) return "a row of a window does not fit into local memory";
  return std::nullopt;
}

void lower_windows(const AvgPool2dProblem& p, exec::Recorder& recorder) {
  const auto& device = recorder.device();
  const auto block = block_of(p, device);
  const auto lanes = recorder.config()["lanes"];
  auto& launch = launch_on_cpu(p, recorder, "avg_pool2d_windows_cpu");
  launch_pool(launch, p.windows, p.planes, p.height(), p.width(), recorder.config()["rows"], false);
  launch.arg(block.results)
      .local_memory(static_cast<std::size_t>(block.columns + lanes) * 4)
      .local_memory(static_cast<std::size_t>(block.results + lanes) * 4);
  recorder.epilogue(launch, 1, p.results());
}

std::vector<exec::Config> windows_configs(const AvgPool2dProblem& p, const DeviceInfo& device) {
  return pool_configs(pool_rows(p.planes, p.height(), device), vector_widths(device));
}

/// What a work-item of avg_pool2d_strips_cpu.cl takes at a time, and has in local memory.
struct Strips {
  std::int64_t rows = 1;               ///< whole vectors of results, if there are enough
  std::int64_t pitch = 0, floats = 0;  ///< of a row of sums (three, and one of counts); altogether
};
Strips cut(const AvgPool2dProblem& p, std::int64_t lanes) {
  const auto& windows = p.windows;
  const auto margin = 2 * (lanes + windows.kernel.width);
  Strips s;
  s.rows = std::min(p.height(), lanes / std::gcd(p.width(), lanes));
  s.pitch = std::max(windows.w, windows.out_w) + margin;
  s.floats = 4 * s.pitch + s.rows * p.width() + margin;
  return s;
}

std::optional<std::string> rejects_strips(const AvgPool2dProblem& p, const DeviceInfo& device) {
  const auto& windows = p.windows;
  if (auto refusal = needs_vector_cpu(device)) return refusal;
  if (windows.adaptive || !few_taps(windows)) return "its windows are not small and all the same";
  const auto stride = windows.stride.width, kernel = windows.kernel.width, left = windows.padding.left;
  if (stride > 2 || kernel < stride || windows.kernel.height < windows.stride.height) return "its strides are not 1 or 2";
  if (windows.dilation.height != 1 || windows.dilation.width != 1) return "it is dilated";
  // Windows that begin behind the input, or end before it, see no row of sums.
  if (left >= kernel || (windows.out_w - 1) * stride - left > windows.w || windows.w - windows.out_w * stride + left > kernel)
    return "its padding is as wide as the window";
  if (cut(p, vector_width(device)).floats > static_cast<std::int64_t>(device.local_memory) / 4)
    return "its rows do not fit into local memory";
  return std::nullopt;
}

void lower_strips(const AvgPool2dProblem& p, exec::Recorder& recorder) {
  const auto& device = recorder.device();
  const auto& windows = p.windows;
  const auto lanes = recorder.config()["lanes"];
  const auto s = cut(p, lanes);
  const auto strips = p.planes * ceil_div(p.height(), s.rows), block = recorder.config()["strips"];
  auto& launch = launch_on_cpu(p, recorder, "avg_pool2d_strips_cpu");
  if (p.width() % lanes == 0) {
    launch.define("WHOLE", 1);
    if (pool_nontemporal_stores(recorder.spec(p.to).bytes(), recorder.spec(p.from).bytes(), device))
      launch.define("NONTEMPORAL_STORES", 1);
  }
  // Short rows are fetched as one.
  constexpr std::int64_t long_row = 256;
  if (!p.backward && windows.stride.height == 2 && windows.w >= long_row) launch.define("ROW_BY_ROW", 1);
  define_windows(launch, windows);
  launch.args({p.planes, s.rows, block, windows.h, windows.w, windows.out_h, windows.out_w, s.pitch})
      .local_memory(static_cast<std::size_t>(3 * s.pitch) * 4)
      .local_memory(static_cast<std::size_t>(s.pitch) * 4)
      .local_memory(static_cast<std::size_t>(s.floats - 4 * s.pitch) * 4)
      .range({ceil_div(strips, block)}, {1})
      .detail(windows.text(p.planes));
  recorder.epilogue(launch, 1, p.results());
}

/// Strips of a work-item: so few that all cores are busy to the end.
std::vector<exec::Config> strips_configs(const AvgPool2dProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device)) {
    const auto all = p.planes * ceil_div(p.height(), cut(p, lanes).rows);
    const auto strips = [&](std::int64_t items) { return std::max<std::int64_t>(1, all / (items * device.compute_units)); };
    result.push_back({{"lanes", lanes}, {"strips", strips(16)}});
    if (lanes != vector_width(device)) continue;
    for (const auto items : {4, 64})
      if (strips(items) != strips(16)) result.push_back({{"lanes", lanes}, {"strips", strips(items)}});
  }
  return result;
}

exec::SolverList<AvgPool2dProblem> make_solvers(std::string_view op) {
  return {op,
          {{"strips_cpu", rejects_strips, lower_strips, nullptr, strips_configs},
           {"windows_cpu", rejects_windows, lower_windows, nullptr, windows_configs},
           {"direct", exec::accepts_everything<AvgPool2dProblem>, lower_direct}}};
}

const auto avg_forward_solvers = make_solvers("avg_pool2d");
const auto avg_backward_solvers = make_solvers("avg_pool2d_backward");

/// The average, or its gradient: each is linear and the other's gradient.
class AvgPool2d : public Op {
 public:
  AvgPool2d(PoolWindows windows, bool include_pad, std::int64_t divisor, bool backward)
      : windows_(windows), include_pad_(include_pad), divisor_(divisor), backward_(backward) {}
  std::string_view name() const override { return backward_ ? "avg_pool2d_backward" : "avg_pool2d"; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true}; }
  TuningHints tuning(const Specs&) const override { return {.batches = {0}, .last = true}; }
  Fields fields() const override {
    auto result = windows_.fields();
    result.emplace_back("count_include_pad", include_pad_);
    result.emplace_back("divisor", divisor_);
    return result;
  }

  Specs infer(const Specs& inputs) const override {
    const auto height = backward_ ? windows_.h : windows_.out_h, width = backward_ ? windows_.w : windows_.out_w;
    return {{inputs[0].shape.with(2, height).with(3, width), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    return {apply(std::make_shared<AvgPool2d>(windows_, include_pad_, divisor_, !backward_), {gradients[0]})};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    require_loops(name(), backward_ ? covering_windows(windows_) : window_elements(windows_), recorder.device());
    (backward_ ? avg_backward_solvers : avg_forward_solvers)
        .lower({recorder.input(0), recorder.output(), shape[0] * shape[1], windows_, include_pad_, backward_, divisor_},
               recorder.device(), recorder);
  }

 private:
  PoolWindows windows_;
  bool include_pad_;
  std::int64_t divisor_;
  bool backward_;
};

Tensor plane_average(const Tensor& x, const PoolAxis& vertical, const PoolAxis& horizontal, bool include_pad,
                     std::int64_t divisor) {
  return apply(std::make_shared<AvgPool2d>(plane_windows(vertical, horizontal), include_pad, divisor, false), {x});
}

}  // namespace

Tensor average(const Tensor& x, const PoolAxes& axes, bool include_pad, std::int64_t divisor) {
  const auto n = x.size(0), c = x.size(1);
  const auto result = output_shape(n, c, axes);
  if (axes.size() < 3) {
    const auto vertical = axes.size() == 2 ? axes[0] : PoolAxis{};
    const auto& horizontal = axes.back();
    const Tensor plane = reshape(x, {n, c, vertical.in, horizontal.in});
    return reshape(plane_average(plane, vertical, horizontal, include_pad, divisor), result);
  }
  const auto &depth = axes[0], &height = axes[1], &width = axes[2];
  if (depth.is_whole())
    return reshape(plane_average(reshape(x, {n, c * depth.in, height.in, width.in}), height, width, include_pad, divisor),
                   result);
  const auto along_depth = [&](const Tensor& volume, std::int64_t inner, std::int64_t own_divisor) {
    return plane_average(reshape(volume, {n, c, depth.in, inner}), depth, PoolAxis::whole(inner), include_pad, own_divisor);
  };
  if (height.is_whole() && width.is_whole()) return reshape(along_depth(x, height.in * width.in, divisor), result);
  const auto in_planes = [&](const Tensor& volume, std::int64_t extent, std::int64_t own_divisor) {
    return plane_average(reshape(volume, {n, c * extent, height.in, width.in}), height, width, include_pad, own_divisor);
  };
  // The number of a window's elements is a product of one number for each axis. Both steps in f32: one rounding. First what
  // leaves less between them.
  const auto in = height.in * width.in, out = height.out * width.out, first = divisor == 0 ? std::int64_t{0} : std::int64_t{1};
  const Tensor y = depth.in * out <= depth.out * in ? along_depth(in_planes(as_f32(x), depth.in, first), out, divisor)
                                                    : in_planes(along_depth(as_f32(x), in, first), depth.out, divisor);
  return cast(reshape(y, result), x.dtype());
}

}  // namespace ops

}  // namespace clnet
