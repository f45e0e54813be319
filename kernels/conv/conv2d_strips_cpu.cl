// Three convolutions in one pass, for inference on CPUs: 1x1 from x to `channels` channels, depthwise {KH, KW} with steps STEP over these, 1x1 to
// y. A work-item makes a strip of RB rows of an image. What the first one makes of LANES1 channels, with channels side by side and zeros around
// the image, stays in the first caches until the second has made its strip of them, and what that makes of all channels in the second
// ones until the third is done. Weights are packed by conv2d_cpu_pack: {panel, input, lane}, and {vector, tap, lane}.
//
// The first groups are empty: PoCL's first thread takes one and its share of all of them at once, which would be both of two.
#include "conv2d_inner_epilogues.clh"
#include "conv2d_store_cpu.clh"

#define LANES1 (VW * VECTORS1)

// The first one, of `total` pixels from element `source` of x on, whose planes have `pixels`, to `expanded`, where rows are
// `pitch` vectors long and vectors of channels `part` floats apart. With less than a tile left, some are made twice.
static inline void expand(IN(x), const int source, const int pixels, const int ins, const global float *restrict panel,
#ifdef BIAS1
                          IN(bias1),
#endif
                          const int total, const int W, const int pitch, const int part, local float *restrict expanded,
                          const int channel INNER1_PARAMETERS) {
  for (int p = 0; p < total; p += TILE1) {
    const int at = min(p, total - TILE1);
    VFLOAT sum[TILE1][VECTORS1];
    #pragma unroll
    for (int v = 0; v < VECTORS1; ++v) {
      VFLOAT start = (VFLOAT)(0.0f);
#ifdef BIAS1
      start = VLOAD(bias1, channel + v * VW);
#endif
      #pragma unroll
      for (int i = 0; i < TILE1; ++i) sum[i][v] = start;
    }
    const global float *restrict pixel = PTR(x) + source + at;
    const global float *restrict weights = panel;
    for (int k = 0; k < ins; ++k, pixel += pixels, weights += LANES1) {
      VFLOAT right[VECTORS1];
      #pragma unroll
      for (int v = 0; v < VECTORS1; ++v) right[v] = ((const global any_vector *)weights)[v];
      #pragma unroll
      for (int i = 0; i < TILE1; ++i) {
        const VFLOAT left = (VFLOAT)(pixel[i]);
        #pragma unroll
        for (int v = 0; v < VECTORS1; ++v) sum[i][v] = fma(left, right[v], sum[i][v]);
      }
    }
    const int row = at / W;
    int column = at - row * W;
    local float *restrict target = expanded + (row * pitch + column) * VW;
    #pragma unroll
    for (int i = 0; i < TILE1; ++i) {
      #pragma unroll
      for (int v = 0; v < VECTORS1; ++v)
        *(local any_vector *)(target + v * part) = INNER1(sum[i][v], channel + v * VW);
      target += VW;
      if (++column == W) {
        column = 0;
        target += (pitch - W) * VW;
      }
    }
  }
}

// The second one, of a vector of channels: `rows` rows of OW.
static inline void filter(const local float *restrict expanded, const global float *restrict taps,
#ifdef BIAS2
                          IN(bias2),
#endif
                          const int rows, const int OW, const int pitch, local float *restrict made,
                          const int channel INNER2_PARAMETERS) {
  VFLOAT weights[KH * KW], start = (VFLOAT)(0.0f);
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) weights[k] = ((const global any_vector *)taps)[k];
#ifdef BIAS2
  start = VLOAD(bias2, channel);
#endif
  for (int r = 0; r < rows; ++r)
    for (int column = 0; column < OW; column += TILE2) {
      const int j = min(column, OW - TILE2);
      VFLOAT sum[TILE2];
      #pragma unroll
      for (int i = 0; i < TILE2; ++i) sum[i] = start;
      #pragma unroll
      for (int s = 0; s < KH; ++s) {
        const local any_vector *restrict from = (const local any_vector *)(expanded + ((r * STEP + s) * pitch + j * STEP) * VW);
        #pragma unroll
        for (int c = 0; c < (TILE2 - 1) * STEP + KW; ++c) {
          const VFLOAT value = from[c];
          #pragma unroll
          for (int i = 0; i < TILE2; ++i)
            if (c >= i * STEP && c < i * STEP + KW) sum[i] = fma(value, weights[s * KW + c - i * STEP], sum[i]);
        }
      }
      #pragma unroll
      for (int i = 0; i < TILE2; ++i) ((local any_vector *)made)[r * OW + j + i] = INNER2(sum[i], channel);
    }
}

