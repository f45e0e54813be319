#include "lib/ops/shape/strided_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/exec/choose/solver.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

constexpr std::size_t most_dims = 6;  // of kernels/shape/strided_copy.cl

/// Without extents of 1, and with neighbours joined where both tensors step through them as through one.
std::vector<StridedCopy::Dim> merged(const std::vector<StridedCopy::Dim>& dims) {
  std::vector<StridedCopy::Dim> result;
  for (const auto& dim : dims) {
    if (dim.extent == 1) continue;
    if (!result.empty() && result.back().from_step == dim.from_step * dim.extent &&
        result.back().to_step == dim.to_step * dim.extent)
      result.back() = {result.back().extent * dim.extent, dim.from_step, dim.to_step};
    else
      result.push_back(dim);
  }
  if (result.empty()) result.push_back({1, 1, 1});
  return result;
}

/// From the first element that is written to behind the last one.
std::int64_t reach(const StridedCopy& copy) {
  std::int64_t last = 0;
  for (const auto& dim : copy.dims) {
    if (dim.extent == 0) return 0;
    last += (dim.extent - 1) * dim.to_step;
  }
  return last + 1;
}

/// Why a transposing solver whose tiles are so long cannot take it: it moves (batched) matrices, whose sides fill half a tile.
std::optional<std::string> is_no_transpose(const StridedCopy& copy, std::int64_t tile) {
  if (copy.dims.size() < 2 || copy.dims.size() > 3) return fmt::format("{} dimensions are no (batched) matrix", copy.dims.size());
  const auto rows = copy.dims.end()[-1], columns = copy.dims.end()[-2];
  if (rows.to_step != 1 || columns.from_step != 1) return "the last two dimensions do not change places";
  if (rows.extent < tile / 2 || columns.extent < tile / 2) return "a side is shorter than half a tile";
  return std::nullopt;
}

/// A work-item for each tile, or with `items` a work-group of so many in a row.
void lower_tiles(const StridedCopy& copy, exec::Launch& launch, std::int64_t tile, std::int64_t items) {
  const auto rows = copy.dims.end()[-1], columns = copy.dims.end()[-2];
  const auto batch = copy.dims.size() == 3 ? copy.dims[0] : StridedCopy::Dim{1, 0, 0};
  launch.in("x", copy.from)
      .out("y", copy.to)
      .touches(reach(copy))
      .args({rows.extent, columns.extent, rows.from_step, columns.to_step, batch.from_step, batch.to_step})
      .range({(columns.extent + tile - 1) / tile * items, (rows.extent + tile - 1) / tile, batch.extent}, {items, 1, 1})
      .detail(fmt::format("{} x {}x{}", batch.extent, rows.extent, columns.extent));
}

/// The likely tile, whose rows are cache lines of four bytes an element; and others.
constexpr std::int64_t cpu_tile = 16;

std::optional<std::string> rejects_transpose_cpu(const StridedCopy& copy, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "large tiles per work-item are for CPUs with vectors";
  return is_no_transpose(copy, cpu_tile);
}

std::vector<exec::Config> transpose_cpu_configs(const StridedCopy&, const DeviceInfo&) {
  return {{{"tile", cpu_tile}}, {{"tile", cpu_tile * 2}}, {{"tile", cpu_tile / 2}}};
}

void lower_transpose_cpu(const StridedCopy& copy, exec::Recorder& recorder) {
  const auto tile = recorder.config()["tile"];
  lower_tiles(copy, recorder.kernel("transpose_cpu", "transpose_cpu").define("TILE", tile), tile, 1);
}

constexpr std::int64_t gpu_tile = 32;

bool gpu_tile_fits(std::int64_t tile, const DeviceInfo& device) {
  constexpr std::int64_t largest_element = 8;
  return static_cast<std::int64_t>(device.local_memory) >= tile * (tile + 1) * largest_element;
}

std::optional<std::string> rejects_transpose_gpu(const StridedCopy& copy, const DeviceInfo& device) {
  if (!gpu_tile_fits(gpu_tile, device)) return "a tile does not fit into the local memory";
  return is_no_transpose(copy, gpu_tile);
}

