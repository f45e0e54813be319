// The gradient {channels, KH, KW} of the weight of a depthwise convolution of planes {H, W} to {OH, OW} with steps STEP, for CPUs. A
// work-item sums one channel over `images` images: part of y {parts, channels, KH, KW}. TAP_ROWS rows of taps have their sums in registers, with VECTORS
// vectors of the result's gradient, while each vector of the source is loaded once.
#include "conv2d_depthwise_cpu.clh"

#define DOWN ((OH + ROWS - 1) / ROWS)

// Lanes of outputs from `row` and vector `a` of a row on that no other vector has, and whose tap at a distance of `shift` columns and
// `below` rows sees the source.
static inline VINT counted(const int row, const int a, const int below, const int shift) {
  VINT result;
  #pragma unroll
  for (int l = 0; l < VW; ++l) {
#if ROWS > 1
    result[l] = l < ROWS * W && row + l / W < OH ? -1 : 0;
#else
    result[l] = COLUMN(a) + l < OW && COLUMN(a) + l >= a * VW ? -1 : 0;
#endif
  }
  return result & inside(row + below, COLUMN(a), shift);
}

static __attribute__((always_inline)) inline void sum_plane(IN(x), IN(g), const int plane, const bool is_staged,
                                                            const local float *restrict staged, const local float *restrict staged_g,
                                                            VFLOAT *total) {
  const int staged_first = plane * (H * W) - BEFORE;
  #pragma unroll
  for (int s0 = 0; s0 < KH; s0 += TAP_ROWS) {
    VFLOAT sum[TAP_ROWS * KW];
    #pragma unroll
    for (int k = 0; k < TAP_ROWS * KW; ++k) sum[k] = (VFLOAT)(0.0f);
#ifdef UNROLLED
    #pragma unroll
#else
    SELDOM
#endif
    for (int v0 = 0; v0 < DOWN; v0 += VECTORS)
      #pragma unroll
      for (int a = 0; a < ACROSS; ++a) {
        VFLOAT gradients[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          const int i = (v0 + v) * (ROWS * OW) + COLUMN(a);
          gradients[v] = (VFLOAT)(0.0f);
          if (v0 + v < DOWN) gradients[v] = is_staged ? *(const local any_vector *)(staged_g + i) : VLOAD(g, plane * (OH * OW) + i);
        }
        #pragma unroll
        for (int q = s0; q < (VECTORS - 1) * ROWS * STEP + min(s0 + TAP_ROWS, KH); ++q) {
          const int row = v0 * ROWS * STEP + q - TOP;
          if (row > -ROWS && row < H) {
            VFLOAT pixels[KW];
            load_taps(x_base, x_offset, is_staged, staged, staged_first, (plane * H + row) * W + COLUMN(a) * STEP - LEFT, pixels);
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
              const int s = q - v * ROWS * STEP;
              if (s >= s0 && s < min(s0 + TAP_ROWS, KH) && v0 + v < DOWN)
                #pragma unroll
                for (int t = 0; t < KW; ++t) {
                  const int k = (s - s0) * KW + t;
                  sum[k] = select(sum[k], fma(gradients[v], pixels[t], sum[k]), counted((v0 + v) * ROWS, a, s - TOP, t - LEFT));
                }
            }
          }
        }
      }
    #pragma unroll
    for (int k = 0; k < (min(s0 + TAP_ROWS, KH) - s0) * KW; ++k) total[s0 * KW + k] += sum[k];
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_weights_cpu(
    IN(x), IN(g), OUT(y), const int N, const int channels, const int images, local float *restrict staged,
    local float *restrict staged_g) {
  const int channel = (int)get_global_id(0), part = (int)get_global_id(1), planes = N * channels;
  const int n0 = part * images, n1 = n0 + min(images, N - n0);
  VFLOAT total[KH * KW];
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) total[k] = (VFLOAT)(0.0f);
  const int inner0 = (BEFORE + H * W - 1) / (H * W);
  const int inner1 = planes - max((BEHIND + H * W - 1) / (H * W), (VW + OH * OW - 1) / (OH * OW));
  for (int n = n0; n < n1; ++n) {
    const int plane = n * channels + channel;
    if (plane >= inner0 && plane < inner1) sum_plane(x_base, x_offset, g_base, g_offset, plane, false, staged, staged_g, total);
  }
  // In a loop of their own, as compilers would make one of both ways.
  SELDOM for (int n = n0; n < n1; ++n) {
    const int plane = n * channels + channel, first = plane * (H * W);
    if (plane < inner0 || plane >= inner1) {
      stage(x_base, x_offset, first - BEFORE, first + H * W + BEHIND, planes * (H * W), staged);
      SELDOM for (int i = 0; i < OH * OW; ++i) staged_g[i] = LOAD(g, plane * (OH * OW) + i);
      sum_plane(x_base, x_offset, g_base, g_offset, plane, true, staged, staged_g, total);
    }
  }
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) STORE(y, (part * channels + channel) * (KH * KW) + k, clnet_lanes_sum(total[k]));
}
