// Max pooling of planes, which that of lines and volumes is made of. The operation also gives the index of each maximum in its
// plane, for the gradient.
#include <algorithm>

#include "lib/exec/choose/solver.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/loops.h"
#include "lib/ops/pool/pool_axes.h"
#include "lib/ops/rows.h"

namespace clnet {

namespace ops {

namespace {

struct MaxPool2dProblem {
  exec::Ref x, y, index;
  bool indexed = true;  ///< whether anybody asks for `index`
  std::int64_t planes = 0;
  PoolWindows windows;
};

struct MaxPool2dBackwardProblem {
  exec::Ref index, g, dx;
  std::int64_t planes = 0;
  PoolWindows windows;
  Dtype dtype = Dtype::f32;
};

/// Outputs of a row that a work-item of max_pool2d_strips_cpu.cl makes at a time, in arrays of the first-level cache.
std::int64_t block_of(const MaxPool2dProblem& p, std::int64_t lanes, const DeviceInfo& device) {
  constexpr std::int64_t most = 1024;
  const auto room = static_cast<std::int64_t>(device.local_memory) / 16;
  return std::min({most, p.windows.out_w, room / p.windows.kernel.height - lanes});
}

std::optional<std::string> rejects_strips(const MaxPool2dProblem& p, const DeviceInfo& device) {
  if (auto refusal = needs_vector_cpu(device)) return refusal;
  if (!few_taps(p.windows)) return "its windows are not small";
  const auto lanes = pool_vector_width(p.windows, vector_width(device));
  if (lanes == 0) return "too few of its windows lie inside a row, or not 1 or 2 columns apart";
  if (block_of(p, lanes, device) < lanes) return "its rows do not fit into local memory";
  return std::nullopt;
}

void lower_strips(const MaxPool2dProblem& p, exec::Recorder& recorder) {
  const auto& device = recorder.device();
  auto& launch = recorder.kernel("max_pool2d_strips_cpu", "max_pool2d_strips_cpu").in("x", p.x).out("y", p.y);
  const auto lanes = recorder.config()["lanes"], block = block_of(p, lanes, device), pitch = block + lanes;
  const auto bytes = static_cast<std::size_t>(p.windows.kernel.height * pitch) * 4;
  auto results = recorder.spec(p.y).bytes();
  if (p.indexed) {
    launch.define("INDICES", 1).out("index", p.index);
    results += recorder.spec(p.index).bytes();
  }
  launch_pool(launch, p.windows, p.planes, p.windows.out_h, p.windows.out_w, recorder.config()["rows"]);
  constexpr std::int64_t short_row = 64;
  if (p.windows.inside() && p.windows.kernel.height <= p.windows.stride.height && p.windows.w <= short_row)
    launch.define("SHORT", 1);
  launch.define("VW", lanes).define("BLOCK", block).arg(pitch).local_memory(bytes);
  if (p.indexed) launch.local_memory(bytes);
  if (recorder.spec(p.y).dtype == Dtype::f32 && pool_nontemporal_stores(results, recorder.spec(p.x).bytes(), device))
    launch.define("NONTEMPORAL_STORES", 1);
}

void lower_forward(const MaxPool2dProblem& p, exec::Recorder& recorder, std::int64_t rows) {
  auto& launch = recorder.kernel("max_pool2d", "max_pool2d").in("x", p.x).out("y", p.y);
  if (p.indexed) launch.define("INDICES", 1).out("index", p.index);
  launch_pool(launch, p.windows, p.planes, p.windows.out_h, p.windows.out_w, rows);
}

void lower_backward(const MaxPool2dBackwardProblem& p, exec::Recorder& recorder, std::int64_t rows) {
  auto& launch = recorder.kernel("max_pool2d_backward", "max_pool2d_backward").in("index", p.index).in("g", p.g).out("dx", p.dx);
  launch_pool(launch, p.windows, p.planes, p.windows.h, p.windows.w, rows);
  recorder.epilogue(launch, 1, p.planes * p.windows.h * p.windows.w);
}

std::vector<exec::Config> rows_configs(const MaxPool2dProblem& p, const DeviceInfo& device) {
  return pool_configs(pool_rows(p.planes, p.windows.out_h, device));
}
/// Lanes: results that are made at a time.
std::vector<exec::Config> strips_configs(const MaxPool2dProblem& p, const DeviceInfo& device) {
  std::vector<std::int64_t> widths;
  for (const auto widest : vector_widths(device))
    if (const auto lanes = pool_vector_width(p.windows, widest); lanes > 0 && (widths.empty() || widths.back() != lanes))
      widths.push_back(lanes);
  return pool_configs(pool_rows(p.planes, p.windows.out_h, device), widths);
}

const exec::SolverList<MaxPool2dProblem> max_forward_solvers{
    "max_pool2d",
    {{"strips_cpu", rejects_strips, lower_strips, nullptr, strips_configs},
     {"rows_cpu", [](const MaxPool2dProblem&, const DeviceInfo& device) { return needs_vector_cpu(device); },
      [](const MaxPool2dProblem& p, exec::Recorder& recorder) { lower_forward(p, recorder, recorder.config()["rows"]); }, nullptr,
      rows_configs},
     {"direct", exec::accepts_everything<MaxPool2dProblem>,
      [](const MaxPool2dProblem& p, exec::Recorder& recorder) { lower_forward(p, recorder, 0); }}}};

const exec::SolverList<MaxPool2dBackwardProblem> max_backward_solvers{
    "max_pool2d_backward",
    {{"plane_cpu",
      [](const MaxPool2dBackwardProblem& p, const DeviceInfo& device) -> std::optional<std::string> {
        if (p.dtype != Dtype::f32 && p.windows.overlap()) return "sums in place, which only f32 can do exactly enough";
        return needs_vector_cpu(device);
      },
      [](const MaxPool2dBackwardProblem& p, exec::Recorder& recorder) { lower_backward(p, recorder, p.windows.h); }},
     {"direct", exec::accepts_everything<MaxPool2dBackwardProblem>,
      [](const MaxPool2dBackwardProblem& p, exec::Recorder& recorder) { lower_backward(p, recorder, 0); }}}};

/// Inputs: index, gradient of the output.
class MaxPool2dBackward : public Op {
 public:
  explicit MaxPool2dBackward(PoolWindows windows) : windows_(windows) {}
  std::string_view name() const override { return "max_pool2d_backward"; }
  FusionHints fusion(const Specs&) const override { return {.epilogue = true}; }
  Fields fields() const override { return windows_.fields(); }

