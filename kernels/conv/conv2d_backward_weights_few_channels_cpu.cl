// The gradient of the weight of a convolution of few input channels for CPUs: vectors hold pixels of a row, so that the output's gradient is read
// where it lies. A work-item sums OB filters of a group over `images` images: it stages a strip of RB rows' windows of the CG source planes, and sums
// OUTS filters by TAPS weights of each in registers. Its sums are one part of y {parts, o, c, kh, kw}. Rows have VW pixels or more.
#include "item.clh"
#include "conv2d_nchw_cpu.clh"

// OUTS vectors of the output's gradient times TAPS vectors of pixels, `column` pixels into row r. `part` is done to both, as 0 times infinity is NaN.
#define STEP(column, part)                                                                                \
  {                                                                                                       \
    VFLOAT gradient_[OUTS];                                                                               \
    _Pragma("unroll") for (int o_ = 0; o_ < OUTS; ++o_) gradient_[o_] = part(VLOAD(g, filter[o_] + r * OW + (column))); \
    _Pragma("unroll") for (int t_ = 0; t_ < TAPS; ++t_) {                                                 \
      const VFLOAT pixels_ = part(*(const local any_vector *)(point[t_] + r * SH * pitch + (column)));    \
      _Pragma("unroll") for (int o_ = 0; o_ < OUTS; ++o_) sum[t_][o_] = fma(gradient_[o_], pixels_, sum[t_][o_]); \
    }                                                                                                     \
  }
#define ALL(vector) vector
#define REST(vector) VAS_FLOAT(VAS_INT(vector) & rest)

#define PARAMETERS                                                                                                  \
  IN(x), IN(g), OUT(y), INT(N), INT(images), INT(groups), INT(CG), INT(OG), INT(OB), INT(H), INT(W), INT(KH),       \
  INT(KW), INT(OH), INT(OW), INT(SH), INT(SW), INT(PT), INT(PL), INT(DH), INT(DW), INT(RB), INT(rows),              \
  INT(columns), INT(pitch), LOCAL(float, staged), LOCAL(int, offsets), LOCAL(float, sums)
WORK_ITEM void conv2d_backward_weights_few_channels_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int group = id0, part = id1, first = id2 * OB, last = min(OG, first + OB);
  const int n0 = part * images, n1 = BLOCK_END(n0, images, N);
  const int window = rows * pitch, weights = CG * KH * KW, blocks = (weights + TAPS - 1) / TAPS;
  const int whole = OW / VW * VW;
  // The last vector of a row ends with the row; lanes that the one before has are zeros.
  const VINT rest = clnet_lanes() >= VW - OW % VW;

  SELDOM for (int k = 0; k < blocks * TAPS; ++k) {
    // Past the last weight, tiles repeat it.
    const int weight = min(k, weights - 1), tap = REMAINDER(weight, KH * KW);
    offsets[k] = weight / (KH * KW) * window + tap / KW * DH * pitch + staged_column(REMAINDER(tap, KW) * DW, SW, pitch);
  }
  clear(sums, (OB + OUTS - 1) / OUTS * blocks * (OUTS * TAPS * VW));
  for (int row0 = 0; row0 < OH; row0 += RB) {
    const int height = min(RB, OH - row0);
    clear(staged, CG * window + VW);
    for (int n = n0; n < n1; ++n) {
      for (int c = 0; c < CG; ++c)
        stage_plane(x_base, x_offset, ((n * groups + group) * CG + c) * H * W, H, W, row0 * SH - PT, -PL, staged + c * window, rows, columns, SW, pitch);
      local float *restrict tile_sums = sums;
      for (int o0 = first; o0 < last; o0 += OUTS) {
        int filter[OUTS];
        #pragma unroll
        for (int o = 0; o < OUTS; ++o) filter[o] = (((n * groups + group) * OG + min(o0 + o, last - 1)) * OH + row0) * OW;
        for (int k = 0; k < blocks * TAPS; k += TAPS, tile_sums += OUTS * TAPS * VW) {
          VFLOAT sum[TAPS][OUTS];
          const local float *point[TAPS];
          #pragma unroll
          for (int t = 0; t < TAPS; ++t) {
            point[t] = staged + offsets[k + t];
            #pragma unroll
            for (int o = 0; o < OUTS; ++o) sum[t][o] = (VFLOAT)(0.0f);
          }
          // Meanwhile the gradient of the next filters is fetched, one of them with each block of weights.
          const int next = filter[0] + min(OUTS + min(k / TAPS, OUTS - 1), last - 1 - o0) * OH * OW;
          for (int r = 0; r < height; ++r) {
            for (int j = 0; j < whole; j += VW) {
              FETCH_AHEAD(g, next + r * OW + j);
              STEP(j, ALL)
            }
            if (whole < OW) STEP(OW - VW, REST)
          }
          #pragma unroll
          for (int t = 0; t < TAPS; ++t)
            #pragma unroll
            for (int o = 0; o < OUTS; ++o) *(local any_vector *)(tile_sums + (o * TAPS + t) * VW) += sum[t][o];
        }
      }
    }
  }
  for (int o = first; o < last; ++o)
    for (int k = 0; k < weights; ++k) {
      const int tile = (o - first) / OUTS * blocks + k / TAPS, at = (o - first) % OUTS * TAPS + k % TAPS;
      STORE(y, ((part * groups + group) * OG + o) * weights + k,
            clnet_lanes_sum(*(const local any_vector *)(sums + (tile * (OUTS * TAPS) + at) * VW)));
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_few_channels_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_few_channels_cpu_item(IDS, PARAMETERS);
}
