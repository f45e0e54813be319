// The output's gradient x {N, O, H, W} in tiles of 4x4, transformed for the weight's gradient: values {product, tile, channel}, as
// conv2d_winograd_input_cpu makes them of the inputs. Work-items: blocks of RB rows of tiles, images, vectors of channels.
#include "item.clh"
#include "conv2d_winograd_tiles_cpu.clh"

#define PARAMETERS                                                                                                  \
  IN(x), OUT(values), INT(O), INT(H), INT(W), INT(TH), INT(TW), INT(RB), INT(pitch), INT(step),                     \
  LOCAL(float, staged)
WORK_ITEM void conv2d_backward_weights_winograd_gradient_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int tile_row0 = id0 * RB, tile_rows = min(RB, TH - tile_row0), n = id1;
  const int o0 = id2 * VW, columns = TILE_OUT * TW, row0 = tile_row0 * TILE_OUT;
  clear(staged, tile_rows * TILE_OUT * columns * VW);
  stage_channels(x_base, x_offset, (n * O + o0) * H * W, H * W, min(VW, O - o0), W, row0, min(H, row0 + tile_rows * TILE_OUT),
                 staged, columns);
  global float *to = PTR(values) + (n * TH + tile_row0) * TW * step + o0;
  for (int i = 0; i < tile_rows; ++i)
    for (int j = 0; j < TW; ++j, to += step) {
      const local any_vector *d = (local any_vector *)staged + (i * columns + j) * TILE_OUT;
      VFLOAT t[TILE_OUT][TILE_IN];
      #pragma unroll
      for (int r = 0; r < TILE_OUT; ++r, d += columns) TRANSFORM_GRADIENT(t[r], d[0], d[1], d[2], d[3]);
      #pragma unroll
      for (int s = 0; s < TILE_IN; ++s) {
        VFLOAT u[TILE_IN];
        TRANSFORM_GRADIENT(u, t[0][s], t[1][s], t[2][s], t[3][s]);
        #pragma unroll
        for (int r = 0; r < TILE_IN; ++r) *(global any_vector *)(to + (r * TILE_IN + s) * pitch) = u[r];
      }
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_winograd_gradient_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_winograd_gradient_cpu_item(IDS, PARAMETERS);
}
