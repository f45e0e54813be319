// Adding at sorted indices, or reducing, for GPUs (kernels/index/index_add_sorted.cl): n indices cost n log n steps, however many
// rows there are, and the results are the same at every run.
#include <fmt/format.h>

#include "lib/ops/index/index_add_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// Rows of indices that are sorted by themselves.
std::int64_t lines(const Picking& p) { return p.gather ? p.outer * p.inner : 1; }

/// Picks that are summed ahead where they are all of one row: about as many as there are chunks, so that a row that has all picks
/// takes few steps, but no longer sums than elsewhere.
std::int64_t chunk_of(std::int64_t picks) {
  std::int64_t chunk = 32;
  while (chunk < 256 && chunk * chunk < picks) chunk *= 2;
  return chunk;
}

constexpr std::int64_t most_sorted = 16 << 20;
constexpr auto takes_much_memory = "so many indices take much memory while they are sorted";

}  // namespace

SortedIndices sort_indices(exec::Ref indices, const Picking& picking, exec::Recorder& recorder) {
  const auto& [outer, extent, picks, inner, gather] = picking;
  const auto all = lines(picking), group = recorder.config()["group"], merged_runs = recorder.config()["runs"];
  const Spec spec{Shape{all, picks}, Dtype::i32};
  SortedIndices from{recorder.temporary(spec), recorder.temporary(spec),
                     recorder.temporary({Shape{all, extent + 1}, Dtype::i32})};
  auto& runs = recorder.kernel("index_add_sorted", "index_add_sorted").define("SORT", 1).define("GROUP", group);
  if (gather) runs.define("GATHER", 1);
  runs.in("indices", indices)
      .out("rows", from.rows)
      .out("order", from.order)
      .args({all, extent, picks, inner})
      .range({picks, all}, {group, 1})
      .detail(fmt::format("sorts {} of {}", picks, extent));
  for (auto width = group; width < picks; width *= merged_runs) {
    const SortedIndices to{recorder.temporary(spec), recorder.temporary(spec), from.starts};
    recorder.kernel("index_add_sorted", "index_add_sorted")
        .define("MERGE", merged_runs)
        .in("rows", from.rows)
        .in("order", from.order)
        .out("to_rows", to.rows)
        .out("to_order", to.order)
        .args({all, picks, width})
        .range({picks, all}, {64, 1})
        .detail(fmt::format("merges runs of {}", width));
    from = to;
  }
  recorder.kernel("index_add_sorted", "index_add_sorted")
      .define("STARTS", 1)
      .in("rows", from.rows)
      .out("starts", from.starts)
      .args({all, extent, picks})
      .range({extent + 1, all}, {64, 1})
      .detail(fmt::format("{} of {}", extent, picks));
  return from;
}

std::vector<exec::Config> sorting_configs(const Picking& picking, const DeviceInfo& device) {
  // More runs merged at a time are fewer launches, and more searches of each element.
  constexpr std::int64_t runs = 16, fewer_runs = 8, least_group = 64;
  const auto group = group_size(device);
  std::vector<exec::Config> result{{{"group", group}, {"runs", runs}}};
  if (picking.picks > group) result.push_back({{"group", group}, {"runs", fewer_runs}});
  if (group / 2 >= least_group) result.push_back({{"group", group / 2}, {"runs", runs}});
  return result;
}

std::optional<std::string> sorting_declines(const Picking& picking, const DeviceInfo& device) {
  constexpr std::int64_t few = 64, lines_of_a_unit = 256;
  if (picking.picks <= few) return "so few indices are taken one after the other faster than sorted";
  if (lines(picking) >= lines_of_a_unit * device.compute_units) return "there are lines enough for all units";
  if (lines(picking) * picking.picks > most_sorted) return takes_much_memory;
  return std::nullopt;
}

std::optional<std::string> index_add_sorted_rejects(const IndexAddProblem& p, const DeviceInfo&) {
  const auto& [outer, extent, picks, inner, gather] = p.picking;
  if (outer == 0 || extent == 0 || picks == 0 || inner == 0) return "there is nothing to add";
  return std::nullopt;
}

std::optional<std::string> index_add_sorted_declines(const IndexAddProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t few = 256;
  if (p.picking.picks <= few) return "so few indices are read again faster than sorted";
  if (index_add_blocks(p, device) == 1) return "there are blocks enough when each has all rows and reads the indices once";
  if (lines(p.picking) * p.picking.picks > most_sorted) return takes_much_memory;
  return std::nullopt;
}

std::vector<exec::Config> index_add_sorted_configs(const IndexAddProblem& p, const DeviceInfo& device) {
  constexpr std::int64_t least_chunk = 32, most_chunk = 256;
  const auto chunk = chunk_of(p.picking.picks);
  std::vector<exec::Config> result;
  const auto sorting = sorting_configs(p.picking, device);
  const auto add = [&](const exec::Config& how, std::int64_t ahead) {
    result.push_back({{"group", how["group"]}, {"runs", how["runs"]}, {"chunk", ahead}});
  };
  for (const auto& how : sorting) add(how, chunk);
  for (const auto other : {chunk / 2, chunk * 2})
    if (other >= least_chunk && other <= most_chunk) add(sorting.front(), other);
  return result;
}

void index_add_sorted(const IndexAddProblem& p, exec::Recorder& recorder) {
  const auto& [outer, extent, picks, inner, gather] = p.picking;
  const auto chunk = recorder.config()["chunk"], chunks = picks / chunk, kind = static_cast<std::int64_t>(p.kind);
  const auto sorted = sort_indices(p.indices, p.picking, recorder);
  const auto sums = chunks > 0 ? recorder.temporary({Shape{outer, chunks, inner}, sum_dtype(p)}) : sorted.rows;
  if (chunks > 0) {
    auto& launch = recorder.kernel("index_add_sorted", "index_add_sorted").define("CHUNKS", 1).define("KIND", kind);
    if (gather) launch.define("GATHER", 1);
    launch.in("g", p.g)
        .in("rows", sorted.rows)
        .in("order", sorted.order)
        .out("sums", sums)
        .args({outer * chunks * inner, extent, picks, inner, chunk, chunks})
        .range({outer * chunks * inner}, {64})
        .detail(fmt::format("{} in chunks of {}", picks, chunk));
  }
  auto& launch = recorder.kernel("index_add_sorted", "index_add_sorted").define("KIND", kind);
  if (gather) launch.define("GATHER", 1);
  if (p.kind != ReduceKind::sum) launch.define("OWN", p.own ? 1 : 0).in("x", p.x);
  launch.in("g", p.g)
      .in("order", sorted.order)
      .in("starts", sorted.starts)
      .in("sums", sums)
      .out("y", p.y)
      .args({outer * extent * inner, extent, picks, inner, chunk, chunks})
      .range({outer * extent * inner}, {64})
      .detail(fmt::format("{} of {}", picks, extent));
}

}  // namespace clnet::ops
