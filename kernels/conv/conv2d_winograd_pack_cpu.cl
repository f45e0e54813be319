// Weights as conv2d_winograd_cpu reads them: {panel, product, input, lane} in f32, zero in lanes that are no output. The gradient
// of the input sees the kernel turned round. Work-items: panels, blocks of `block` inputs.
#include "conv2d_winograd_cpu.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd_pack_cpu(
    IN(w), OUT(packed), const int in, const int out, const int in_stride, const int out_stride, const int turned,
    const int block) {
  const int panel = (int)get_global_id(0), c0 = (int)get_global_id(1) * block, c1 = min(in, c0 + block);
  for (int c = c0; c < c1; ++c)
    for (int v = 0; v < VECTORS; ++v) {
      const int o = panel * LANES + v * VW, lanes = min(VW, out - o);
      float g[9][VW];
      SELDOM for (int lane = 0; lane < VW; ++lane)
        SELDOM for (int k = 0; k < 9; ++k)
          g[k][lane] = lane < lanes ? LOAD(w, (o + lane) * out_stride + c * in_stride + (turned ? 8 - k : k)) : 0.0f;
      VFLOAT t[3][TILE_IN];
      #pragma unroll
      for (int r = 0; r < 3; ++r)
        TRANSFORM_WEIGHTS(t[r], *(any_vector *)g[3 * r], *(any_vector *)g[3 * r + 1], *(any_vector *)g[3 * r + 2]);
      #pragma unroll
      for (int s = 0; s < TILE_IN; ++s) {
        VFLOAT u[TILE_IN];
        TRANSFORM_WEIGHTS(u, t[0][s], t[1][s], t[2][s]);
        #pragma unroll
        for (int r = 0; r < TILE_IN; ++r) {
          const size_t at = ((size_t)(panel * TILE_PRODUCTS + r * TILE_IN + s) * in + c) * LANES + v * VW;
          *(global any_vector *)(PTR(packed) + at) = u[r];
        }
      }
    }
}