  Specs infer(const Specs& inputs) const override {
    return {{inputs[1].shape.with(2, windows_.h).with(3, windows_.w), inputs[1].dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto& shape = inputs[0].shape();
    const auto planes = shape[0] * shape[1];
    const Tensor index = reshape(inputs[0], {planes, windows_.out_h * windows_.out_w});
    Tensor picked = gather(reshape(gradients[0], {planes, windows_.h * windows_.w}), 1, index);
    // Only windows with gaps can lie in the padding.
    if (!windows_.inside() && windows_.dilation != Pair(1))
      picked = where(less(index, static_cast<double>(windows_.h * windows_.w)), picked, scalar_like(0, picked));
    return {Tensor{}, reshape(picked, shape)};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    require_loops(name(), covering_windows(windows_), recorder.device());
    max_backward_solvers.lower({recorder.input(0), recorder.input(1), recorder.output(), shape[0] * shape[1], windows_,
                                recorder.spec(recorder.output()).dtype},
                               recorder.device(), recorder);
  }

 private:
  PoolWindows windows_;
};

class MaxPool2d : public Op {
 public:
  explicit MaxPool2d(PoolWindows windows) : windows_(windows) {}
  std::string_view name() const override { return "max_pool2d"; }
  TuningHints tuning(const Specs&) const override { return {.batches = {0}, .last = true}; }
  Fields fields() const override { return windows_.fields(); }

  Specs infer(const Specs& inputs) const override {
    const auto shape = inputs[0].shape.with(2, windows_.out_h).with(3, windows_.out_w);
    return {{shape, inputs[0].dtype}, {shape, Dtype::i32}};
  }
  Tensors vjp(const Tensors&, const Tensors& outputs, const Tensors& gradients) const override {
    if (!gradients[0].defined()) return Tensors(1);
    return {apply(std::make_shared<MaxPool2dBackward>(windows_), {outputs[1], gradients[0]})};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    require_loops(name(), window_elements(windows_), recorder.device());
    max_forward_solvers.lower(
        {recorder.input(0), recorder.output(0), recorder.output(1), recorder.needs_output(1), shape[0] * shape[1], windows_},
        recorder.device(), recorder);
  }

 private:
  PoolWindows windows_;
};

/// Large windows go by rows first: the same elements win, more work-items share the work, and loops stay below llvmpipe's limit.
bool is_large(const PoolAxes& axes) {
  constexpr std::int64_t large = 32768;
  return axes[0].kernel > 1 && axes[0].kernel > large / axes[1].kernel;
}

}  // namespace

MaxPoolResult largest(const Tensor& x, const PoolAxes& axes, bool indices) {
  const auto n = x.size(0), c = x.size(1);
  const auto result = output_shape(n, c, axes);
  if (axes.size() == 1) {
    const auto plane = largest(reshape(x, {n, c, 1, axes[0].in}), {PoolAxis{}, axes[0]}, indices);
    return {reshape(plane.y, result), indices ? reshape(plane.indices, result) : Tensor{}};
  }
  if (axes.size() == 2 && !is_large(axes)) {
    const auto both = apply_all(std::make_shared<MaxPool2d>(plane_windows(axes[0], axes[1])), {x});
    return {both[0], both[1]};
  }
  // The other axes first, then the outermost: of equal elements the first in row order wins as in one go.
  const auto& outer = axes[0];
  const PoolAxes others(axes.begin() + 1, axes.end());
  const auto inner = largest(reshape(x, input_shape(n, c * outer.in, others)), others, indices);
  const auto columns = outputs(others);
  const auto both = apply_all(std::make_shared<MaxPool2d>(plane_windows(outer, PoolAxis::whole(columns))),
                              {reshape(inner.y, {n, c, outer.in, columns})});
  if (!indices) return {reshape(both[0], result), {}};
  const auto as_number = [](std::int64_t value) { return static_cast<double>(value); };
  const Tensor choice = reshape(both[1], {n * c, outer.out * columns});
  const Tensor own = gather(reshape(inner.indices, {n * c, outer.in * columns}), 1, choice);
  const auto size = inputs(others);
  const Tensor none = logical_or(greater_equal(choice, as_number(outer.in * columns)), greater_equal(own, as_number(size)));
  const Tensor at = choice / as_number(columns) * as_number(size) + own;
  return {reshape(both[0], result), reshape(where(none, Tensor::scalar(as_number(outer.in * size), Dtype::i32), at), result)};
}

}  // namespace ops

}  // namespace clnet
