// Direct convolution of volumes for CPUs, and with BACKWARD the gradient of its input in all phases of its strides at once (images are
// volumes of one slice). A work-item makes what RB rows (or WB columns of one) of a phase come to, all phases of rows and columns
// together, of `images` slices of one phase along the depth (several only when RB is all rows), and of PB panels of LANES output channels: it
// stages the windows of CB terms at a time, each an input channel at a tap along the depth, and sums tiles of TILE elements of one
// phase in registers. Slices outside of the volume are left out.
#include "item.clh"
#include "conv2d_stage_cpu.clh"
#include "conv2d_store_cpu.clh"
#include "conv3d_cpu.clh"

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(N), INT(images), INT(groups), INT(C), INT(OG), INT(XD), INT(XH),         \
  INT(XW), INT(YD), INT(YH), INT(YW), INT(KD), INT(KH), INT(KW), INT(SD), INT(SH), INT(SW), INT(PD), INT(PH),       \
  INT(PW), INT(DD), INT(DH), INT(DW), INT(step_d), INT(step_h), INT(step_w), INT(F), INT(top), INT(left),           \
  INT(RB), INT(WB), INT(PB), INT(CB), INT(rows), INT(columns), INT(pitch), INT(panel_size), LOCAL(float, sums),     \
  LOCAL(float, staged), LOCAL(int, offsets) EPILOGUE_PARAMETERS
