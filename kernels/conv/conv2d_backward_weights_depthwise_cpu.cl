// The gradient {channels, KH, KW} of the weight of a depthwise convolution of planes {H, W} to {OH, OW} with steps STEP, for CPUs. A
// work-item sums one channel over `images` images: part of y {parts, channels, KH, KW}. TAP_ROWS rows of taps have their sums in registers, with VECTORS
// vectors of the result's gradient, while each vector of the source is loaded once.
#include "item.clh"
#include "conv2d_depthwise_cpu.clh"

#define DOWN ((OH + ROWS - 1) / ROWS)

// Lanes of outputs from `row` and vector `a` of a row on that no other vector has, and whose tap at a distance of `shift` columns and
// `below` rows sees the source.
static inline VINT counted(const int row, const int a, const int below, const int shift) {
#if ROWS > 1
  return (clnet_lanes() < ROWS * W) & (row + clnet_lanes() / W < OH) & inside(row + below, 0, shift);
#else
  const VINT o = COLUMN(a) + clnet_lanes();
  return (o < OW) & (o >= a * VW) & inside(row + below, COLUMN(a), shift);
#endif
}

#define PARAMETERS                                                                                                  \
  IN(x), IN(g), OUT(y), INT(N), INT(channels), INT(images)
WORK_ITEM void conv2d_backward_weights_depthwise_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int channel = id0, part = id1, planes = N * channels;
  const int n0 = part * images, n1 = n0 + min(images, N - n0);
  VFLOAT total[KH * KW];
  float rest[KH * KW];
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) total[k] = (VFLOAT)(0.0f);
  SELDOM for (int k = 0; k < KH * KW; ++k) rest[k] = 0;
  for (int n = n0; n < n1; ++n) {
    const int plane = n * channels + channel, source = plane * (H * W), gradient = plane * (OH * OW);
    const int before = source - BEFORE, behind = planes * (H * W) - (source + H * W + BEHIND);
    if (before < 0 || behind < 0 || planes * (OH * OW) - gradient < OH * OW + VW) {
      SELDOM for (int i = 0; i < OH * OW; ++i)
        SELDOM for (int k = 0; k < KH * KW; ++k) {
          const int row = i / OW * STEP + k / KW - TOP, column = i % OW * STEP + k % KW - LEFT;
          if (row >= 0 && row < H && column >= 0 && column < W)
            rest[k] = fma(LOAD(g, gradient + i), LOAD(x, source + row * W + column), rest[k]);
        }
      continue;
    }
    #pragma unroll
    for (int s0 = 0; s0 < KH; s0 += TAP_ROWS) {
      VFLOAT sum[TAP_ROWS * KW];
      #pragma unroll
      for (int k = 0; k < TAP_ROWS * KW; ++k) sum[k] = (VFLOAT)(0.0f);
      PLANE_LOOP for (int v0 = 0; v0 < DOWN; v0 += VECTORS)
        _Pragma("unroll") for (int kind = 0; kind < KINDS; ++kind) PLANE_LOOP for (int a = KIND_BEGIN(kind); a < KIND_END(kind); ++a) {
          const int column = KIND_COLUMN(kind, a);
          VFLOAT gradients[VECTORS];
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) {
            gradients[v] = (VFLOAT)(0.0f);
            if (v0 + v < DOWN) gradients[v] = VLOAD(g, gradient + (v0 + v) * (ROWS * OW) + column);
          }
          #pragma unroll
          for (int q = s0; q < (VECTORS - 1) * ROWS * STEP + min(s0 + TAP_ROWS, KH); ++q) {
            const int row = v0 * ROWS * STEP + q - TOP;
            if (row > -ROWS && row < H) {
              VFLOAT pixels[KW];
              load_taps(x_base, x_offset, source + row * W + column * STEP - LEFT, pixels);
              #pragma unroll
              for (int v = 0; v < VECTORS; ++v) {
                const int s = q - v * ROWS * STEP;
                if (s >= s0 && s < min(s0 + TAP_ROWS, KH) && v0 + v < DOWN)
                  #pragma unroll
                  for (int t = 0; t < KW; ++t) {
                    const int k = (s - s0) * KW + t;
                    const VFLOAT with = fma(gradients[v], pixels[t], sum[k]);
                    sum[k] = SEES_INSIDE(kind) ? with : select(sum[k], with, counted((v0 + v) * ROWS, a, s - TOP, t - LEFT));
                  }
              }
            }
          }
        }
      #pragma unroll
      for (int k = 0; k < (min(s0 + TAP_ROWS, KH) - s0) * KW; ++k) total[s0 * KW + k] += sum[k];
    }
  }
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) STORE(y, (part * channels + channel) * (KH * KW) + k, clnet_lanes_sum(total[k]) + rest[k]);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_depthwise_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_depthwise_cpu_item(IDS, PARAMETERS);
}
