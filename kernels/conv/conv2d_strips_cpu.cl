// Three convolutions in one pass, for inference on CPUs: one from x to `channels` channels, depthwise {KH, KW} with steps STEP over
// these, 1x1 to y. The first one is 1x1 and reads x where it lies, or it has TAPS_H x TAPS_W taps and steps FIRST_STEP and reads a
// staged window. A work-item makes a strip of RB rows of an image. What the first one makes of LANES1 channels, with channels side by
// side and zeros around the image, stays in the first caches until the second has made its strip of them, and what that makes of all
// channels in the second ones until the third is done. Weights are packed by conv2d_pack_cpu: {panel, input, lane}, and {vector, tap,
// lane}.
//
// The first groups are empty: PoCL's first thread takes one and its share of all of them at once, which would be both of two.
#include "item.clh"
#include "conv2d_inner_epilogues.clh"
#include "conv2d_stage_cpu.clh"
#include "conv2d_store_cpu.clh"

#define LANES1 (VW * VECTORS1)

// Biases of the first and of the second one among parameters and arguments, where there are any.
#ifdef BIAS1
#define BIAS1_PARAMETER IN(bias1),
#define BIAS1_ARGUMENT bias1_base, bias1_offset,
#else
#define BIAS1_PARAMETER
#define BIAS1_ARGUMENT
#endif
#ifdef BIAS2
#define BIAS2_PARAMETER IN(bias2),
#define BIAS2_ARGUMENT bias2_base, bias2_offset,
#else
#define BIAS2_PARAMETER
#define BIAS2_ARGUMENT
#endif

// Sums of a tile that begin with the bias, if there is one.
static inline void begin_sums(VFLOAT sum[TILE1][VECTORS1], BIAS1_PARAMETER const int channel) {
  #pragma unroll
  for (int v = 0; v < VECTORS1; ++v) {
    VFLOAT start = (VFLOAT)(0.0f);
#ifdef BIAS1
    start = VLOAD(bias1, channel + v * VW);
#endif
    #pragma unroll
    for (int i = 0; i < TILE1; ++i) sum[i][v] = start;
  }
}

// sum[i] += pixel[i * step] * weights, for one input and tap.
#define ADD_PRODUCTS(sum, pixel, step, weights)                                                               \
  {                                                                                                           \
    VFLOAT right_[VECTORS1];                                                                                  \
    _Pragma("unroll") for (int v_ = 0; v_ < VECTORS1; ++v_) right_[v_] = ((const global any_vector *)weights)[v_]; \
    _Pragma("unroll") for (int i_ = 0; i_ < TILE1; ++i_) {                                                    \
      const VFLOAT left_ = (VFLOAT)(pixel[i_ * (step)]);                                                      \
      _Pragma("unroll") for (int v_ = 0; v_ < VECTORS1; ++v_) sum[i_][v_] = fma(left_, right_[v_], sum[i_][v_]); \
    }                                                                                                         \
  }

#ifdef TAPS_H

// The first one, of `rows` rows of W from windows of x, `columns` wide and for each input `size` floats, that begin at `seen`. With
// less than a tile left of a row, some are made twice.
static inline void expand(const local float *restrict seen, const int columns, const int size, const int ins,
                          const global float *restrict panel,
                          BIAS1_PARAMETER
                          const int rows, const int W, const int pitch, const int part, local float *restrict expanded,
                          const int channel INNER1_PARAMETERS) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < W; column += TILE1) {
      const int at = min(column, W - TILE1);
      VFLOAT sum[TILE1][VECTORS1];
      begin_sums(sum, BIAS1_ARGUMENT channel);
      const global float *restrict weights = panel;
      for (int s = 0; s < TAPS_H; ++s)
        for (int t = 0; t < TAPS_W; ++t) {
          const local float *restrict pixel = seen + (row * FIRST_STEP + s) * columns + at * FIRST_STEP + t;
          for (int k = 0; k < ins; ++k, pixel += size, weights += LANES1) ADD_PRODUCTS(sum, pixel, FIRST_STEP, weights)
        }
      local float *restrict target = expanded + (row * pitch + at) * VW;
      #pragma unroll
      for (int i = 0; i < TILE1; ++i)
        #pragma unroll
        for (int v = 0; v < VECTORS1; ++v)
          *(local any_vector *)(target + i * VW + v * part) = INNER1(sum[i][v], channel + v * VW);
    }
}

