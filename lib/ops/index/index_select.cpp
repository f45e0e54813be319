// index_select, gather, embedding and one_hot. Their gradients add without atomics, so that the sums are the same at every run.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/choose/solver.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/index/index_add.h"
#include "lib/ops/index/index_add_solvers.h"
#include "lib/ops/lines.h"
#include "lib/ops/rows.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet {

namespace ops {

namespace {

exec::Launch& index_add_launch(const IndexAddProblem& p, exec::Recorder& recorder) {
  auto& launch = recorder.kernel("index_add", "index_add").in("g", p.g).in("indices", p.indices);
  if (p.picking.gather) launch.define("GATHER", 1);
  return launch.detail(fmt::format("{} of {}", p.picking.picks, p.picking.extent));
}

std::vector<exec::Config> blocks_configs(const IndexAddProblem& p, const DeviceInfo& device) {
  const auto blocks = index_add_blocks(p, device);
  std::vector<exec::Config> result{{{"blocks", blocks}}};
  if (blocks < p.picking.extent) result.push_back({{"blocks", 2 * blocks}});
  if (blocks > 1) result.push_back({{"blocks", ceil_div(blocks, 2)}});
  return result;
}

/// Rows in blocks, as many as are configured: the indices are read once per block instead of once per element. Sums in memory.
void lower_blocks(const IndexAddProblem& p, exec::Recorder& recorder) {
  const auto& [outer, extent, picks, inner, gather] = p.picking;
  const auto& device = recorder.device();
  const auto wide = sum_dtype(p);
  const bool narrow = wide != p.dtype;
  const Shape shape{outer, extent, inner};
  const auto sums = narrow ? recorder.temporary({shape, wide}) : p.y;
  // On a CPU the compiler makes vectors of a work-item's columns; on a GPU work-items are the columns.
  const std::int64_t lanes = device.prefers_vector_kernels ? 1 : 64;
  const auto wanted = recorder.config()["blocks"];
  // Picks are summed in blocks, which are added up: so long that adding up all rows costs little beside them.
  const auto block = std::max<std::int64_t>(256, 8 * extent);
  const bool blocks = picks > block;
  const auto part = blocks ? recorder.temporary({shape, wide}) : sums;
  // Launches that llvmpipe's limit on a kernel's loops (65535) does not reach, in three loops.
  const auto unlimited = std::numeric_limits<std::int32_t>::max();
  const auto most =
      device.prefers_vector_kernels ? unlimited : std::max<std::int64_t>(1, 20000 / (1 + (inner + lanes - 1) / lanes));
  const auto rows = std::clamp<std::int64_t>((extent + wanted - 1) / wanted, 1, most);
  std::int64_t begin = 0;
  do {
    const auto end = std::min(begin + most, picks);
    auto& launch = index_add_launch(p, recorder);
    const auto sum_in = [&](const char* name, exec::Ref to) { begin == 0 ? launch.out(name, to) : launch.inout(name, to); };
    sum_in("y", sums);
    if (blocks) {
      sum_in("part", part);
      launch.define("BLOCKS", 1).arg(block);
    }
    launch.args({outer, rows, extent, picks, inner, begin, end})
        .define("LANES", lanes)
        .range({lanes, (extent + rows - 1) / rows, outer}, {lanes, 1, 1});
    begin = end;
  } while (begin < picks);
  if (narrow) strided_copy({sums, p.y, {{shape.numel(), 1, 1}}}, recorder);
}

/// Chunks of picks that a work-item sums by itself: of a length that depends on the picks alone, so that results do, too.
std::int64_t summed_chunk(const IndexAddProblem& p) {
  constexpr std::int64_t least = 16384, most_chunks = 64, longest = 65536;
  return std::clamp(ceil_div(p.picking.picks, most_chunks), least, longest);
}

std::optional<std::string> rejects_chunks(const IndexAddProblem& p, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs";
  if (p.picking.gather || p.picking.outer != 1 || p.picking.inner != 1) return "it takes one line of elements";
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (ceil_div(p.picking.picks, summed_chunk(p)) * p.picking.extent > most) return "sums of each chunk would take much memory";
  return std::nullopt;
}

std::optional<std::string> declines_chunks(const IndexAddProblem& p, const DeviceInfo&) {
  constexpr std::int64_t few = 8192;
  if (p.picking.picks < few) return "there are few elements";
  if (p.picking.extent > summed_chunk(p)) return "a chunk has fewer elements than there are sums";
  return std::nullopt;
}

void lower_chunks(const IndexAddProblem& p, exec::Recorder& recorder) {
  const auto extent = p.picking.extent, picks = p.picking.picks, chunk = summed_chunk(p), chunks = ceil_div(picks, chunk);
  const auto sums = recorder.temporary({Shape{chunks, extent}, sum_dtype(p)});
  auto& parts = recorder.kernel("index_add_chunks_cpu", "index_add_chunks_cpu").in("g", p.g).in("indices", p.indices);
  parts.out("sums", sums)
      .args({extent, picks, chunk, chunks})
      .range({chunks}, {1})
      .detail(fmt::format("{} of {}", picks, extent));
  recorder.kernel("index_add_chunks_cpu", "index_add_chunks_cpu")
      .define("TOTAL", 1)
      .in("sums", sums)
      .out("y", p.y)
      .args({extent, chunks})
      .range({extent}, {64})
      .detail(fmt::format("{} parts of {}", chunks, extent));
}

void lower_direct(const IndexAddProblem& p, exec::Recorder& recorder) {
  const auto& [outer, extent, picks, inner, gather] = p.picking;
  const auto count = outer * extent * inner;
  index_add_launch(p, recorder).out("y", p.y).args({count, extent, picks, inner}).define("DIRECT", 1).range({count}, {64});
}

const exec::SolverList<IndexAddProblem> index_add_solvers{
    "index_add",
    {{"sorted", index_add_sorted_rejects, index_add_sorted, index_add_sorted_declines, index_add_sorted_configs,
      exec::MadeFor::gpus, true},
     {"chunks_cpu", rejects_chunks, lower_chunks, declines_chunks, nullptr, exec::MadeFor::all, true},
     {"blocks",
      [](const IndexAddProblem& p, const DeviceInfo&) -> std::optional<std::string> {
        if (p.picking.outer == 0) return "there is nothing to add to";
        return std::nullopt;
      },
      lower_blocks, nullptr, blocks_configs, exec::MadeFor::all, true},
     {"direct", exec::accepts_everything<IndexAddProblem>, lower_direct}}};

/// Inputs: x, indices.
class IndexSelect : public Op {
 public:
  /// No gradient flows to what the index `constant` picks; -1: there is no such index.
  IndexSelect(int dim, bool gather, std::int64_t constant = -1) : dim_(dim), gather_(gather), constant_(constant) {}
  std::string_view name() const override { return gather_ ? "gather" : "index_select"; }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"constant", constant_}}; }

  Specs infer(const Specs& inputs) const override {
    if (gather_) return {{inputs[1].shape, inputs[0].dtype}};
    auto extents = inputs[0].shape.extents();
    const auto at = extents.erase(extents.begin() + dim_);
    extents.insert(at, inputs[1].shape.begin(), inputs[1].shape.end());
    return {{Shape(std::move(extents)), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override;
  void lower(exec::Recorder& recorder) const override {
    const Picking p(recorder.spec(recorder.input(0)).shape, dim_, recorder.spec(recorder.input(1)).shape, gather_);
    const auto count = p.outer * p.picks * p.inner;
    auto& launch = recorder.kernel("index_select", "index_select");
    launch.in("x", recorder.input(0));
    // x[t] in a loop: no buffer for each step's index.
    if (recorder.host_scalar(1))
      launch.define("INDEX_KNOWN", 1).scalar("only_index", recorder.input(1));
    else
      launch.in("indices", recorder.input(1));
    launch.out("y", recorder.output());
    if (gather_) launch.define("GATHER", 1);
    const auto lines = p.outer * p.picks, rows = gather_ ? 0 : rows_per_item(lines, p.inner, recorder.device());
    const auto runs = rows > 0 ? 0 : rows_per_item(count, 4, recorder.device());
    launch.args({count, std::max(rows, runs), p.extent, p.picks, p.inner}).detail(fmt::format("{} of {}", p.picks, p.extent));
    const auto picked = recorder.spec(recorder.output()).bytes();
    launch.moves(picked + std::min(picked, recorder.spec(recorder.input(0)).bytes()));
    if (rows > 0)
      launch.define("ROWS", 1).range({(lines + rows - 1) / rows}, {1});
    else if (runs > 0)
      launch.define("RUNS", 1).range({(count + runs - 1) / runs}, {1});
    else
      launch.range({count}, {64});
    if (runs > 0 && p.inner == 1) launch.define("SINGLE", 1);
    if (runs > 0 && recorder.device().native_float_width >= 16) launch.define("WIDE", 1);
  }

 private:
  int dim_;
  bool gather_;
  std::int64_t constant_;
};

/// The gradient of IndexSelect. Inputs: the gradient of its output, indices.
class IndexAdd : public Op {
 public:
  IndexAdd(int dim, bool gather, Shape shape) : dim_(dim), gather_(gather), shape_(std::move(shape)) {}
  std::string_view name() const override { return gather_ ? "gather_add" : "index_add"; }
  TuningHints tuning(const Specs&) const override {
    return {.list = "index_add", .indices = shape_[dim_], .positive = true, .last = true};
  }
  Fields fields() const override { return {{"dim", std::int64_t{dim_}}, {"shape", shape_.extents()}}; }

  Specs infer(const Specs& inputs) const override { return {{shape_, inputs[0].dtype}}; }
  /// An index out of range has added nothing: its gradient is 0, where IndexSelect alone would give NaN.
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    auto valid = logical_and(greater_equal(inputs[1], -static_cast<double>(shape_[dim_])),
                             less(inputs[1], static_cast<double>(shape_[dim_])));
    if (!gather_) {
      auto extents = inputs[1].shape().extents();
      extents.resize(extents.size() + static_cast<std::size_t>(shape_.rank() - dim_ - 1), 1);
      valid = reshape(valid, extents);
    }
    const auto picked = apply(std::make_shared<IndexSelect>(dim_, gather_), {gradients[0], inputs[1]});
    return {where(valid, picked, Tensor::scalar(0, picked.dtype())), Tensor{}};
  }
  void lower(exec::Recorder& recorder) const override {
    index_add_solvers.lower(
        {recorder.input(0), recorder.input(1), recorder.output(),
         Picking(shape_, dim_, recorder.spec(recorder.input(1)).shape, gather_), recorder.spec(recorder.output()).dtype},
        recorder.device(), recorder);
  }

 private:
  int dim_;
  bool gather_;
  Shape shape_;
};

Tensors IndexSelect::vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const {
  auto indices = inputs[1];
  if (constant_ >= 0) {
    // An index out of range adds nothing.
    const auto extent = inputs[0].size(dim_);
    const auto is = [&](std::int64_t index) { return eq(inputs[1], static_cast<double>(index)); };
    indices = where(logical_or(is(constant_), is(constant_ - extent)),
                    Tensor::scalar(static_cast<double>(extent), indices.dtype()), indices);
  }
  return {apply(std::make_shared<IndexAdd>(dim_, gather_, inputs[0].shape()), {gradients[0], indices}), Tensor{}};
}

}  // namespace

