// Depthwise convolution for CPUs, and the gradient of its input: every group has `ins` source planes and `outs` target planes,
// one of them 1. A work-item makes RB rows of a group's targets, ROWS vectors under each other at a time. Grids and taps are
// conv2d_cpu's.
#include "conv2d_depthwise_cpu.clh"
#include "epilogue.clh"

#define ROWS 4

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_cpu(
    IN(x), IN(w),
#ifdef BIAS
    IN(bias),
#endif
    OUT(y), const int groups, const int ins, const int outs, const int in_stride, const int out_stride, const int group_stride,
    const int KW, const int H, const int W, const int YH, const int YW, const int PH, const int PW, const int y_top,
    const int y_left, const int y_step_h, const int y_step_w, const int x_step_h, const int x_step_w, const int taps_h,
    const int taps_w, const int top, const int left, const int tap_step_h, const int tap_step_w, const int first_h,
    const int first_w, const int kernel_step_h, const int kernel_step_w, const int RB, const int rows, const int columns,
    const int pitch, local float *restrict staged, local int *restrict offsets, local float *restrict weights
        EPILOGUE_PARAMETERS) {
  const int row0 = (int)get_global_id(0) * RB, height = min(RB, PH - row0);
  const int group = (int)get_global_id(1), n = (int)get_global_id(2);
  const int up = min(0, (taps_h - 1) * tap_step_h), before = min(0, (taps_w - 1) * tap_step_w);
  const int window = rows * pitch, taps = taps_h * taps_w, count = ins * taps;

  clear(staged, ins * window + VW);
  for (int i = 0; i < ins; ++i) {
    stage_plane(x_base, x_offset, ((n * groups + group) * ins + i) * H * W, H, W, row0 * x_step_h + top + up, left + before,
                staged + i * window, rows, columns, x_step_w, pitch);
    for (int s = 0; s < taps_h; ++s)
      for (int t = 0; t < taps_w; ++t)
        offsets[i * taps + s * taps_w + t] =
            i * window + (s * tap_step_h - up) * pitch + staged_column(t * tap_step_w - before, x_step_w, pitch);
  }
  for (int o = 0; o < outs; ++o) {
    const int channel = group * outs + o;
    for (int i = 0; i < ins; ++i)
      for (int s = 0; s < taps_h; ++s)
        for (int t = 0; t < taps_w; ++t)
          weights[i * taps + s * taps_w + t] =
              LOAD(w, group * group_stride + o * out_stride + i * in_stride + (first_h + s * kernel_step_h) * KW + first_w +
                          t * kernel_step_w);
    float start = 0;
#ifdef BIAS
    start = LOAD(bias, channel);
#endif
    const int plane = (n * groups * outs + channel) * YH * YW;
    for (int r = 0; r < height; r += ROWS)
      for (int j = 0; j < PW; j += VW) {
        VFLOAT sum[ROWS];
        const local float *point[ROWS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
          sum[q] = (VFLOAT)(start);
          point[q] = staged + min(r + q, height - 1) * x_step_h * pitch + j;
        }
        for (int k = 0; k < count; ++k) {
          const int offset = offsets[k];
          const VFLOAT weight = (VFLOAT)(weights[k]);
          #pragma unroll
          for (int q = 0; q < ROWS; ++q) sum[q] = fma(weight, *(const local any_vector *)(point[q] + offset), sum[q]);
        }
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
          const int at = plane + (y_top + (row0 + r + q) * y_step_h) * YW + y_left + j * y_step_w;
          float lanes[VW];
          *(any_vector *)lanes = sum[q];
          if (r + q >= height) {
            // A repeated row.
          } else if (y_step_w == 1) {
            if (j + VW <= PW)
              VSTORE(y, at, VEPILOGUE(sum[q], at, channel, 0));
            else
              for (int lane = 0; lane < PW - j; ++lane) STORE(y, at + lane, EPILOGUE(lanes[lane], at + lane, channel));
          } else {
            for (int lane = 0; lane < min(VW, PW - j); ++lane) STORE(y, at + lane * y_step_w, lanes[lane]);
          }
        }
      }
  }
}
