// Matrix products on CPUs whose second factor is the same in many of them, as a weight is in a recurrence: it is packed once.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// The sums that are in registers at once.
struct PackedTile {
  std::int64_t rows, vectors;
};

/// Products from which on packing may pay.
constexpr std::int64_t many = 4;

bool is_shared(const MatmulProblem& p) { return p.readers.lasting || p.readers.alike >= many; }

/// Of at most 20 sums with 16 lanes, where more rows cost registers for their addresses; else of as many as hide how long an
/// addition takes. Few rows have panels of their own there, as reading those is most of their work; all others share theirs.
PackedTile largest_tile(std::int64_t m, std::int64_t width) {
  if (width == 16) return {5, 4};
  if (m < 4) return {3, 4};
  return width == 8 ? PackedTile{6, 2} : PackedTile{4, 3};
}

/// Of so many panels, how many a work-item makes, that of about `wanted` the most that a core makes are the fewest.
std::int64_t panels_each(std::int64_t panels, std::int64_t wanted, std::int64_t cores) {
  const auto fewest = ceil_div(panels, wanted);
  auto best = fewest;
  const auto longest = [&](std::int64_t each) { return ceil_div(ceil_div(panels, each), cores) * each; };
  for (auto each = fewest + 1; each <= 2 * fewest; ++each)
    if (longest(each) < longest(best)) best = each;
  return best;
}

/// b as panels of columns, in f32.
exec::Ref packed(const MatmulProblem& p, std::int64_t width, std::int64_t columns, exec::Recorder& recorder) {
  const auto panels = ceil_div(p.n, columns);
  const Spec spec{Shape{panels * p.k * columns}, Dtype::f32};
  const auto result = is_shared(p) ? recorder.prepack(spec, p.b) : recorder.prepack_once(spec);
  auto& launch = recorder.kernel("matmul_pack_cpu", "matmul_pack_cpu");
  launch.define("VW", width).define("COLUMNS", columns / width).in("b", p.b).out("packed", result);
  if (p.transpose_b) launch.define("TRANSPOSED", 1);
  launch.args({p.n, p.k}).range({panels}, {1});
  return result;
}

}  // namespace

std::optional<std::string> matmul_packed_cpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  if (auto reason = needs_vectors(p, device)) return reason;
  if (p.batch > 1) return "there are as many second factors as products";
  if (p.k == 0) return "there is nothing to pack";
  constexpr std::int64_t widest = 64, most = std::numeric_limits<std::int32_t>::max();  // columns of a panel, elements of a value
  if (p.n + widest > most / p.k) return "its panels have too many elements";
  return std::nullopt;
}

std::optional<std::string> matmul_packed_cpu_declines(const MatmulProblem& p, const DeviceInfo& device) {
  if (!is_shared(p)) return "so few products read the same second factor";
  // Measured: panels are 1.05 to 1.25 times as fast as what lies transposed, one row already; made for one plan they cost as much
  // as they save in some 40 rows.
  constexpr std::int64_t enough_rows = 64;
  if (!p.readers.lasting && p.readers.alike * p.m < enough_rows)
    return "the products that read the same second factor have few rows";
  const auto width = vector_width(device);
  constexpr std::int64_t in_place = 192, few = 12, narrow_rows = 16, most_elements = 1 << 20;
  if (!p.transpose_b && p.m <= (width == 16 ? in_place : few)) return "reading it where it lies is as fast";
  // 0.89 of the time of packing in tiles for 200 rows, 0.95 for 2000 with sums of 512, 1.02 with sums of 192.
  constexpr std::int64_t many_rows = 512, long_sum = 512;
  if (p.m > many_rows && p.k < long_sum) return "packing is little of the work";
  // The elements of a are converted one by one.
  if (p.dtype != Dtype::f32 && p.m > narrow_rows) return "so many rows are converted better while they are packed";
  if (p.n < width || p.k * p.n > most_elements) return "it has too few columns or too many elements";
  // One panel, on one core: 1.4 times the time of all cores on what lies transposed with sums of 2048, 3.6 with sums of 11,616.
  constexpr std::int64_t panel = 64, long_for_one = 2048;
  if (p.n < panel && p.k >= long_for_one && p.m <= narrow_rows) return "its sums are long for one panel that is not full";
  return std::nullopt;
}

std::vector<exec::Config> matmul_packed_cpu_configs(const MatmulProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto width : vector_widths(device)) {
    const auto [rows, vectors] = largest_tile(p.m, width);
    result.push_back({{"lanes", width}, {"rows", ceil_div(p.m, ceil_div(p.m, rows))}, {"vectors", vectors}});
  }
  return result;
}

void matmul_packed_cpu(const MatmulProblem& p, exec::Recorder& recorder) {
  const auto& config = recorder.config();
  const auto width = config["lanes"], rows = config["rows"], vectors = config["vectors"], unit = width * vectors;
  const auto panels = packed(p, width, unit, recorder);
  // Four per core, first along the columns.
  const auto cores = std::max<std::int64_t>(recorder.device().compute_units, 1), wanted = 4 * cores;
  const auto chunk = panels_each(ceil_div(p.n, unit), wanted, cores) * unit, across = ceil_div(p.n, chunk);
  const auto tall = ceil_div(ceil_div(p.m, std::max<std::int64_t>(1, wanted / across)), rows) * rows;
  auto& launch = recorder.kernel("matmul_packed_cpu", "matmul_packed_cpu");
  launch.define("VW", width)
      .define("ROWS", largest_tile(p.m, width).rows)
      .define("COLUMNS", vectors)
      .in("a", p.a)
      .in("b", panels)
      .in("bias", p.bias.value_or(p.a))
      .out("c", p.c)
      .touches(p.reach());
  launch.arg(p.bias.has_value())
      .args({p.m, p.n, p.k})
      .args({p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1})
      .args({chunk, tall, rows})
      .range({across, ceil_div(p.m, tall)}, {1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, p.n, 1);
}

}  // namespace clnet::ops