// The third one's sums of a panel, of `total` pixels. The vectors of channels that it reads are `part` floats apart.
static inline void project(const local float *restrict made, const int part, const int channels,
                           const global float *restrict panel, const int total, local float *restrict sums) {
  for (int p = 0; p < total; p += TILE) {
    const int at = min(p, total - TILE);
    const global float *restrict weights = panel;
    local float *restrict tile_sums = sums + at * LANES;
    // Sums of a block of channels, and of the blocks before it.
    VFLOAT sum[TILE][VECTORS], before[TILE][VECTORS];
    for (int block = 0; block < channels; block += CLNET_BLOCK) {
      #pragma unroll
      for (int i = 0; i < TILE; ++i)
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          if (block > 0) before[i][v] = block > CLNET_BLOCK ? before[i][v] + sum[i][v] : sum[i][v];
          sum[i][v] = (VFLOAT)(0.0f);
        }
      const int end = BLOCK_END(block, CLNET_BLOCK, channels);
      for (int k = block; k < end; k += VW) {
        const local float *restrict pixel = made + k / VW * part + at * VW;
        for (int lane = 0; lane < VW; ++lane, weights += LANES) {
          VFLOAT right[VECTORS];
          #pragma unroll
          for (int v = 0; v < VECTORS; ++v) right[v] = ((const global any_vector *)weights)[v];
          #pragma unroll
          for (int i = 0; i < TILE; ++i) {
            const VFLOAT left = (VFLOAT)(pixel[i * VW + lane]);
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(left, right[v], sum[i][v]);
          }
        }
      }
    }
    if (channels > CLNET_BLOCK) {
      #pragma unroll
      for (int i = 0; i < TILE; ++i)
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] += before[i][v];
    }
    STORE_SUMS(tile_sums, sum)
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_strips_cpu(
    IN(x), IN(w1),
#ifdef BIAS1
    IN(bias1),
#endif
    IN(w2),
#ifdef BIAS2
    IN(bias2),
#endif
    IN(w3),
#ifdef BIAS
    IN(bias),
#endif
    OUT(y), const int ins, const int H, const int W, const int channels, const int OH, const int OW, const int outs, const int top,
    const int left, const int RB, const int pitch, const int block, local float *restrict expanded, local float *restrict made,
    local float *restrict sums INNER1_PARAMETERS INNER2_PARAMETERS EPILOGUE_PARAMETERS) {
  if (get_global_id(2) == 0) return;
  const int n = (int)get_global_id(1), row0 = (int)get_global_id(0) * RB, rows = min(RB, OH - row0), pixels = rows * OW;
  // The window that these rows see, and those of its rows that lie in the image.
  const int source = row0 * STEP - top, part = ((RB - 1) * STEP + KH) * pitch * VW;
  const int first = max(0, -source), last = min((rows - 1) * STEP + KH, H - source);
  clear(expanded, VECTORS1 * part);
  for (int panel = 0; panel < channels / LANES1; ++panel) {
    expand(x_base, x_offset, n * ins * H * W + (source + first) * W, H * W, ins, PTR(w1) + panel * ins * LANES1,
#ifdef BIAS1
           bias1_base, bias1_offset,
#endif
           (last - first) * W, W, pitch, part, expanded + (first * pitch + left) * VW, panel * LANES1 INNER1_ARGUMENTS);
    for (int v = 0; v < VECTORS1; ++v) {
      const int vector = panel * VECTORS1 + v;
      filter(expanded + v * part, PTR(w2) + vector * (KH * KW * VW),
#ifdef BIAS2
             bias2_base, bias2_offset,
#endif
             rows, OW, pitch, made + vector * pixels * VW, vector * VW INNER2_ARGUMENTS);
    }
  }
  for (int panel = 0; panel * LANES < outs; ++panel)
    for (int at = 0; at < pixels; at += block) {
      const int total = min(block, pixels - at);
      project(made + at * VW, pixels * VW, channels, PTR(w3) + panel * channels * LANES, total, sums);
      for (int v = 0; v < VECTORS; ++v) {
        const int o = panel * LANES + v * VW, lanes = min(VW, outs - o);
        LOAD_START(start, o, lanes)
        store_planes(y_base, y_offset, sums + v * VW, LANES, total, lanes, ((n * outs + o) * OH + row0) * OW + at, OH * OW, o,
                     start EPILOGUE_ARGUMENTS);
      }
    }
}
