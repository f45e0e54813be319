// Matrix products of few rows or few columns on CPUs, as in linear layers of a small batch: reading the large matrix is much of
// the work, so that packing it would double that.
#include <algorithm>
#include <utility>
#include <vector>

#include "lib/ops/matmul/matmul_solvers.h"
#include "lib/ops/rows.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet::ops {

namespace {

/// With so many rows (or columns) at most, no element of the other matrix is used often enough to be packed, where vectors are
/// wide.
constexpr std::int64_t most = 16;

/// What a block has in registers: rows, and vectors of columns or, where b is transposed, columns.
struct Tile {
  std::int64_t rows, vectors;
};
/// Of at most so many rows, cut evenly.
Tile even(std::int64_t m, const Tile& tile) { return {ceil_div(m, ceil_div(m, tile.rows)), tile.vectors}; }

/// Of five rows or four by four vectors; six would cost registers for their addresses (1.03 to 1.13 times as slow).
Tile least_padded(std::int64_t m) {
  const Tile five = even(m, {5, 4}), four = even(m, {4, 4});
  const auto cost = [&](const Tile& tile) { return ceil_div(m, tile.rows) * (2 * tile.rows + 1); };
  return cost(four) < cost(five) ? four : five;
}

/// Of a block in whatever configuration, for which kernels are made.
std::int64_t most_rows(std::int64_t width, bool transpose_b) { return width < 16 ? 3 : transpose_b ? 4 : 5; }

/// The columns are few and the rows are not: the product is made of the transposed ones, in which they are rows.
bool is_swapped(const MatmulProblem& p) { return p.m > most && p.n <= most; }

/// c' = b' a' without its bias and its place.
MatmulProblem swapped(const MatmulProblem& p) {
  auto result = p;
  std::swap(result.a, result.b);
  std::swap(result.m, result.n);
  std::swap(result.stride_a, result.stride_b);
  result.transpose_a = !p.transpose_b;
  result.transpose_b = !p.transpose_a;
  return result;
}

/// Whether b is read in place from the second-level cache as fast as from panels, with vectors of 16. Measured: 1.03 to 1.7 times
/// as fast as packed; in batches, where each core packs what it alone needs, 1.1 to 1.2 times if it is small and no vectors are
/// left over; transposed only in long sums.
bool is_near(const MatmulProblem& p) {
  constexpr std::int64_t cached = 1 << 20, half = 1 << 18, small = 1 << 14, block = 4 * 16, long_sum = 2048;
  const auto elements = p.k * p.n;
  if (p.transpose_b) return p.batch == 1 && p.m <= 64 && p.k >= long_sum && elements <= cached;
  if (p.batch > 1) return p.m <= 128 && p.n % block == 0 && elements <= small;
  return p.n > most && p.m <= (elements <= half ? 256 : 192) && elements <= cached;
}

}  // namespace

std::optional<std::string> matmul_skinny_cpu_rejects(const MatmulProblem& p, const DeviceInfo& device) {
  return needs_vectors(p, device);
}

std::optional<std::string> matmul_skinny_cpu_declines(const MatmulProblem& p, const DeviceInfo& device) {
  // Measured: swapped it is 1.1 to 2.4 times as fast from some 2^18 elements on, and slower on small ones.
  constexpr std::int64_t few_columns = 8, large = 1 << 18;
  if (p.n <= few_columns && p.m > most && p.m * p.k >= large) return std::nullopt;
  // Measured, too. With half as many registers b is read twice as often, by twice as many loads.
  const auto width = vector_width(device), few = width == 16 ? most : std::int64_t{p.transpose_b ? 6 : 12};
  if (p.m <= few) return std::nullopt;
  if (width == 16 && p.dtype == Dtype::f32 && is_near(p)) return std::nullopt;
  return "so many rows and columns are worth packing";
}

std::vector<exec::Config> matmul_skinny_cpu_configs(const MatmulProblem& problem, const DeviceInfo& device) {
  const auto p = is_swapped(problem) ? swapped(problem) : problem;
  std::vector<exec::Config> result;
  const auto own = vector_width(device);
  for (const auto width : vector_widths(device)) {
    // What the registers hold: 32 of AVX-512's, 16 of narrower ones. Sums of lanes cost more the more there are.
    const auto usual = even(p.m, {3, 4}), wide = p.transpose_b ? even(p.m, {4, 4}) : least_padded(p.m);
    const auto add = [&](const Tile& tile) {
      result.push_back({{"lanes", width}, {"rows", tile.rows}, {"vectors", tile.vectors}});
    };
    add(width == 16 ? wide : usual);
    if (width == own && width == 16 && usual.rows != wide.rows) add(usual);
  }
  return result;
}

void matmul_skinny_cpu(const MatmulProblem& problem, exec::Recorder& recorder) {
  auto p = is_swapped(problem) ? swapped(problem) : problem;
  if (p.transpose_a && p.transpose_b && p.m > 1) {
    // Vectors run along k in both: the few rows are turned.
    const auto batch = p.stride_a == 0 ? 1 : p.batch;
    const auto turned = recorder.temporary({Shape{batch, p.m, p.k}, p.dtype});
    strided_copy({p.a, turned, {{batch, p.stride_a, p.m * p.k}, {p.m, 1, p.k}, {p.k, p.m, 1}}}, recorder);
    p.a = turned;
    p.stride_a = batch == 1 ? 0 : p.m * p.k;
    p.transpose_a = false;
  }
  const auto& config = recorder.config();
  const auto width = config["lanes"], rows = config["rows"], vectors = config["vectors"];
  const auto unit = p.transpose_b ? vectors : vectors * width;
  // Four per core, first along the columns.
  const auto wanted = std::int64_t{4} * recorder.device().compute_units;
  const auto chunk = ceil_div(ceil_div(p.n, std::max<std::int64_t>(1, wanted / p.batch)), unit) * unit;
  const auto across = ceil_div(p.n, chunk);
  const auto tall = ceil_div(ceil_div(p.m, std::max<std::int64_t>(1, wanted / (p.batch * across))), rows) * rows;
  auto& launch = recorder.kernel("matmul_skinny_cpu", "matmul_skinny_cpu");
  launch.define("VW", width)
      .define("ROWS", most_rows(width, p.transpose_b))
      .define("COLUMNS", vectors)
      .in("a", p.a)
      .in("b", p.b)
      .in("bias", p.bias.value_or(p.a))
      .out("c", p.c)
      .touches(problem.reach());
  if (p.transpose_b) launch.define("TRANSPOSED", 1);
  if (is_swapped(problem)) launch.define("SWAPPED", 1);
  launch.arg(p.bias.has_value())
      .args({p.m, p.n, p.k})
      .args({p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1})
      .args({p.stride_a, p.stride_b, p.stride_c, chunk, tall, rows})
      .range({across, ceil_div(p.m, tall), p.batch}, {1, 1, 1})
      .flops(p.flops())
      .detail(p.text());
  recorder.epilogue(launch, problem.n, 1);
}

}  // namespace clnet::ops
