// The gradient of a convolution's weight for CPUs. A work-item sums CB input channels by PB panels of LANES output channels
// over `images` images: it stages a window of the inputs, and RB rows (or WB columns of one) of the output's gradient with the channels side by side,
// and sums tiles of TILE weights in registers. Its sums are one part of y {parts, o, c, kh, kw}.
#include "item.clh"
#include "conv2d_stage_cpu.clh"
#include "conv2d_store_cpu.clh"

// target[i * LANES + lane] = g[first + lane * stride + i] for lanes below `lanes`; the others become 0.
PART void stage_lanes(IN(g), const int first, const int stride, const int count, const int lanes,
                      local float *restrict target) {
  int i = 0;
  for (; i + VW <= count; i += VW) {
    VFLOAT block[VW];
    if (lanes >= VW) {
      #pragma unroll
      for (int lane = 0; lane < VW; ++lane) block[lane] = VLOAD(g, first + lane * stride + i);
    } else {
      SELDOM for (int lane = 0; lane < VW; ++lane)
        block[lane] = lane < lanes ? VLOAD(g, first + lane * stride + i) : (VFLOAT)(0.0f);
    }
    TRANSPOSE(block)
    #pragma unroll
    for (int j = 0; j < VW; ++j) *(local any_vector *)(target + (i + j) * LANES) = block[j];
  }
  SELDOM for (; i < count; ++i)
    SELDOM for (int lane = 0; lane < VW; ++lane) target[i * LANES + lane] = lane < lanes ? LOAD(g, first + lane * stride + i) : 0.0f;
}

#define PARAMETERS                                                                                                  \
  IN(x), IN(g), OUT(y), INT(N), INT(images), INT(groups), INT(CG), INT(H), INT(W), INT(OG), INT(KH), INT(KW),       \
  INT(OH), INT(OW), INT(SH), INT(SW), INT(PT), INT(PL), INT(DH), INT(DW), INT(RB), INT(WB), INT(PB), INT(CB),       \
  INT(rows), INT(columns), INT(pitch), LOCAL(float, sums), LOCAL(float, staged), LOCAL(float, panel_g)
WORK_ITEM void conv2d_backward_weights_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int panel0 = id0 * PB, panel1 = min((OG + LANES - 1) / LANES, panel0 + PB);
  const int c0 = id1 * CB, channels = min(CB, CG - c0);
  const int part = id2 / groups, group = id2 % groups;
  const int taps = KH * KW, weights = channels * taps, tiles = (weights + TILE - 1) / TILE;
  const int panel_size = (tiles * TILE + VW) * LANES;
  const int n0 = part * images, n1 = BLOCK_END(n0, images, N);

  clear(sums, (panel1 - panel0) * panel_size);
  const int pieces = (OW + WB - 1) / WB, blocks = (OH + RB - 1) / RB * pieces;
  for (int block = 0; block < blocks; ++block) {
    const int row0 = block / pieces * RB, height = min(RB, OH - row0);
    const int column0 = REMAINDER(block, pieces) * WB, width = min(WB, OW - column0);
    clear(staged, channels * pitch);
    for (int n = n0; n < n1; ++n) {
      stage(x_base, x_offset, ((n * groups + group) * CG + c0) * H * W, channels, H, W, row0 * SH - PT, column0 * SW - PL, staged, rows,
            columns, pitch);
      for (int panel = panel0; panel < panel1; ++panel) {
        for (int v = 0; v < VECTORS; ++v) {
          const int o = panel * LANES + v * VW;
          stage_lanes(g_base, g_offset, ((n * groups + group) * OG + o) * OH * OW + row0 * OW + column0, OH * OW, height * width, OG - o,
                      panel_g + v * VW);
        }
        int c = 0, s = 0, t = 0;
        for (int tile = 0; tile < tiles; ++tile) {
          const local float *point[TILE];
          #pragma unroll
          for (int i = 0; i < TILE; ++i) {
            // Past the last weight, tiles repeat it.
            point[i] = staged + c * pitch + s * DH * columns + t * DW;
            if (tile * TILE + i < weights - 1 && ++t == KW) {
              t = 0;
              if (++s == KH) {
                s = 0;
                ++c;
              }
            }
          }
          VFLOAT sum[TILE][VECTORS];
          local float *restrict tile_sums = sums + (panel - panel0) * panel_size + tile * TILE * LANES;
          CLEAR_SUMS(sum)
          const local float *restrict gradients = panel_g;
          for (int r = 0; r < height; ++r) {
            const int offset = r * SH * columns;
            ACCUMULATE(sum, point, offset, SW, gradients, const local, width)
          }
          ADD_SUMS(tile_sums, sum)
        }
      }
    }
  }
  for (int panel = panel0; panel < panel1; ++panel)
    for (int v = 0; v < VECTORS; ++v) {
      const int o = panel * LANES + v * VW;
      store_planes(y_base, y_offset, sums + (panel - panel0) * panel_size + v * VW, LANES, weights, min(VW, OG - o),
                   ((part * groups + group) * OG + o) * CG * taps + c0 * taps, CG * taps, 0, (VFLOAT)(0.0f));
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_cpu_item(IDS, PARAMETERS);
}
