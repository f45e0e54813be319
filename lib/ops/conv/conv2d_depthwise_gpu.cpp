// Depthwise convolution and its gradients on GPUs (kernels/conv/conv2d_depthwise_gpu.cl): an item has some rows of one column.
// There is no sum over channels that a product of tiles could be made of, and what counts is to read each image once.
#include <fmt/format.h>

#include <algorithm>

#include "lib/ops/conv/conv2d.h"
#include "lib/ops/gemm_gpu.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// Of a group that sums a weight's gradient.
constexpr std::int64_t depthwise_group = 64;

/// Taps in registers, and loads of an item that the compiler writes out.
constexpr std::int64_t most_depthwise_taps = 64, most_loads = 200;

/// Of both together where there is a choice: some 100 registers, as compilers begin all loads before they use the first.
constexpr std::int64_t most_values = 80;

std::int64_t taps(const Conv2dProblem& p) { return p.kh * p.kw; }
std::int64_t result_height(const Conv2dProblem& p, Conv2dDirection direction) {
  return direction == Conv2dDirection::backward_data ? p.h : p.oh;
}
std::int64_t result_width(const Conv2dProblem& p, Conv2dDirection direction) {
  return direction == Conv2dDirection::backward_data ? p.w : p.ow;
}

/// Between the rows that `rows` rows see.
std::int64_t row_step(const Conv2dProblem& p, std::int64_t rows) { return rows == 1 ? p.dilation.height : 1; }

/// What the compiler writes out for `rows` rows: loads of what they see.
std::int64_t loads(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t rows) {
  const auto reach = (p.kh - 1) * p.dilation.height, stride = p.stride.height;
  const auto span =
      direction == Conv2dDirection::backward_data ? (rows - 1) / stride + reach / stride : (rows - 1) * stride + reach;
  return (span / row_step(p, rows) + 1) * p.kw;
}

/// The gradient of the input is made in as many rows as its phases, which see different taps.
std::int64_t fewest_rows(const Conv2dProblem& p, Conv2dDirection direction) {
  return direction == Conv2dDirection::backward_data ? p.stride.height : 1;
}

/// Else they are read one by one.
bool taps_in_registers(const Conv2dProblem& p, Conv2dDirection direction) {
  constexpr std::int64_t most_rows = 8;
  const auto rows = fewest_rows(p, direction);
  return taps(p) <= most_depthwise_taps && rows <= most_rows && loads(p, direction, rows) <= most_loads;
}

/// Rows of the result that lie above the first strip's.
std::int64_t early_rows(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t rows) {
  return direction == Conv2dDirection::backward_data && rows > 1 ? p.top % p.stride.height : 0;
}

std::int64_t strips(const Conv2dProblem& p, Conv2dDirection direction, std::int64_t rows) {
  return ceil_div(result_height(p, direction) + early_rows(p, direction, rows), rows);
}

/// Parts of the weight's gradient: groups enough for all units, and no longer sums than elsewhere. Where the channels alone make
/// a few groups for each, adding up is not worth its launch.
std::int64_t choose_parts(const Conv2dProblem& p, std::int64_t rows, const DeviceInfo& device) {
  constexpr std::int64_t few_groups = 4, many_groups = 16, least_columns = 4;
  const auto columns = p.n * strips(p, Conv2dDirection::backward_weights, rows) * p.ow;
  const auto units = std::max<std::int64_t>(device.compute_units, 1);
  const auto wanted = p.o >= few_groups * units ? 1 : ceil_div(many_groups * units, p.o);
  const auto most = std::max<std::int64_t>(1, columns / (depthwise_group * least_columns));
  return std::max(std::min(wanted, most), ceil_div(columns * rows, depthwise_group * longest_gemm_sum));
}

exec::Launch& define(exec::Launch& launch, const Conv2dProblem& p, std::int64_t rows) {
  return launch.define("OG", p.group_out())
      .define("KH", p.kh)
      .define("KW", p.kw)
      .define("SH", p.stride.height)
      .define("SW", p.stride.width)
      .define("DH", p.dilation.height)
      .define("DW", p.dilation.width)
      .define("ROWS", rows)
      .define("ROW_STEP", row_step(p, rows))
      .flops(p.flops());
}

void lower_depthwise_weights(const Conv2dProblem& p, exec::Recorder& recorder) {
  const auto rows = recorder.config()["rows"], all_strips = strips(p, Conv2dDirection::backward_weights, rows);
  const auto columns = p.n * all_strips * p.ow, length = ceil_div(columns, recorder.config()["parts"]);
  const auto parts = ceil_div(columns, length);
  const auto sums = weight_sums(p, parts, recorder);
  auto& launch =
      recorder.kernel("conv2d_depthwise_gpu", "conv2d_depthwise_gpu").define("WEIGHTS", 1).define("ITEMS", depthwise_group);
  define(launch, p, rows)
      .in("x", p.x)
      .in("g", p.y)
      .out("w", sums)
      .args({p.o, p.h, p.w, p.oh, p.ow, p.top, p.left, all_strips, columns, length})
      .range({p.o * depthwise_group, parts}, {depthwise_group, 1})
      .detail(fmt::format("{} in {} rows, {} parts", p.text(), rows, parts));
  if (parts > 1) add_up_weight(p, sums, parts, recorder);
}

}  // namespace