void require_indices(std::string_view op, const Tensor& indices) {
  if (indices.dtype() != Dtype::i32 && indices.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("{}: indices must be i32 or i64, got {}", op, to_string(indices.spec())));
}

Tensor added_at(const Tensor& x, int dim, const Tensor& indices, bool gather, const Shape& shape) {
  return apply(std::make_shared<IndexAdd>(dim, gather, shape), {x, indices});
}

}  // namespace ops

using namespace ops;

Tensor index_select(const Tensor& x, int dim, const Tensor& indices) {
  require_defined("index_select", {{"x", x}, {"indices", indices}});
  require_indices("index_select", indices);
  const int at = require_line("index_select", x.shape(), dim);
  if (x.rank() > 0) return apply(std::make_shared<IndexSelect>(at, false), {x, indices});
  if (indices.numel() != 1)
    throw ShapeError(fmt::format("index_select: of a scalar one index chooses, not those of {}", to_string(indices.spec())));
  return reshape(index_select(as_line(x), 0, indices), x.shape());
}

Tensor gather(const Tensor& x, int dim, const Tensor& indices) {
  require_defined("gather", {{"x", x}, {"indices", indices}});
  require_indices("gather", indices);
  const int at = require_line("gather", x.shape(), dim);
  const Tensor picks = as_line(indices);
  auto part = as_line(x);
  bool fits = picks.rank() == part.rank();
  for (int d = 0; d < x.rank() && fits; ++d) fits = d == at || picks.size(d) <= x.size(d);
  if (!fits)
    throw ShapeError(fmt::format("gather: indices {} must have the rank of {} and be no larger outside dimension {}",
                                 to_string(indices.shape()), to_string(x.shape()), at));
  for (int d = 0; d < x.rank(); ++d)
    if (d != at) part = slice(part, d, 0, picks.size(d));
  return reshape(apply(std::make_shared<IndexSelect>(at, true), {part, picks}), indices.shape());
}

Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_index) {
  require_defined("embedding", {{"indices", indices}, {"weight", weight}});
  require_indices("embedding", indices);
  if (weight.rank() != 2)
    throw ShapeError(fmt::format("embedding: the weight must be {{count, width}}, got {}", to_string(weight.shape())));
  const auto count = weight.size(0);
  if (padding_index && (*padding_index < -count || *padding_index >= count))
    throw ShapeError(fmt::format("embedding: padding index {} is out of range for {} rows", *padding_index, count));
  const auto constant = padding_index ? (*padding_index + count) % count : -1;
  return apply(std::make_shared<IndexSelect>(0, false, constant), {weight, indices});
}

Tensor one_hot(const Tensor& indices, std::int64_t classes, Dtype dtype) {
  require_defined("one_hot", {{"indices", indices}});
  require_indices("one_hot", indices);
  if (classes < 0) throw ShapeError(fmt::format("one_hot: {} classes", classes));
  return cast(eq(unsqueeze(indices, -1), arange(classes, 0, 1, indices.dtype())), dtype);
}

}  // namespace clnet