std::vector<exec::Config> transpose_gpu_configs(const StridedCopy& copy, const DeviceInfo& device) {
  const auto group = group_size(device);
  std::vector<exec::Config> result{{{"tile", gpu_tile}, {"group", group}}};
  constexpr std::int64_t least = 64;
  if (group / 2 >= least) result.push_back({{"tile", gpu_tile}, {"group", group / 2}});
  if (!is_no_transpose(copy, 2 * gpu_tile) && gpu_tile_fits(2 * gpu_tile, device))
    result.push_back({{"tile", 2 * gpu_tile}, {"group", group}});
  return result;
}

void lower_transpose_gpu(const StridedCopy& copy, exec::Recorder& recorder) {
  const auto items = recorder.config()["group"], tile = recorder.config()["tile"];
  lower_tiles(copy, recorder.kernel("transpose_gpu", "transpose_gpu").define("GROUP", items).define("TILE", tile), tile, items);
}

/// Elements that are worth a work-item, where nothing else was chosen.
constexpr std::int64_t worthwhile = 4096;

std::vector<exec::Config> configs_of_items(const StridedCopy&, const DeviceInfo&) {
  return {{{"elements", worthwhile}}, {{"elements", worthwhile / 4}}, {{"elements", worthwhile * 4}}};
}

/// What a work-item copies: some rows, of a length that the kernel is made for or any, or blocks of the three innermost
/// dimensions, whole, or one element.
enum class Part { element, short_rows, rows, blocks };

void lower_general(const StridedCopy& copy, exec::Recorder& recorder, Part part) {
  if (copy.dims.size() > most_dims) {
    const auto outer = copy.dims[0];
    for (std::int64_t i = 0; i < outer.extent; ++i)
      lower_general({copy.from.at(i * outer.from_step), copy.to.at(i * outer.to_step), {copy.dims.begin() + 1, copy.dims.end()}},
                    recorder, part);
    return;
  }
  const auto rank = copy.dims.size();
  std::vector<StridedCopy::Dim> inner_first(copy.dims.rbegin(), copy.dims.rend());
  inner_first.resize(most_dims, {1, 0, 0});
  std::int64_t count = 1;
  for (const auto& dim : inner_first) count *= dim.extent;
  auto inner = inner_first[0].extent;
  if (part == Part::blocks) inner *= inner_first[1].extent * inner_first[2].extent;
  const auto lines = count / inner;
  const auto& device = recorder.device();
  const auto rows =
      part == Part::element
          ? 0
          : std::max<std::int64_t>(1, rows_per_item(lines, inner, recorder.config().value("elements", worthwhile), device));
  auto& launch = recorder.kernel("strided_copy", "strided_copy").in("x", copy.from).out("y", copy.to);
  launch.touches(reach(copy)).args({count, rows});
  for (std::size_t d = 0; d + 1 < most_dims; ++d) launch.arg(inner_first[d].extent);
  for (const auto& dim : inner_first) launch.arg(dim.from_step);
  for (const auto& dim : inner_first) launch.arg(dim.to_step);
  launch.define("RANK", static_cast<std::int64_t>(rank)).detail(fmt::format("{} elements", count));
  if (part == Part::short_rows) {
    launch.define("SHORT", inner);
    if (inner_first[0].from_step != 1 || inner_first[0].to_step != 1) launch.define("STEPS", 1);
  }
  if (rows > 0)
    launch.define(part == Part::blocks ? "BLOCKS" : "ROWS", 1).range({(lines + rows - 1) / rows, 1}, {1, 1});
  else if (rank > 1 && inner < 64)
    launch.define("LINEAR", 1).range({count, 1}, {64, 1});
  else
    launch.range({inner, lines}, {64, 1});
}

std::optional<std::string> rejects_rows(const StridedCopy& copy, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs with vectors";
  const auto inner = copy.dims.back();
  if (inner.from_step != 1 || inner.to_step != 1) return "rows do not lie in one piece";
  if (copy.dims.size() == 1) return "there is only one row";
  if (inner.extent < 4) return fmt::format("rows of {} elements are too short", inner.extent);
  return std::nullopt;
}