std::optional<std::string> conv2d_depthwise_gpu_rejects(const Conv2dProblem& p, Conv2dDirection direction,
                                                        const DeviceInfo& device) {
  if (p.group_in() != 1) return "not depthwise: groups of several input channels are summed";
  if (p.n == 0 || p.o == 0 || p.h == 0 || p.w == 0 || p.pixels() == 0) return "nothing to compute";
  if (p.top < 0 || p.left < 0) return "its padding is negative";
  if (direction == Conv2dDirection::backward_weights) {
    if (!taps_in_registers(p, direction)) return "so many taps have no room in registers";
    if (static_cast<std::int64_t>(device.max_work_group_size) < depthwise_group ||
        static_cast<std::int64_t>(device.local_memory) < taps(p) * depthwise_group * 4)
      return fmt::format("the device takes no work-group of {} with its sums in local memory", depthwise_group);
    return std::nullopt;
  }
  const auto terms = direction == Conv2dDirection::backward_data ? p.group_out() * taps(p) : taps(p);
  if (terms > longest_gemm_sum) return fmt::format("sums of {} terms are made of blocks", terms);
  return std::nullopt;
}

std::optional<std::string> conv2d_depthwise_gpu_declines(const Conv2dProblem& p, Conv2dDirection direction, const DeviceInfo&) {
  constexpr std::int64_t few = 8;
  if (direction == Conv2dDirection::backward_data || p.group_out() <= few) return std::nullopt;
  return "so many outputs of each channel fill the tiles of a product, which reads the channel once for all";
}

std::vector<exec::Config> conv2d_depthwise_gpu_configs(const Conv2dProblem& p, Conv2dDirection direction,
                                                       const DeviceInfo& device) {
  const bool weights = direction == Conv2dDirection::backward_weights;
  const auto config = [&](std::int64_t rows) {
    return weights ? exec::Config{{"rows", rows}, {"parts", choose_parts(p, rows, device)}} : exec::Config{{"rows", rows}};
  };
  if (!taps_in_registers(p, direction)) return {config(1)};
  // Loads and stores of all strips of a column; where fewer loads are under way at a time than memory could serve, it waits.
  const auto cost = [&](std::int64_t rows) {
    constexpr std::int64_t loads_per_unit = 8192;
    const auto all = strips(p, direction, rows), planes = p.n * (direction == Conv2dDirection::backward_data ? p.c : p.o);
    const auto columns =
        weights ? depthwise_group * p.o * choose_parts(p, rows, device) : planes * all * result_width(p, direction);
    const auto under_way = columns * loads(p, direction, rows);
    const auto wanted = loads_per_unit * std::max<std::int64_t>(device.compute_units, 1);
    const auto per_strip = loads(p, direction, rows) + rows + (weights ? 0 : taps(p));
    return static_cast<double>(all * per_strip) * std::max(1.0, static_cast<double>(wanted) / static_cast<double>(under_way));
  };
  std::vector<std::pair<double, std::int64_t>> found;
  for (const std::int64_t wanted : {8, 4, 2, 1}) {
    const auto fewest = fewest_rows(p, direction), rows = ceil_div(wanted, fewest) * fewest;
    if (rows > fewest && loads(p, direction, rows) + taps(p) > most_values) continue;
    if (!found.empty() && found.back().second == rows) continue;
    found.emplace_back(cost(rows), rows);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<exec::Config> result;
  for (const auto& entry : found) result.push_back(config(entry.second));
  return result;
}

void conv2d_depthwise_gpu(const Conv2dProblem& p, Conv2dDirection direction, exec::Recorder& recorder) {
  if (direction == Conv2dDirection::backward_weights) return lower_depthwise_weights(p, recorder);
  const bool forward = direction == Conv2dDirection::forward;
  const auto rows = recorder.config()["rows"], all_strips = strips(p, direction, rows), channels = forward ? p.o : p.c;
  const auto total = p.n * channels * all_strips * result_width(p, direction);
  auto& launch = recorder.kernel("conv2d_depthwise_gpu", "conv2d_depthwise_gpu").define(forward ? "FORWARD" : "DATA", 1);
  if (!taps_in_registers(p, direction)) launch.define("LOOPED", 1);
  define(launch, p, rows).in("x", forward ? p.x : p.y).in("w", p.weight);
  if (p.has_bias()) launch.in("bias", p.bias).define("BIAS", 1);
  launch.out("y", forward ? p.y : p.x).args({total, channels});
  forward ? launch.args({p.h, p.w, p.oh, p.ow}) : launch.args({p.oh, p.ow, p.h, p.w});
  launch.args({p.top, p.left, all_strips, early_rows(p, direction, rows)})
      .range({total}, {64})
      .detail(fmt::format("{} in {} rows", p.text(), rows));
  pass_slices(launch, p);
  recorder.epilogue(launch, channels, forward ? p.channel_size() : p.h * p.w);
}

}  // namespace clnet::ops