WORK_ITEM void conv3d_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int panels = (OG + LANES - 1) / LANES, panel0 = id0 * PB, panel1 = min(panels, panel0 + PB);
  const int all_columns = (YW + TARGET_STEP(SW) - 1) / TARGET_STEP(SW), pieces = (all_columns + WB - 1) / WB;
  const int row0 = id1 / pieces * RB, column0 = REMAINDER(id1, pieces) * WB;
  const int y_row = row0 * TARGET_STEP(SH), height = min(YH - y_row, RB * TARGET_STEP(SH));
  const int y_column = column0 * TARGET_STEP(SW), width = min(YW - y_column, WB * TARGET_STEP(SW));
  const int group = id2 % groups, block = id2 / groups;
  const int phase = block % PHASES(SD, YD), slices = (YD - phase + TARGET_STEP(SD) - 1) / TARGET_STEP(SD);
  const int n0 = block / PHASES(SD, YD) * images, n1 = BLOCK_END(n0, images, N * slices);
  if (n0 >= n1) return;
  const int image_pixels = height * width, total = (n1 - n0) * image_pixels;

  // The taps along the depth that any of the slices sees.
  const clnet_taps depth = taps_of(phase, KD, SD, PD, DD, step_d);
  int tap0 = depth.count, tap1 = 0;
  for (int k = 0; k < depth.count; ++k)
    for (int n = n0; n < n1; ++n) {
      const int slice = REMAINDER(n, slices) * SOURCE_STEP(SD) + depth.first + k * depth.step;
      if (slice < 0 || slice >= XD) continue;
      tap0 = min(tap0, k);
      tap1 = k + 1;
    }
  const int terms = tap0 < tap1 ? depth.count * C : 0, term0 = tap0 < tap1 ? tap0 * C / CB * CB : 0, term1 = tap1 * C;

  clear(staged, CB * pitch);
  int first = term0, offsets_of = 0;
  do {
    const int count = min(CB, terms - first);
    for (int k = 0; k < count; ++k) {
      const int tap = (first + k) / C, c = (first + k) % C;
      for (int n = n0; n < n1; ++n) {
        const int slice = REMAINDER(n, slices) * SOURCE_STEP(SD) + depth.first + tap * depth.step;
        local float *restrict window = staged + k * pitch + (n - n0) * rows * columns;
        if (slice >= 0 && slice < XD)
          stage(x_base, x_offset, (((n / slices * groups + group) * C + c) * XD + slice) * XH * XW, 1, XH, XW,
                row0 * SOURCE_STEP(SH) + top, column0 * SOURCE_STEP(SW) + left, window, rows, columns, pitch);
        else
          clear(window, rows * columns);
      }
    }
    // Where the terms of each tap lie from a pixel's first on, so that one loop goes over all of them.
    if (count != offsets_of) {
      local int *restrict next = offsets;
      for (int qh = 0; qh < PHASES(SH, YH); ++qh) {
        const clnet_taps high = taps_of(qh, KH, SH, PH, DH, step_h);
        for (int qw = 0; qw < PHASES(SW, YW); ++qw) {
          const clnet_taps wide = taps_of(qw, KW, SW, PW, DW, step_w);
          for (int s = 0; s < high.count; ++s)
            for (int t = 0; t < wide.count; ++t)
              for (int k = 0; k < count; ++k)
                *next++ = (high.first + s * high.step - top) * columns + wide.first + t * wide.step - left + k * pitch;
        }
      }
      offsets_of = count;
    }
    for (int panel = panel0; panel < panel1; ++panel) {
      const local int *restrict phase_offsets = offsets;
      local float *restrict panel_sums = sums + (panel - panel0) * panel_size;
      const global float *restrict phase_weights =
          PTR(w) + (((size_t)(phase * groups + group) * panels + panel) * F + first) * (KH * KW * LANES);
      for (int qh = 0; qh < PHASES(SH, YH); ++qh) {
        const clnet_taps high = taps_of(qh, KH, SH, PH, DH, step_h);
        const int phase_rows = (height - qh + TARGET_STEP(SH) - 1) / TARGET_STEP(SH);
        for (int qw = 0; qw < PHASES(SW, YW); ++qw) {
          const clnet_taps wide = taps_of(qw, KW, SW, PW, DW, step_w);
          const int phase_columns = (width - qw + TARGET_STEP(SW) - 1) / TARGET_STEP(SW);
          const int pixels = (n1 - n0) * phase_rows * phase_columns, tiles = (pixels + TILE - 1) / TILE;
          const int all = high.count * wide.count * count;
          // The next pixel, where its row and its image begin in the staged windows, and where they go.
          int i = 0, j = 0, to_row = qh * width + qw, to_image = to_row;
          const local float *row = staged, *image = staged;
          for (int tile = 0; tile < tiles; ++tile) {
            const local float *point[TILE];
            int to[TILE];
            #pragma unroll
            for (int p = 0; p < TILE; ++p) {
              // Past the last pixel, tiles repeat it, for nobody.
              point[p] = row + j * SOURCE_STEP(SW);
              to[p] = tile * TILE + p < pixels ? to_row + j * TARGET_STEP(SW) : total;
              if (tile * TILE + p < pixels - 1 && ++j == phase_columns) {
                j = 0;
                row += SOURCE_STEP(SH) * columns;
                to_row += TARGET_STEP(SH) * width;
                if (++i == phase_rows) {
                  i = 0;
                  row = image += rows * columns;
                  to_row = to_image += image_pixels;
                }
              }
            }
            VFLOAT sum[TILE][VECTORS];
            CLEAR_SUMS(sum)
            const global float *restrict weights = phase_weights;
            for (int k = 0; k < all; ++k, weights += LANES) {
              const int at = phase_offsets[k];
              VFLOAT right[VECTORS];
              #pragma unroll
              for (int v = 0; v < VECTORS; ++v) right[v] = ((const global any_vector *)weights)[v];
              #pragma unroll
              for (int p = 0; p < TILE; ++p) {
                const VFLOAT value = (VFLOAT)(point[p][at]);
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) sum[p][v] = fma(value, right[v], sum[p][v]);
              }
            }
            #pragma unroll
            for (int p = 0; p < TILE; ++p) {
              local any_vector *restrict target = (local any_vector *)(panel_sums + to[p] * LANES);
              #pragma unroll
              for (int v = 0; v < VECTORS; ++v) target[v] = first == term0 ? sum[p][v] : target[v] + sum[p][v];
            }
          }
          phase_weights += all * LANES;
          phase_offsets += all;
        }
      }
      if (first + CB < term1) continue;
      for (int v = 0; v < VECTORS; ++v) {
        const int o = panel * LANES + v * VW, lanes = min(VW, OG - o);
        LOAD_START(start, group * OG + o, lanes)
        for (int n = n0; n < n1; ++n) {
          const int slice = REMAINDER(n, slices) * TARGET_STEP(SD) + phase;
          const int at = ((((n / slices * groups + group) * OG + o) * YD + slice) * YH + y_row) * YW + y_column;
          const local float *restrict from = panel_sums + (n - n0) * image_pixels * LANES + v * VW;
          // Pieces of rows lie apart.
          const int parts = width < YW ? height : 1, length = image_pixels / parts;
          for (int part = 0; part < parts; ++part)
            store_planes(y_base, y_offset, from + part * length * LANES, LANES, length, lanes, at + part * YW, YD * YH * YW,
                         group * OG + o, start EPILOGUE_ARGUMENTS);
        }
      }
    }
    first += CB;
  } while (first < term1);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv3d_cpu(PARAMETERS) {
#include "arguments.clh"
  conv3d_cpu_item(IDS, PARAMETERS);
}
