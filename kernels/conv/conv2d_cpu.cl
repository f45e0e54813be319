// Direct convolution for CPUs. A work-item makes RB rows (or WB columns of one) of `images` images (several only when RB is all rows)
// and of PB panels of LANES output channels: it stages the input windows of CB channels at a time, and sums tiles of TILE pixels in registers.
//
// Output pixel (i, j) of the grid {PH, PW} lies at (y_top + i * y_step_h, y_left + j * y_step_w) of y's plane, and its tap (s, t)
// reads x at (i * x_step_h + top + s * tap_step_h, j * x_step_w + left + t * tap_step_w). The gradient of a strided convolution's
// input is one such grid for each remainder of a position by the stride.
#include "item.clh"
#include "conv2d_slices.clh"
#include "conv2d_stage_cpu.clh"
#include "conv2d_store_cpu.clh"

// The sums of one panel and image, `pixels` from row0 and column0 of the grid on, to y from its plane `plane` on, each lane to the plane
// `planes` behind. Only dense grids have a bias and an epilogue.
static inline void store_panel(OUT(y), const local float *restrict sums, const int pixels, const int PW, const int plane,
                        const int planes, const int lanes, const int row0, const int column0, const int YH, const int YW, const int y_top, const int y_left,
                        const int y_step_h, const int y_step_w, const int first_channel,
                        const VFLOAT bias EPILOGUE_PARAMETERS) {
  if (y_step_h == 1 && y_step_w == 1) {
    store_planes(y_base, y_offset, sums, LANES, pixels, lanes, (plane * YH + row0) * YW + column0, planes * YH * YW, first_channel,
                 bias EPILOGUE_ARGUMENTS);
    return;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    int at = ((plane + lane * planes) * YH + y_top + row0 * y_step_h) * YW + y_left + column0 * y_step_w;
    for (int p = 0; p < pixels; at += y_step_h * YW)
      for (int j = 0; j < PW; ++j, ++p) STORE(y, at + j * y_step_w, sums[p * LANES + lane]);
  }
}

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(N), INT(images), INT(groups), INT(CG), INT(H), INT(W), INT(OG),          \
  INT(YH), INT(YW), INT(PH), INT(all_columns), INT(y_top), INT(y_left), INT(y_step_h), INT(y_step_w),               \
  INT(x_step_h), INT(x_step_w), INT(taps_h), INT(taps_w), INT(top), INT(left), INT(tap_step_h), INT(tap_step_w),    \
  INT(RB), INT(WB), INT(PB), INT(CB), INT(rows), INT(columns), INT(pitch), LOCAL(float, sums),                      \
  LOCAL(float, staged) SLICES_PARAMETER EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int panels = (OG + LANES - 1) / LANES, panel0 = id0 * PB, panel1 = min(panels, panel0 + PB);
  const int pieces = (all_columns + WB - 1) / WB, row0 = id1 / pieces * RB, height = min(RB, PH - row0);
  const int column0 = REMAINDER(id1, pieces) * WB, PW = min(WB, all_columns - column0);
  const int n0 = id2 / groups * images, n1 = BLOCK_END(n0, images, N), group = id2 % groups;
  const int image_pixels = height * PW, pixels = (n1 - n0) * image_pixels, tiles = (pixels + TILE - 1) / TILE;
  // With one block of channels a panel's sums are done before the next panel begins.
  const int panel_size = CB < CG ? (tiles * TILE + VW) * LANES : 0;
  // Taps may go up and to the left: the window starts at the smallest.
  const int up = min(0, (taps_h - 1) * tap_step_h), before = min(0, (taps_w - 1) * tap_step_w);

  clear(staged, CB * pitch);
  for (int c0 = 0; c0 < CG; c0 += CB) {
    const int channels = min(CB, CG - c0);
    for (int n = n0; n < n1; ++n)
      stage(x_base, x_offset, ((n * groups + group) * CG + c0) * H * W, channels, H, W, row0 * x_step_h + top + up,
            column0 * x_step_w + left + before, staged + (n - n0) * rows * columns, rows, columns, pitch);
    for (int panel = panel0; panel < panel1; ++panel) {
      local float *restrict panel_sums = sums + (panel - panel0) * panel_size;
      const global float *restrict panel_weights =
          PTR(w) + ((size_t)(group * panels + panel) * CG + c0) * (taps_h * taps_w * LANES);
      // The next pixel, and where its row and its image begin in the staged windows.
      int i = 0, j = 0;
      const local float *row = staged, *image = staged;
      for (int tile = 0; tile < tiles; ++tile) {
        const local float *point[TILE];
        #pragma unroll
        for (int p = 0; p < TILE; ++p) {
          // Past the last pixel, tiles repeat it.
          point[p] = row + j * x_step_w;
          if (tile * TILE + p < pixels - 1 && ++j == PW) {
            j = 0;
            row += x_step_h * columns;
            if (++i == height) {
              i = 0;
              row = image += rows * columns;
            }
          }
        }
        VFLOAT sum[TILE][VECTORS];
        local float *restrict tile_sums = panel_sums + tile * TILE * LANES;
        CLEAR_SUMS(sum)
        const global float *restrict weights = panel_weights;
        for (int s = 0; s < taps_h; ++s)
          for (int t = 0; t < taps_w; ++t) {
            const int offset = (s * tap_step_h - up) * columns + t * tap_step_w - before;
            ACCUMULATE(sum, point, offset, pitch, weights, const global, channels)
          }
        if (c0 == 0) {
          STORE_SUMS(tile_sums, sum)
        } else {
          ADD_SUMS(tile_sums, sum)
        }
      }
      if (c0 + CB < CG) continue;
      for (int v = 0; v < VECTORS; ++v) {
        const int o = panel * LANES + v * VW, lanes = min(VW, OG - o);
        LOAD_START(start, group * OG + o, lanes)
        for (int n = n0; n < n1; ++n)
          store_panel(y_base, y_offset, panel_sums + (n - n0) * image_pixels * LANES + v * VW, image_pixels, PW,
                      Y_PLANE(n, group * OG + o, groups * OG), Y_PLANES, lanes, row0, column0, YH, YW, y_top, y_left, y_step_h, y_step_w, group * OG + o,
                      start EPILOGUE_ARGUMENTS);
      }
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_cpu_item(IDS, PARAMETERS);
}
