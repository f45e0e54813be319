// Direct convolution for CPUs. A work-item makes RB rows of PB panels of LANES output channels: it stages the input window of
// CB channels at a time, and sums tiles of TILE pixels in registers.
//
// Output pixel (i, j) of the grid {PH, PW} lies at (y_top + i * y_step_h, y_left + j * y_step_w) of y's plane, and its tap (s,
// t) reads x at (i * x_step_h + top + s * tap_step_h, j * x_step_w + left + t * tap_step_w). The gradient of a strided
// convolution's input is one such grid for each remainder of a position by the stride.
#include "conv2d_cpu.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_cpu(
    IN(x), IN(w),
#ifdef BIAS
    IN(bias),
#endif
    OUT(y), const int groups, const int CG, const int H, const int W, const int OG, const int YH, const int YW, const int PH,
    const int PW, const int y_top, const int y_left, const int y_step_h, const int y_step_w, const int x_step_h,
    const int x_step_w, const int taps_h, const int taps_w, const int top, const int left, const int tap_step_h,
    const int tap_step_w, const int RB, const int PB, const int CB, const int rows, const int columns, const int pitch,
    local float *restrict sums, local float *restrict staged) {
  const int panels = (OG + LANES - 1) / LANES, panel0 = (int)get_global_id(0) * PB, panel1 = min(panels, panel0 + PB);
  const int row0 = (int)get_global_id(1) * RB;
  const int n = (int)get_global_id(2) / groups, group = (int)get_global_id(2) % groups;
  const int pixels = min(RB, PH - row0) * PW, tiles = (pixels + TILE - 1) / TILE;
  const int panel_size = (tiles * TILE + VW) * LANES;
  // Taps may go up and to the left: the window starts at the smallest.
  const int up = min(0, (taps_h - 1) * tap_step_h), before = min(0, (taps_w - 1) * tap_step_w);
  const int x_plane = H * W, y_plane = YH * YW;

  clear(staged, CB * pitch);
  for (int c0 = 0; c0 < CG; c0 += CB) {
    const int channels = min(CB, CG - c0);
    stage(x_base, x_offset, ((n * groups + group) * CG + c0) * x_plane, channels, H, W, row0 * x_step_h + top + up, left + before,
          staged, rows, columns, pitch);
    for (int panel = panel0; panel < panel1; ++panel) {
      local float *restrict panel_sums = sums + (panel - panel0) * panel_size;
      const global float *restrict panel_weights =
          PTR(w) + ((size_t)(group * panels + panel) * CG + c0) * (taps_h * taps_w * LANES);
      int i = 0, j = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        const local float *point[TILE];
        #pragma unroll
        for (int p = 0; p < TILE; ++p) {
          // Past the last pixel, tiles repeat it.
          point[p] = staged + i * x_step_h * columns + j * x_step_w;
          if (tile * TILE + p < pixels - 1 && ++j == PW) {
            j = 0;
            ++i;
          }
        }
        VFLOAT sum[TILE][VECTORS];
        local float *restrict tile_sums = panel_sums + tile * TILE * LANES;
        if (c0 == 0) {
          #pragma unroll
          for (int p = 0; p < TILE; ++p)
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = (VFLOAT)(0.0f);
        } else {
          LOAD_SUMS(sum, tile_sums)
        }
        const global float *restrict weights = panel_weights;
        for (int s = 0; s < taps_h; ++s)
          for (int t = 0; t < taps_w; ++t) {
            const int offset = (s * tap_step_h - up) * columns + t * tap_step_w - before;
            ACCUMULATE(sum, point, offset, pitch, weights, const global, channels)
          }
        STORE_SUMS(tile_sums, sum)
      }
    }
  }

  const bool dense = y_step_h == 1 && y_step_w == 1;
  for (int panel = panel0; panel < panel1; ++panel)
    for (int v = 0; v < VECTORS; ++v) {
      const int o = panel * LANES + v * VW, lanes = min(VW, OG - o);
      const local float *restrict source = sums + (panel - panel0) * panel_size + v * VW;
      const int channel = (n * groups + group) * OG + o;
      VFLOAT start = (VFLOAT)(0.0f);
#ifdef BIAS
      if (lanes > 0) VLOAD_PART(start, bias, group * OG + o, lanes, 0.0f);
#endif
      if (dense) {
        store_planes(y_base, y_offset, source, pixels, lanes, channel * y_plane + row0 * YW, y_plane, start);
      } else {
        float lane_start[VW];
        *(any_vector *)lane_start = start;
        for (int lane = 0; lane < lanes; ++lane)
          for (int p = 0, i = 0; p < pixels; ++i)
            for (int j = 0; j < PW; ++j, ++p) {
              const int at = (y_top + (row0 + i) * y_step_h) * YW + y_left + j * y_step_w;
              STORE(y, (channel + lane) * y_plane + at, source[p * LANES + lane] + lane_start[lane]);
            }
      }
    }
}
