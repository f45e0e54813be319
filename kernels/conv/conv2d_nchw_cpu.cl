// Convolution of few channels for CPUs, and the gradient of its input: vectors hold pixels of one plane. Every group has `ins` source
// planes and `outs` target planes. A work-item makes RB rows of a group's targets: OUTS of them at a time, ROWS x COLUMNS vectors of
// each. Grids and taps are conv2d_cpu's. With BLOCKS, for more taps than hardly anybody has, they are summed in blocks.
#include "item.clh"
#include "conv2d_nchw_cpu.clh"
#include "conv2d_slices.clh"
#include "epilogue.clh"

#define VECTORS (ROWS * COLUMNS)

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(groups), INT(ins), INT(outs), INT(in_stride), INT(out_stride),           \
  INT(group_stride), INT(KW), INT(H), INT(W), INT(YH), INT(YW), INT(PH), INT(PW), INT(y_top), INT(y_left),          \
  INT(y_step_h), INT(y_step_w), INT(x_step_h), INT(x_step_w), INT(taps_h), INT(taps_w), INT(top), INT(left),        \
  INT(tap_step_h), INT(tap_step_w), INT(first_h), INT(first_w), INT(kernel_step_h), INT(kernel_step_w), INT(RB),    \
  INT(rows), INT(columns), INT(pitch), LOCAL(float, staged), LOCAL(int, offsets), LOCAL(int, places),               \
  LOCAL(float, weights) SLICES_PARAMETER EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_nchw_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int row0 = id0 * RB, height = min(RB, PH - row0);
  const int group = id1, n = id2;
  const int up = min(0, (taps_h - 1) * tap_step_h), before = min(0, (taps_w - 1) * tap_step_w);
  const int window = rows * pitch, taps = taps_h * taps_w, count = ins * taps, plane = Y_PLANES * YH * YW;

  clear(staged, ins * window + COLUMNS * VW);
  for (int i = 0; i < ins; ++i) {
    stage_plane(x_base, x_offset, ((n * groups + group) * ins + i) * H * W, H, W, row0 * x_step_h + top + up, left + before,
                staged + i * window, rows, columns, x_step_w, pitch);
    SELDOM for (int s = 0; s < taps_h; ++s)
      SELDOM for (int t = 0; t < taps_w; ++t) {
        const int k = i * taps + s * taps_w + t;
        offsets[k] = i * window + (s * tap_step_h - up) * pitch + staged_column(t * tap_step_w - before, x_step_w, pitch);
        places[k] = i * in_stride + (first_h + s * kernel_step_h) * KW + first_w + t * kernel_step_w;
      }
  }
  for (int o0 = 0; o0 < outs; o0 += OUTS) {
    float start[OUTS];
    SELDOM for (int o = 0; o < OUTS; ++o) {
      // Past the last target, the others repeat it.
      const int out = min(o0 + o, outs - 1);
      start[o] = 0;
#ifdef BIAS
      start[o] = LOAD(bias, group * outs + out);
#endif
      const int filter = group * group_stride + out * out_stride;
      SELDOM for (int k = 0; k < count; ++k) weights[k * OUTS + o] = LOAD(w, filter + places[k]);
    }
    for (int r = 0; r < height; r += ROWS)
      for (int j = 0; j < PW; j += COLUMNS * VW) {
        VFLOAT sum[OUTS][VECTORS];
#ifdef BLOCKS
        VFLOAT total[OUTS][VECTORS];
        #pragma unroll
        for (int o = 0; o < OUTS; ++o)
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) total[o][v] = (VFLOAT)(0.0f);
#endif
        const local float *point[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          point[v] = staged + min(r + v / COLUMNS, height - 1) * x_step_h * pitch + j + v % COLUMNS * VW;
          #pragma unroll
          for (int o = 0; o < OUTS; ++o) sum[o][v] = (VFLOAT)(start[o]);
        }
        for (int k = 0; k < count; ++k) {
#ifdef BLOCKS
          if (k % CLNET_BLOCK == 0) {
            #pragma unroll
            for (int o = 0; o < OUTS; ++o)
              #pragma unroll
              for (int v = 0; v < VECTORS; ++v) {
                total[o][v] += sum[o][v];
                sum[o][v] = (VFLOAT)(0.0f);
              }
          }
#endif
          const int offset = offsets[k];
          VFLOAT pixels[VECTORS];
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) pixels[v] = *(const local any_vector *)(point[v] + offset);
          #pragma unroll
          for (int o = 0; o < OUTS; ++o) {
            const VFLOAT weight = (VFLOAT)(weights[k * OUTS + o]);
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[o][v] = fma(weight, pixels[v], sum[o][v]);
          }
        }
#ifdef BLOCKS
        #pragma unroll
        for (int o = 0; o < OUTS; ++o)
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) sum[o][v] += total[o][v];
#endif
        const int first = Y_PLANE(n, group * outs + o0, groups * outs) * (YH * YW) + (y_top + (row0 + r) * y_step_h) * YW + y_left + j * y_step_w;
        if (y_step_w == 1 && r + ROWS <= height && j + COLUMNS * VW <= PW && o0 + OUTS <= outs) {
          #pragma unroll
          for (int o = 0; o < OUTS; ++o)
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
              const int at = first + o * plane + v / COLUMNS * y_step_h * YW + v % COLUMNS * VW;
              VSTORE(y, at, VEPILOGUE(sum[o][v], at, group * outs + o0 + o, 0));
            }
          continue;
        }
        VFLOAT edge[OUTS][VECTORS];
        #pragma unroll
        for (int o = 0; o < OUTS; ++o)
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) edge[o][v] = sum[o][v];
        const int high = min(ROWS, height - r), wide = min(COLUMNS * VW, PW - j), whole = y_step_w == 1 ? wide / VW * VW : 0;
        SELDOM for (int o = 0; o < min(OUTS, outs - o0); ++o)
          SELDOM for (int q = 0; q < high; ++q) {
            const int at = first + o * plane + q * y_step_h * YW, out = group * outs + o0 + o;
            SELDOM for (int column = 0; column < whole; column += VW)
              VSTORE(y, at + column, VEPILOGUE(edge[o][q * COLUMNS + column / VW], at + column, out, 0));
            const float *lanes = (const float *)edge[o] + q * COLUMNS * VW;
            SELDOM for (int lane = whole; lane < wide; ++lane)
              STORE(y, at + lane * y_step_w, EPILOGUE(lanes[lane], at + lane * y_step_w, out));
          }
      }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_nchw_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_nchw_cpu_item(IDS, PARAMETERS);
}
