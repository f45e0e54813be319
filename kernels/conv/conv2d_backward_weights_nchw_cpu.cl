// The gradient of a depthwise convolution's weight for CPUs: a work-item sums one group over `images` images, TAPS taps at a
// time. Its sums are one part of y {parts, o, kh, kw}.
#include "item.clh"
#include "conv2d_nchw_cpu.clh"

#define TAPS 4

#define PARAMETERS                                                                                                  \
  IN(x), IN(g), OUT(y), INT(N), INT(images), INT(groups), INT(OG), INT(H), INT(W), INT(KH), INT(KW), INT(OH),       \
  INT(OW), INT(SH), INT(SW), INT(PT), INT(PL), INT(DH), INT(DW), INT(RB), INT(rows), INT(columns), INT(pitch),      \
  LOCAL(float, staged), LOCAL(float, staged_g), LOCAL(int, offsets), LOCAL(float, sums)
WORK_ITEM void conv2d_backward_weights_nchw_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int group = id0, part = id1;
  const int n0 = part * images, n1 = BLOCK_END(n0, images, N);
  const int taps = KH * KW, padded_taps = (taps + TAPS - 1) / TAPS * TAPS, g_pitch = (OW + VW - 1) / VW * VW;
  const VINT rest = clnet_lanes() < OW % VW;
  for (int k = 0; k < padded_taps; ++k) {
    const int tap = min(k, taps - 1);
    offsets[k] = tap / KW * DH * pitch + staged_column(tap % KW * DW, SW, pitch);
  }
  clear(sums, OG * padded_taps * VW);
  clear(staged_g, RB * g_pitch);
  for (int row0 = 0; row0 < OH; row0 += RB) {
    const int height = min(RB, OH - row0);
    clear(staged, rows * pitch + VW);
    for (int n = n0; n < n1; ++n) {
      stage_plane(x_base, x_offset, (n * groups + group) * H * W, H, W, row0 * SH - PT, -PL, staged, rows, columns, SW, pitch);
      for (int o = 0; o < OG; ++o) {
        const int source = ((n * groups + group) * OG + o) * OH * OW + row0 * OW;
        for (int r = 0; r < height; ++r) {
          int j = 0;
          for (; j + VW <= OW; j += VW) *(local any_vector *)(staged_g + r * g_pitch + j) = VLOAD(g, source + r * OW + j);
          for (; j < OW; ++j) staged_g[r * g_pitch + j] = LOAD(g, source + r * OW + j);
        }
        for (int k = 0; k < padded_taps; k += TAPS) {
          local any_vector *restrict tap_sums = (local any_vector *)(sums + (o * padded_taps + k) * VW);
          VFLOAT sum[TAPS];
          const local float *point[TAPS];
          #pragma unroll
          for (int t = 0; t < TAPS; ++t) {
            sum[t] = (VFLOAT)(0.0f);
            point[t] = staged + offsets[k + t];
          }
          for (int r = 0; r < height; ++r) {
            const local float *gradients = staged_g + r * g_pitch;
            int j = 0, at = r * SH * pitch;
            for (; j + VW <= OW; j += VW, at += VW) {
              const VFLOAT gradient = *(const local any_vector *)(gradients + j);
              #pragma unroll
              for (int t = 0; t < TAPS; ++t) sum[t] = fma(gradient, *(const local any_vector *)(point[t] + at), sum[t]);
            }
            if (j == OW) continue;
            // Beyond the row the gradient is zero, and so must be pixels, as 0 times infinity is NaN.
            const VFLOAT gradient = *(const local any_vector *)(gradients + j);
            #pragma unroll
            for (int t = 0; t < TAPS; ++t)
              sum[t] = fma(gradient, VAS_FLOAT(VAS_INT(*(const local any_vector *)(point[t] + at)) & rest), sum[t]);
          }
          #pragma unroll
          for (int t = 0; t < TAPS; ++t) tap_sums[t] += sum[t];
        }
      }
    }
  }
  for (int o = 0; o < OG; ++o)
    for (int k = 0; k < taps; ++k)
      STORE(y, ((part * groups + group) * OG + o) * taps + k,
            clnet_lanes_sum(*(const local any_vector *)(sums + (o * padded_taps + k) * VW)));
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_nchw_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_nchw_cpu_item(IDS, PARAMETERS);
}