/// The loop over a row of a known length is no loop: 3 to 7 times as fast as an element per work-item.
std::optional<std::string> rejects_short_rows(const StridedCopy& copy, const DeviceInfo& device) {
  constexpr std::int64_t longest = 8;
  if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs with vectors";
  if (copy.dims.size() == 1) return "there is only one row";
  if (copy.dims.back().extent > longest) return fmt::format("rows of {} elements are no short ones", copy.dims.back().extent);
  return std::nullopt;
}

/// The dimension with the smallest step in one of the tensors goes behind the others.
void move_smallest(std::vector<StridedCopy::Dim>& dims, std::size_t end, std::int64_t StridedCopy::Dim::*step) {
  const auto found = std::min_element(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(end),
                                      [&](const auto& a, const auto& b) { return a.*step < b.*step; });
  std::rotate(found, found + 1, dims.begin() + static_cast<std::ptrdiff_t>(end));
}

/// A block has both tensors' innermost dimensions, so that what is read and written of it are whole lines of memory.
StridedCopy in_blocks(StridedCopy copy) {
  move_smallest(copy.dims, copy.dims.size(), &StridedCopy::Dim::to_step);
  move_smallest(copy.dims, copy.dims.size() - 1, &StridedCopy::Dim::to_step);
  move_smallest(copy.dims, copy.dims.size() - 2, &StridedCopy::Dim::from_step);
  return copy;
}

std::optional<std::string> rejects_blocks(const StridedCopy& copy, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs with vectors";
  if (copy.dims.size() < 4 || copy.dims.size() > most_dims)
    return fmt::format("{} dimensions are not 4 to {}", copy.dims.size(), most_dims);
  const auto dims = in_blocks(copy).dims;
  std::int64_t blocks = 1;
  for (std::size_t d = 0; d + 3 < dims.size(); ++d) blocks *= dims[d].extent;
  const auto size = dims.end()[-3].extent * dims.end()[-2].extent * dims.end()[-1].extent;
  if (size > 4096 && blocks < 2 * device.compute_units)
    return fmt::format("{} blocks of {} are too few for all cores", blocks, size);
  return std::nullopt;
}

void lower_blocks(const StridedCopy& copy, exec::Recorder& recorder) { lower_general(in_blocks(copy), recorder, Part::blocks); }

const exec::SolverList<StridedCopy> solvers{
    "strided_copy",
    {{"transpose_cpu", rejects_transpose_cpu, lower_transpose_cpu, nullptr, transpose_cpu_configs},
     {"transpose_gpu", rejects_transpose_gpu, lower_transpose_gpu, nullptr, transpose_gpu_configs, exec::MadeFor::gpus},
     {"blocks_cpu", rejects_blocks, lower_blocks, nullptr, configs_of_items},
     {"short_rows_cpu", rejects_short_rows,
      [](const StridedCopy& copy, exec::Recorder& recorder) { lower_general(copy, recorder, Part::short_rows); }, nullptr,
      configs_of_items},
     {"rows_cpu", rejects_rows,
      [](const StridedCopy& copy, exec::Recorder& recorder) { lower_general(copy, recorder, Part::rows); }, nullptr,
      configs_of_items},
     {"direct", exec::accepts_everything<StridedCopy>,
      [](const StridedCopy& copy, exec::Recorder& recorder) { lower_general(copy, recorder, Part::element); }}}};

}  // namespace

std::vector<std::int64_t> strides_of(const Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t step = 1;
  for (int d = shape.rank(); d-- > 0; step *= shape[d]) strides[static_cast<std::size_t>(d)] = step;
  return strides;
}

std::int64_t rows_per_item(std::int64_t rows, std::int64_t length, const DeviceInfo& device) {
  return !device.prefers_vector_kernels || length < 4 ? 0 : rows_per_item(rows, length, worthwhile, device);
}

void strided_copy(StridedCopy copy, exec::Recorder& recorder) {
  copy.dims = merged(copy.dims);
  for (const auto& dim : copy.dims)
    if (dim.extent == 0) return;
  solvers.lower(copy, recorder.device(), recorder);
}

}  // namespace clnet::ops
