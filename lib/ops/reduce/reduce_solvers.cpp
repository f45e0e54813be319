#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/choose/solver.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/group.h"
#include "lib/ops/reduce/reduce.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

using exec::Launch;
using exec::Recorder;
using exec::Ref;

Dtype accumulator(Dtype dtype) { return is_floating(dtype) ? computed_in(dtype) : Dtype::i64; }

namespace {

Launch& launch(const ReduceProblem& problem, Recorder& recorder, std::string_view program, std::string_view function) {
  return recorder.kernel(program, function)
      .define("KIND", static_cast<std::int64_t>(problem.kind))
      .define("ACC_INT", is_floating(problem.dtype) ? 0 : 1)
      .flops(static_cast<double>(problem.outer) * static_cast<double>(problem.reduce) * static_cast<double>(problem.inner))
      .detail(fmt::format("[{}, {}, {}]", problem.outer, problem.reduce, problem.inner));
}

/// What is fused into the first level's input and the last level's output; sums of integers take nothing.
void fuse(Launch& launch, const ReduceProblem& problem, const ReduceProblem& level, Recorder& recorder) {
  if (!is_floating(problem.dtype)) return;
  recorder.prologue(launch, "x");
  if (level.y.value == problem.y.value) recorder.epilogue(launch, 1, 1);
}

/// With more than one chunk: the problem of the first level, which leaves one value per chunk, and that of the second.
struct Levels {
  ReduceProblem first, second;
};
Levels levels(const ReduceProblem& problem, std::int64_t chunks, Recorder& recorder) {
  Levels result{problem, problem};
  if (chunks == 1) return result;
  const auto dtype = accumulator(problem.dtype);
  const Ref partial = recorder.temporary({{problem.outer, chunks, problem.inner}, dtype});
  result.first.y = partial;
  result.first.scale = 1;
  result.second.x = partial;
  result.second.dtype = dtype;
  result.second.reduce = chunks;
  return result;
}

/// Rounds the chunk up to a multiple of `unit` and gives the number of chunks.
std::int64_t divide(std::int64_t reduce, std::int64_t unit, std::int64_t wanted, std::int64_t& chunk) {
  chunk = std::max(unit, ceil_div(ceil_div(reduce, std::max<std::int64_t>(wanted, 1)), unit) * unit);
  return std::max<std::int64_t>(1, ceil_div(reduce, chunk));
}

// ---- cpu: whole chunks per work-item, explicit vectors ---------------------------------------------------------------------

void cpu_lower(const ReduceProblem& problem, Recorder& recorder) {
  const auto& device = recorder.device();
  const std::int64_t width = recorder.config()["lanes"], tasks = std::int64_t{4} * device.compute_units;
  constexpr std::int64_t task_elements = 16384;  // some microseconds of work, against about one of overhead
  const auto elements = problem.outer * problem.reduce * problem.inner;
  const auto wanted_tasks = std::clamp<std::int64_t>(elements / task_elements, 1, tasks);

  // Chunks when the kept dimensions do not keep all cores busy, and where accumulators would take too many values.
  std::int64_t chunk = 0, chunks = 0, units = 0;
  if (problem.inner == 1) {
    const auto wanted =
        std::max(ceil_div(wanted_tasks, std::max<std::int64_t>(problem.outer, 1)), problem.reduce / (128 * 64 * width));
    chunks = divide(problem.reduce, 64 * width, wanted, chunk);
    units = problem.outer;
  } else {
    const auto blocks = ceil_div(problem.inner, 4 * width);
    const auto wanted =
        std::max(ceil_div(wanted_tasks, std::max<std::int64_t>(problem.outer * blocks, 1)), problem.reduce / 4096);
    chunks = divide(problem.reduce, 32, wanted, chunk);
    units = problem.outer * blocks;
  }
  const auto all = units * chunks;
  const auto per_item = chunks > 1 || all == 0
                            ? 1
                            : std::clamp<std::int64_t>(task_elements * all / std::max<std::int64_t>(elements, 1), 1,
                                                       std::max<std::int64_t>(1, all / tasks));
  const auto level = levels(problem, chunks, recorder);
  auto& kernel = launch(problem, recorder, "reduce_cpu", problem.inner == 1 ? "reduce_rows_cpu" : "reduce_columns_cpu");
  kernel.define("VW", width).in("x", level.first.x).out("y", level.first.y);
  constexpr std::int64_t long_row = 65536;
  if (problem.inner == 1) {
    if (std::min(chunk, problem.reduce) >= long_row) kernel.define("FAR", 1);
    kernel.args({problem.outer, problem.reduce, chunk, chunks, per_item})
        .arg_float(level.first.scale)
        .range({ceil_div(problem.outer, per_item) * chunks}, {1});
  } else {
    kernel.args({problem.outer, problem.reduce, problem.inner, chunk, chunks, per_item})
        .arg_float(level.first.scale)
        .range({ceil_div(problem.outer, per_item) * chunks * ceil_div(problem.inner, 4 * width)}, {1});
  }
  fuse(kernel, problem, level.first, recorder);
  if (chunks > 1) cpu_lower(level.second, recorder);
}

// ---- gpu: groups add up along rows, neighbouring work-items on neighbouring columns -------------------------------------------

/// The number of chunks, which is rounded so that each keeps `threads` busy, and their size.
std::int64_t divide(const ReduceProblem& problem, std::int64_t threads, std::int64_t wanted, std::int64_t& chunk) {
  return divide(problem.reduce, problem.inner == 1 ? 16 * threads : 32, wanted, chunk);
}

/// So that no sum takes too many values.
std::int64_t fewest_parts(const ReduceProblem& problem) { return problem.reduce / (problem.inner == 1 ? 65536 : 4096); }

std::int64_t likely_parts(const ReduceProblem& problem, std::int64_t threads, const DeviceInfo& device) {
  const std::int64_t wanted_items = std::int64_t{2048} * device.compute_units;
  const auto outputs = std::max<std::int64_t>(problem.outer * problem.inner, 1);
  std::int64_t chunk = 0;
  return divide(problem, threads, std::max(ceil_div(wanted_items, outputs * threads), fewest_parts(problem)), chunk);
}

std::vector<exec::Config> gpu_configs(const ReduceProblem& problem, const DeviceInfo& device) {
  // Sub-groups exchange floats.
  const auto exchange = is_floating(problem.dtype) ? Exchange::where_possible : Exchange::never;
  std::vector<exec::Config> result;
  const auto add = [&](const exec::Config& config, std::int64_t parts) {
    const auto threads = config.value("threads", 1);
    if (parts == 0) parts = likely_parts(problem, threads, device);
    result.push_back({{"group", config["group"]}, {"threads", threads}, {"parts", parts}, {"sub_groups", config["sub_groups"]}});
  };
  const auto groups = problem.inner == 1 ? row_configs(problem.reduce, device, exchange) : group_configs(device, exchange);
  for (const auto& config : groups) add(config, 0);
  const auto parts = result[0]["parts"];
  if (parts / 2 >= std::max<std::int64_t>(fewest_parts(problem), 1)) add(groups[0], parts / 2);
  if (parts > 1) add(groups[0], parts * 2);
  return result;
}

/// A launch for the chunks, and others for their results.
void lower_levels(const ReduceProblem& problem, std::int64_t threads, std::int64_t wanted, Recorder& recorder) {
  const auto group = recorder.config()["group"];
  const bool rows = problem.inner == 1;
  std::int64_t chunk = 0;
  const auto chunks = divide(problem, threads, wanted, chunk);
  const auto level = levels(problem, chunks, recorder);
  auto& kernel = define_group(launch(problem, recorder, "reduce_gpu", rows ? "reduce_rows_gpu" : "reduce_columns_gpu"), recorder)
                     .in("x", level.first.x)
                     .out("y", level.first.y);
  if (rows)
    kernel.args({problem.outer, problem.reduce, chunk, chunks, threads})
        .arg_float(level.first.scale)
        .range({ceil_div(problem.outer * chunks, group / threads) * group}, {group});
  else
    kernel.args({problem.outer * chunks * problem.inner, problem.reduce, problem.inner, chunk, chunks})
        .arg_float(level.first.scale)
        .range({problem.outer * chunks * problem.inner}, {group});
  fuse(kernel, problem, level.first, recorder);
  if (chunks == 1) return;
  const auto next = rows ? threads_per_row(chunks, group) : 1;
  lower_levels(level.second, next, likely_parts(level.second, next, recorder.device()), recorder);
}

void gpu_lower(const ReduceProblem& problem, Recorder& recorder) {
  lower_levels(problem, recorder.config()["threads"], recorder.config()["parts"], recorder);
}

// ---- direct ------------------------------------------------------------------------------------------------------------------

void direct_lower(const ReduceProblem& problem, Recorder& recorder) {
  // llvmpipe leaves a kernel's loops after 65535 iterations.
  constexpr std::int64_t longest = 16384;
  const auto chunks = std::max<std::int64_t>(1, ceil_div(problem.reduce, longest));
  const auto level = levels(problem, chunks, recorder);
  const auto outputs = problem.outer * chunks * problem.inner;
  auto& kernel = launch(problem, recorder, "reduce_direct", "reduce_direct")
                     .in("x", level.first.x)
                     .out("y", level.first.y)
                     .args({outputs, problem.reduce, problem.inner, longest, chunks})
                     .arg_float(level.first.scale)
                     .range({outputs}, {std::min<std::int64_t>(64, group_size(recorder.device()))});
  fuse(kernel, problem, level.first, recorder);
  if (chunks > 1) direct_lower(level.second, recorder);
}

const exec::SolverList<ReduceProblem> reduce_solvers{
    "reduce",
    {{"cpu", needs_vectors<ReduceProblem>, cpu_lower, nullptr, lane_configs<ReduceProblem>},
     {"gpu", exec::accepts_everything<ReduceProblem>, gpu_lower, nullptr, gpu_configs},
     {"direct", exec::accepts_everything<ReduceProblem>, direct_lower}}};

// ---- Indices ----------------------------------------------------------------------------------------------------------------

/// What a level compares: of a later one the best of chunks, of which `earlier` says where in their rows they were.
struct ArgLevel {
  Ref x;
  std::optional<Ref> earlier;
  std::int64_t reduce = 1;
};

/// The launch of a level over x[outer][reduce][inner] in chunks, which leaves the next one's.
Launch& arg_launch(const ArgReduceProblem& problem, ArgLevel& level, std::int64_t chunks, Recorder& recorder,
                   std::string_view program, std::string_view function) {
  const auto items = problem.outer * chunks * problem.inner;
  const Ref best = recorder.temporary({{items}, accumulator(problem.dtype)});
  const Ref where = chunks > 1 ? recorder.temporary({{items}, Dtype::i32}) : problem.y;
  auto& launch = recorder.kernel(program, function)
                     .define("GREATEST", problem.greatest ? 1 : 0)
                     .define("FINISH", level.earlier ? 1 : 0)
                     .in("x", level.x);
  if (level.earlier) launch.in("earlier", *level.earlier);
  launch.out("best", best).out("where", where).detail(fmt::format("[{}, {}, {}]", problem.outer, level.reduce, problem.inner));
  level = {best, where, chunks};
  return launch;
}

/// A work-item for each chunk, and levels until one is left.
void lower_arg_chunks(const ArgReduceProblem& problem, ArgLevel level, std::int64_t wanted, Recorder& recorder) {
  constexpr std::int64_t finish_length = 256;
  do {
    std::int64_t chunk = 0;
    const auto reduce = level.reduce, chunks = divide(reduce, 1, wanted, chunk), items = problem.outer * chunks * problem.inner;
    arg_launch(problem, level, chunks, recorder, "arg_reduce", "arg_reduce")
        .args({items, reduce, problem.inner, chunk, chunks})
        .range({items}, {std::min<std::int64_t>(64, group_size(recorder.device()))});
    wanted = ceil_div(chunks, finish_length);
  } while (level.reduce > 1);
}

std::optional<std::string> arg_cpu_rejects(const ArgReduceProblem& problem, const DeviceInfo& device) {
  if (auto refusal = needs_vectors(problem, device)) return refusal;
  if (!is_floating(problem.dtype)) return "it is of integers";
  if (problem.inner != 1) return "what is compared does not lie in one piece";
  return std::nullopt;
}

void arg_cpu_lower(const ArgReduceProblem& problem, Recorder& recorder) {
  const auto& device = recorder.device();
  const std::int64_t width = recorder.config()["lanes"], tasks = std::int64_t{4} * device.compute_units;
  constexpr std::int64_t task_elements = 16384;
  const auto wanted_tasks = std::clamp<std::int64_t>(problem.outer * problem.reduce / task_elements, 1, tasks);
  std::int64_t chunk = 0;
  const auto chunks = divide(problem.reduce, 64 * width, ceil_div(wanted_tasks, std::max<std::int64_t>(problem.outer, 1)), chunk);
  const auto outputs = problem.outer * chunks, per_item = std::max<std::int64_t>(1, ceil_div(outputs, wanted_tasks));
  ArgLevel level{problem.x, std::nullopt, problem.reduce};
  arg_launch(problem, level, chunks, recorder, "arg_reduce_cpu", "arg_reduce_cpu")
      .define("VW", width)
      .args({outputs, problem.reduce, chunk, chunks, per_item})
      .range({ceil_div(outputs, per_item)}, {1});
  if (chunks > 1) lower_arg_chunks(problem, level, 1, recorder);
}

// Groups compare along rows.

std::optional<std::string> arg_gpu_rejects(const ArgReduceProblem& problem, const DeviceInfo&) {
  if (problem.inner != 1) return "what is compared does not lie in one piece";
  return std::nullopt;
}

std::optional<std::string> arg_gpu_declines(const ArgReduceProblem&, const DeviceInfo& device) {
  if (device.prefers_vector_kernels) return "the device prefers vector kernels";
  return std::nullopt;
}

/// As many chunks as keep the device busy, and so few elements that loops end on llvmpipe, too.
std::int64_t arg_row_chunks(const ArgReduceProblem& problem, std::int64_t threads, const DeviceInfo& device,
                            std::int64_t& chunk) {
  const std::int64_t wanted_items = std::int64_t{2048} * device.compute_units;
  const auto busy = ceil_div(wanted_items, std::max<std::int64_t>(problem.outer, 1) * threads);
  return divide(problem.reduce, 16 * threads, std::max(busy, problem.reduce / (16384 * threads)), chunk);
}

std::vector<exec::Config> arg_gpu_configs(const ArgReduceProblem& problem, const DeviceInfo& device) {
  return row_configs(problem.reduce, device, Exchange::never);
}

void arg_gpu_lower(const ArgReduceProblem& problem, Recorder& recorder) {
  const auto group = recorder.config()["group"];
  auto threads = recorder.config()["threads"];
  ArgLevel level{problem.x, std::nullopt, problem.reduce};
  do {
    const auto reduce = level.reduce;
    auto part = problem;
    part.reduce = reduce;
    std::int64_t chunk = 0;
    const auto chunks = arg_row_chunks(part, threads, recorder.device(), chunk);
    arg_launch(problem, level, chunks, recorder, "arg_reduce_gpu", "arg_reduce_gpu")
        .define("GROUP", group)
        .args({problem.outer, reduce, chunk, chunks, threads})
        .range({ceil_div(problem.outer * chunks, group / threads) * group}, {group});
    threads = threads_per_row(chunks, group);
  } while (level.reduce > 1);
}

// A work-item for each chunk.

/// So that loops end on llvmpipe, too.
std::int64_t fewest_parts(const ArgReduceProblem& problem) { return ceil_div(problem.reduce, 32768); }

std::vector<exec::Config> arg_chunked_configs(const ArgReduceProblem& problem, const DeviceInfo& device) {
  const std::int64_t items = std::int64_t{device.prefers_vector_kernels ? 64 : 1024} * device.compute_units;
  const auto wanted = std::min(items / std::max<std::int64_t>(problem.outer * problem.inner, 1), problem.reduce / 64);
  std::int64_t chunk = 0;
  const auto parts = divide(problem.reduce, 1, wanted, chunk);
  std::vector<exec::Config> result{{{"parts", parts}}, {{"parts", parts * 2}}};
  if (parts / 2 >= std::max<std::int64_t>(fewest_parts(problem), 1)) result.push_back({{"parts", parts / 2}});
  return result;
}

void arg_chunked_lower(const ArgReduceProblem& problem, Recorder& recorder) {
  lower_arg_chunks(problem, {problem.x, std::nullopt, problem.reduce}, recorder.config()["parts"], recorder);
}

const exec::SolverList<ArgReduceProblem> arg_solvers{
    "arg_reduce",
    {{"cpu", arg_cpu_rejects, arg_cpu_lower, nullptr, lane_configs<ArgReduceProblem>},
     {"gpu", arg_gpu_rejects, arg_gpu_lower, arg_gpu_declines, arg_gpu_configs},
     {"chunked", exec::accepts_everything<ArgReduceProblem>, arg_chunked_lower, nullptr, arg_chunked_configs},
     {"direct", exec::accepts_everything<ArgReduceProblem>, [](const ArgReduceProblem& problem, Recorder& recorder) {
        lower_arg_chunks(problem, {problem.x, std::nullopt, problem.reduce}, fewest_parts(problem), recorder);
      }}}};

}  // namespace

void record_reduce(ReduceProblem problem, Recorder& recorder) {
  problem.dtype = recorder.spec(problem.x).dtype;
  reduce_solvers.lower(problem, recorder.device(), recorder);
}

void record_arg_reduce(const ArgReduceProblem& problem, Recorder& recorder) {
  arg_solvers.lower(problem, recorder.device(), recorder);
}

}  // namespace clnet::ops