#else

// The first one, of `total` pixels from element `source` of x on, whose planes have `pixels`, to `expanded`, where rows are
// `pitch` vectors long and vectors of channels `part` floats apart. With less than a tile left, some are made twice.
static inline void expand(IN(x), const int source, const int pixels, const int ins, const global float *restrict panel,
                          BIAS1_PARAMETER
                          const int total, const int W, const int pitch, const int part, local float *restrict expanded,
                          const int channel INNER1_PARAMETERS) {
  for (int p = 0; p < total; p += TILE1) {
    const int at = min(p, total - TILE1);
    VFLOAT sum[TILE1][VECTORS1];
    begin_sums(sum, BIAS1_ARGUMENT channel);
    const global float *restrict pixel = PTR(x) + source + at;
    const global float *restrict weights = panel;
    for (int k = 0; k < ins; ++k, pixel += pixels, weights += LANES1) ADD_PRODUCTS(sum, pixel, 1, weights)
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

#endif

// The second one, of a vector of channels: `rows` rows of OW.
static inline void filter(const local float *restrict expanded, const global float *restrict taps,
                          BIAS2_PARAMETER
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

// FIRST_SOURCE and FIRST_COUNT: arguments of expand(). Launch batches read this text as it is, so no branch of a condition may open a
// bracket that it does not close.
#ifdef TAPS_H
#define SEEN_PARAMETERS INT(seen_h), INT(seen_w), INT(seen_top), INT(seen_left), INT(seen_rows), INT(seen_columns), INT(seen_size), LOCAL(float, seen)
#define FIRST_SOURCE seen, seen_columns, seen_size, ins, PTR(w1) + panel * (TAPS_H * TAPS_W) * ins * LANES1
#define FIRST_COUNT last - first
#else
#define SEEN_PARAMETERS INT(pixels_in)
#define FIRST_SOURCE \
  x_base, x_offset, n * ins * pixels_in + (source + first) * W, pixels_in, ins, PTR(w1) + panel * ins * LANES1
#define FIRST_COUNT (last - first) * W
#endif

#define PARAMETERS                                                                                                  \
  IN(x), IN(w1), BIAS1_PARAMETER IN(w2), BIAS2_PARAMETER IN(w3), BIAS_PARAMETER OUT(y), INT(ins), INT(H),           \
  INT(W), INT(channels), INT(OH), INT(OW), INT(outs), INT(top), INT(left), INT(RB), INT(pitch), INT(block),         \
  LOCAL(float, expanded), LOCAL(float, made), LOCAL(float, sums), SEEN_PARAMETERS INNER1_PARAMETERS                 \
  INNER2_PARAMETERS EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_strips_cpu_item(ID_PARAMETERS, PARAMETERS) {
  if (id2 == 0) return;
  const int n = id1, row0 = id0 * RB, rows = min(RB, OH - row0), pixels = rows * OW;
  // The window that these rows see, and those of its rows that lie in the image.
  const int source = row0 * STEP - top, part = ((RB - 1) * STEP + KH) * pitch * VW;
  const int first = max(0, -source), last = min((rows - 1) * STEP + KH, H - source);
  clear(expanded, VECTORS1 * part);
#ifdef TAPS_H
  clear(seen, ins * seen_size);
  stage(x_base, x_offset, n * ins * seen_h * seen_w, ins, seen_h, seen_w, (source + first) * FIRST_STEP - seen_top, -seen_left,
        seen, seen_rows, seen_columns, seen_size);
#endif
  for (int panel = 0; panel < channels / LANES1; ++panel) {
    expand(FIRST_SOURCE,
           BIAS1_ARGUMENT FIRST_COUNT,
           W, pitch, part, expanded + (first * pitch + left) * VW, panel * LANES1 INNER1_ARGUMENTS);
    for (int v = 0; v < VECTORS1; ++v) {
      const int vector = panel * VECTORS1 + v;
      filter(expanded + v * part, PTR(w2) + vector * (KH * KW * VW),
             BIAS2_ARGUMENT rows, OW, pitch, made + vector * pixels * VW, vector * VW INNER2_ARGUMENTS);
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

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_strips_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_strips_cpu_item(IDS, PARAMETERS);
}
