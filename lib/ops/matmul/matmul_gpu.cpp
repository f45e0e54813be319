// Matrix products on GPUs: tiles of the result in local memory and registers, chosen by a model of how busy they keep the device.
#include "lib/ops/matmul/matmul_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/ops/gemm_gpu.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

std::optional<std::string> matmul_gpu_rejects(const MatmulProblem&, const DeviceInfo& device) {
  if (!has_gemm_tile(device)) return "the device takes no work-group of 64 with a tile in its local memory";
  return std::nullopt;
}

std::vector<exec::Config> matmul_gpu_configs(const MatmulProblem& p, const DeviceInfo& device) {
  return gemm_configs({p.m, p.n, p.k, p.batch}, device);
}

void record_tiles(const MatmulProblem& p, exec::Recorder& recorder, const TiledKernel& kernel) {
  const auto tile = GemmTile::of(recorder.config());
  const GemmCut cut(p.k, recorder.config()["parts"], kernel.chunk);
  const auto elements = p.batch * p.m * p.n;
  const auto target = cut.whole() ? p.c : recorder.temporary({Shape{cut.parts, elements}, Dtype::f32});
  const auto bias = p.bias.value_or(p.a);
  for (std::int64_t round = 0; round < cut.rounds; ++round) {
    auto& product = recorder.kernel(kernel.name, kernel.name);
    tile.define(product);
    for (const auto& name : kernel.defines) product.define(name, 1);
    if (kernel.stages > 0) product.define("STAGES", kernel.stages);
    if (p.transpose_a) product.define("TRANSPOSE_A", 1);
    if (p.transpose_b) product.define("TRANSPOSE_B", 1);
    if (round > 0) product.define("ADD", 1);
    product.in("a", p.a).in("b", p.b).in("bias", bias);
    round > 0 ? product.inout("c", target) : product.out("c", target);
    product.touches(cut.whole() ? p.reach() : cut.parts * elements)
        .arg(p.bias && cut.whole())
        .args({p.m, p.n, p.k})
        .args({p.stride_a, p.stride_b, cut.whole() ? p.stride_c : p.m * p.n})
        .args({round * cut.part, cut.part, cut.parts, elements})
        .range({ceil_div(p.n, tile.n) * kernel.items, ceil_div(p.m, tile.m), p.batch * cut.parts}, {kernel.items, 1, 1})
        .flops(p.flops() / static_cast<double>(cut.rounds))
        .detail(fmt::format("{} in {}x{}, k in {}", p.text(), tile.m, tile.n, cut.parts * cut.rounds));
    if (cut.whole()) return recorder.epilogue(product, p.n, 1);
  }
  auto& sum = recorder.kernel("gemm_sum_gpu", "gemm_sum_gpu");
  sum.in("x", target)
      .in("bias", bias)
      .out("c", p.c)
      .touches(p.reach())
      .arg(p.bias.has_value())
      .args({elements, p.m * p.n, p.stride_c, p.n, 1, cut.parts})
      .range({elements}, {64});
  recorder.epilogue(sum, p.n, 1);
}

void matmul_gpu(const MatmulProblem& p, exec::Recorder& recorder) {
  record_tiles(p, recorder, {.name = "matmul_gpu", .items = GemmTile::of(recorder.config()).items()});
}

}  // namespace clnet::ops
