// Convolution by Winograd's F(4x4, 3x3) for CPUs. A work-item makes RB rows of tiles of `images` images (several only when RB is
// all rows) and PB panels of LANES output channels: it transforms its inputs (or finds them transformed, without FUSED),
// multiplies {tile, channel} by {channel, lane} for each of the 36 products with register tiles of TILE tiles, and transforms the
// sums to pixels.
#include "item.clh"
#include "conv2d_slices.clh"
#include "conv2d_store_cpu.clh"
#include "conv2d_winograd_cpu.clh"

#ifdef FUSED
#define TILES local
#include "conv2d_winograd_tiles_cpu.clh"
#define VALUES local
#define FUSED_PARAMETERS , LOCAL(float, values), LOCAL(float, staged)
#else
#define VALUES global
#define FUSED_PARAMETERS
#endif

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(N), INT(images), INT(C), INT(H), INT(W), INT(O), INT(YH), INT(YW),       \
  INT(TH), INT(TW), INT(RB), INT(PB), INT(top), INT(left), INT(pitch), INT(step), LOCAL(float, products),           \
  LOCAL(float, pixels) FUSED_PARAMETERS SLICES_PARAMETER EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_winograd_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int panels = (O + LANES - 1) / LANES, panel0 = id0 * PB, panel1 = min(panels, panel0 + PB);
  const int tile_row0 = id1 * RB, tile_rows = min(RB, TH - tile_row0);
  const int n0 = id2 * images, n1 = BLOCK_END(n0, images, N);
  const int image_tiles = tile_rows * TW, tiles = (n1 - n0) * image_tiles;
  const int row0 = tile_row0 * TILE_OUT, height = min(TILE_OUT * tile_rows, YH - row0);
#ifdef FUSED
  for (int c = 0; c < C; c += VW)
    transform_tiles(x_base, x_offset, n0, n1, C, H, W, c, tile_row0, tile_rows, TW, top, left, staged, values, pitch, step);
#else
  const global float *restrict values = PTR(x) + (n0 * TH + tile_row0) * TW * step;
#endif
  const int rounded = (tiles + TILE - 1) / TILE * TILE;
  for (int panel = panel0; panel < panel1; ++panel) {
    for (int product = 0; product < TILE_PRODUCTS; ++product)
      for (int tile = 0; tile < tiles; tile += TILE) {
        const VALUES float *point[TILE];
        #pragma unroll
        for (int i = 0; i < TILE; ++i) point[i] = values + product * pitch + min(tile + i, tiles - 1) * step;
        const global float *restrict weights = PTR(w) + (size_t)(panel * TILE_PRODUCTS + product) * C * LANES;
        local float *restrict sums = products + (product * rounded + tile) * LANES;
        for (int c = 0, end; c < C; c = end) {
          end = BLOCK_END(c, CLNET_BLOCK, C);
          VFLOAT sum[TILE][VECTORS];
          CLEAR_SUMS(sum)
          ACCUMULATE(sum, point, c, 1, weights, const global, end - c)
          if (c == 0) {
            STORE_SUMS(sums, sum)
          } else {
            ADD_SUMS(sums, sum)
          }
        }
      }
    for (int n = n0; n < n1; ++n)
      for (int v = 0; v < VECTORS; ++v) {
        const int o = panel * LANES + v * VW, lanes = min(VW, O - o);
        if (lanes <= 0) continue;
        const local float *from = products + (n - n0) * image_tiles * LANES + v * VW;
        for (int i = 0; i < tile_rows; ++i)
          for (int j = 0; j < TW; ++j, from += LANES) {
            VFLOAT t[TILE_IN][TILE_OUT];
            #pragma unroll
            for (int r = 0; r < TILE_IN; ++r) {
              const local float *m = from + r * TILE_IN * rounded * LANES;
              VFLOAT p[TILE_IN];
              #pragma unroll
              for (int s = 0; s < TILE_IN; ++s) p[s] = *(const local any_vector *)(m + s * rounded * LANES);
              TRANSFORM_OUTPUT(t[r], p[0], p[1], p[2], p[3], p[4], p[5]);
            }
            const int down = min(TILE_OUT, height - i * TILE_OUT), across = min(TILE_OUT, YW - j * TILE_OUT);
            local any_vector *to = (local any_vector *)pixels + i * TILE_OUT * YW + j * TILE_OUT;
            #pragma unroll
            for (int s = 0; s < TILE_OUT; ++s) {
              VFLOAT column[TILE_OUT];
              TRANSFORM_OUTPUT(column, t[0][s], t[1][s], t[2][s], t[3][s], t[4][s], t[5][s]);
              #pragma unroll
              for (int r = 0; r < TILE_OUT; ++r)
                if (r < down && s < across) to[r * YW + s] = column[r];
            }
          }
        LOAD_START(start, o, lanes)
        store_planes(y_base, y_offset, pixels, VW, height * YW, lanes, (Y_PLANE(n, o, O) * YH + row0) * YW, Y_PLANES * YH * YW, o,
                     start EPILOGUE_ARGUMENTS);
      }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_winograd_cpu_item(IDS, PARAMETERS);
}
