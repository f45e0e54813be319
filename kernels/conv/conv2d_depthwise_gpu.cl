// Depthwise convolution and its gradients on GPUs: each group has one input channel, and OG output channels. There is next to nothing
// to compute, so that all is about what is read: an item has ROWS rows of one column, neighbours have neighbouring columns, and each
// row that the item's results see is loaded once for all of them, together with the neighbours' in whole lines. Taps are in registers.
// Defined are OG, KH, KW, SH, SW, DH, DW, ROWS, ROW_STEP (between the rows that are seen) and one of
//   FORWARD   y {n, c, OG} from x {n, c} and w {c, OG}
//   DATA      y, the gradient of x {n, c}, from x, the gradient of y {n, c, OG}, and w
//   WEIGHTS   the gradient of w from x and g, that of y: a group of ITEMS for each output channel and part of the images' rows
// LOOPED: there is no room for the taps; FORWARD and DATA read them one by one, for one row.
#include "conv2d_slices.clh"
#include "epilogue.clh"

#define TAPS (KH * KW)

// Row r that is seen and row i of those that see it, counted as below, meet at tap DISTANCE / DH, if that is one.
#ifdef DATA
#define FIRST_ROW (-((KH - 1) * DH / SH))
#define LAST_ROW ((ROWS - 1) / SH)
#define DISTANCE(i, r) ((i) - (r) * SH)
#else
#define FIRST_ROW 0
#define LAST_ROW ((ROWS - 1) * SH + (KH - 1) * DH)
#define DISTANCE(i, r) ((r) - (i) * SH)
#endif
#define MEET(i, r) (DISTANCE(i, r) >= 0 && DISTANCE(i, r) % DH == 0 && DISTANCE(i, r) / DH < KH)

// Where a pixel sees a tap along one axis, which may be outside of the image.
static inline int clnet_seen(const int at, const int tap, const int stride, const int padding, const int dilation) {
#ifdef DATA
  const int far = at + padding - tap * dilation;
  return far < 0 || far % stride != 0 ? -1 : far / stride;
#else
  return at * stride - padding + tap * dilation;
#endif
}

#ifdef WEIGHTS
// A part has `length` columns of the `total` of all images.
kernel void conv2d_depthwise_gpu(IN(x), IN(g), OUT(w), const int O, const int H, const int W, const int OH, const int OW,
                                 const int PT, const int PL, const int strips, const int total, const int length) {
  local float scratch[TAPS * ITEMS];
  const int item = (int)get_local_id(0), o = (int)get_group_id(0), part = (int)get_global_id(1);
  const int begin = part * length, end = BLOCK_END(begin, length, total);
  float sum[TAPS];
  #pragma unroll
  for (int tap = 0; tap < TAPS; ++tap) sum[tap] = 0.0f;
  for (int at = begin + item; at < end; at += ITEMS) {
    const int column = REMAINDER(at, OW), row0 = REMAINDER(at / OW, strips) * ROWS, image = at / OW / strips;
    const int plane = image * O + o, seen = plane / OG * H, seeing = (plane * OH + row0) * OW + column;
    float gradient[ROWS];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) gradient[i] = row0 + i < OH ? LOAD(g, seeing + i * OW) : 0.0f;
    #pragma unroll
    for (int r = FIRST_ROW; r <= LAST_ROW; r += ROW_STEP) {
      const int row = row0 * SH - PT + r;
      #pragma unroll
      for (int kw = 0; kw < KW; ++kw) {
        const int to = clnet_seen(column, kw, SW, PL, DW);
        const float value = (uint)row < (uint)H && (uint)to < (uint)W ? LOAD(x, (seen + row) * W + to) : 0.0f;
        #pragma unroll
        for (int i = 0; i < ROWS; ++i)
          // Zero times what no output sees may be NaN.
          if (MEET(i, r) && row0 + i < OH) sum[DISTANCE(i, r) / DH * KW + kw] += gradient[i] * value;
      }
    }
  }
  #pragma unroll
  for (int tap = 0; tap < TAPS; ++tap) scratch[tap * ITEMS + item] = sum[tap];
  for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int tap = 0; item < half_ && tap < TAPS; ++tap) scratch[tap * ITEMS + item] += scratch[tap * ITEMS + item + half_];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int tap = item; tap < TAPS; tap += ITEMS) STORE(w, (part * O + o) * TAPS + tap, scratch[tap * ITEMS]);
}

#else
// {H, W} of what is seen, {TH, TW} of the result, in `strips` of ROWS rows, of which the first begins `early` above the image: DATA
// wants to know which taps its rows see.
kernel void conv2d_depthwise_gpu(IN(x), IN(w),
#ifdef BIAS
                                 IN(bias),
#endif
                                 OUT(y), const int total, const int channels, const int H, const int W, const int TH,
                                 const int TW, const int PT, const int PL, const int strips, const int early
                                 SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int at = (int)get_global_id(0);
  if (at >= total) return;
  const int column = REMAINDER(at, TW), row0 = REMAINDER(at / TW, strips) * ROWS - early, plane = at / TW / strips;
  const int channel = REMAINDER(plane, channels);
  float sum[ROWS];
  #pragma unroll
  for (int i = 0; i < ROWS; ++i) sum[i] = 0.0f;
#ifdef DATA
  for (int out = 0; out < OG; ++out) {
    const int seen = (plane * OG + out) * H, taps = (channel * OG + out) * TAPS;
#else
  {
    const int seen = plane / OG * H, taps = channel * TAPS;
#endif
#ifdef LOOPED
    for (int kh = 0; kh < KH; ++kh) {
      const int row = clnet_seen(row0, kh, SH, PT, DH);
      if ((uint)row >= (uint)H) continue;
      float part = 0.0f;
      for (int kw = 0; kw < KW; ++kw) {
        const int to = clnet_seen(column, kw, SW, PL, DW);
        if ((uint)to < (uint)W) part += LOAD(w, taps + kh * KW + kw) * LOAD(x, (seen + row) * W + to);
      }
      sum[0] += part;
    }
#else
#ifdef DATA
    const int first = (row0 + PT) / SH;
#else
    const int first = row0 * SH - PT;
#endif
    float tap[TAPS], part[ROWS];
    #pragma unroll
    for (int i = 0; i < TAPS; ++i) tap[i] = LOAD(w, taps + i);
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) part[i] = 0.0f;
    #pragma unroll
    for (int r = FIRST_ROW; r <= LAST_ROW; r += ROW_STEP) {
      const int row = first + r;
      #pragma unroll
      for (int kw = 0; kw < KW; ++kw) {
        const int to = clnet_seen(column, kw, SW, PL, DW);
        const float value = (uint)row < (uint)H && (uint)to < (uint)W ? LOAD(x, (seen + row) * W + to) : 0.0f;
        #pragma unroll
        for (int i = 0; i < ROWS; ++i)
          if (MEET(i, r)) part[i] += tap[DISTANCE(i, r) / DH * KW + kw] * value;
      }
    }
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) sum[i] += part[i];
#endif
  }
#ifdef BIAS
  const float offset = LOAD(bias, channel);
#else
  const float offset = 0.0f;
#endif
#ifdef SLICES
  const int to_plane = Y_PLANE(plane / channels, channel, channels);
#else
  const int to_plane = plane;
#endif
  #pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int to = (to_plane * TH + row0 + i) * TW + column;
    if (row0 + i >= 0 && row0 + i < TH) STORE(y, to, EPILOGUE(sum[i] + offset, to, channel));
  }
}
#endif
