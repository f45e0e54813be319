// Convolution of 3x3 with stride 1 on GPUs by Winograd's F(2x2, 3x3): 2x2 results from 4x4 inputs by 16 products instead of 36. A
// work-group makes TM output channels of TN such tiles: slices of TK channels come through local memory, two of each, the weights
// as conv2d_winograd_pack_gpu left them, the inputs transformed on their way; an item holds RM x RN sums of one of the 16 products.
// Then the items exchange their sums through the same memory and transform them to results. The gradient of the input is the same
// of the output's gradient, with the weights swapped and turned round. An item transforms one half of a tile's channel of a slice,
// so 2 * TN * TK are the group's items.
#include "conv2d_slices.clh"
#include "epilogue.clh"

#define PRODUCTS 16
#define ACROSS (TN / RN)
#define DOWN (TM / RM)
#define ITEMS (PRODUCTS * DOWN * ACROSS)
// Floats of a slice, and of what is exchanged at a time: four rows of each item.
#define SLICE_W (PRODUCTS * TK * TM)
#define SLICE_X (PRODUCTS * TK * TN)
#define EXCHANGED_ROWS (4 * DOWN)
#define EXCHANGED (PRODUCTS * EXCHANGED_ROWS * TN)
#define FETCH_W (SLICE_W / 4 / ITEMS)

// Half of what 4x4 inputs become: product rows 0 and 1 of input rows 0, 1, 2, or 3 and 2 of rows 1, 2, 3.
#define FETCH(k0)                                                                                       \
  {                                                                                                     \
    const uint its = (k0) + depth < end ? seen : 0u;                                                    \
    const int from = x0 + (k0) * plane;                                                                 \
    _Pragma("unroll")                                                                                   \
    for (int r = 0; r < 3; ++r)                                                                         \
      _Pragma("unroll")                                                                                 \
      for (int c = 0; c < 4; ++c) next_x[r][c] = its >> (4 * r + c) & 1u ? LOAD(x, from + r * W + c) : 0.0f; \
    if ((k0) < end) {                                                                                   \
      const global float4 *restrict packed = (const global float4 *)(PTR(w) + w0 + (k0) / TK * SLICE_W) + item; \
      _Pragma("unroll")                                                                                 \
      for (int e = 0; e < FETCH_W; ++e) next_w[e] = packed[e * ITEMS];                                  \
    }                                                                                                   \
  }

// Four inputs of a row to their values at the points 0, 1, -1 and infinity, each `gap` from the next.
static inline void winograd_row(local float *to, const int gap, const float d0, const float d1, const float d2, const float d3) {
  to[0] = d0 - d2;
  to[gap] = d1 + d2;
  to[2 * gap] = d2 - d1;
  to[3 * gap] = d1 - d3;
}

static inline void winograd_take(float *to, const local float *from) {
  const float4 taken = *(const local float4 *)from;
  to[0] = taken.x, to[1] = taken.y, to[2] = taken.z, to[3] = taken.w;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void conv2d_winograd_gpu(
    IN(w), IN(x), IN(bias), OUT(y), const int has_bias, const int N, const int C, const int H, const int W, const int O, const int YH,
    const int YW, const int top, const int left, const int part, const int part_stride SLICES_PARAMETER EPILOGUE_PARAMETERS) {
#if 2 * (SLICE_W + SLICE_X) > EXCHANGED
  local float memory[2 * (SLICE_W + SLICE_X)] __attribute__((aligned(16)));
#else
  local float memory[EXCHANGED] __attribute__((aligned(16)));
#endif
  const int item = (int)get_local_id(0), panel = (int)get_global_id(0) / ITEMS, which = (int)get_global_id(2);
  const int begin = which * part, end = min(C, begin + part), plane = H * W;
  // The item's tile, of which it transforms inputs and later results.
  const int tiles_down = (YH + 1) / 2, tiles_across = (YW + 1) / 2;
  const int tile = (int)get_global_id(1) * TN + item % TN, line = tile / tiles_across;
  const int image = line / tiles_down, y0 = line % tiles_down * 2, column0 = tile % tiles_across * 2;
  const int depth = item / TN % TK, lower = item / (TN * TK);
  const int sy = y0 - top + lower, sx = column0 - left;
  uint seen = 0;
  #pragma unroll
  for (int r = 0; r < 3; ++r)
    #pragma unroll
    for (int c = 0; c < 4; ++c)
      if (image < N && (uint)(sy + r) < (uint)H && (uint)(sx + c) < (uint)W) seen |= 1u << (4 * r + c);
  const int x0 = ((image * C + depth) * H + sy) * W + sx, w0 = panel * ((C + TK - 1) / TK) * SLICE_W;
  // The item's product and place in it.
  const int product = item / (DOWN * ACROSS), down = item / ACROSS % DOWN, across = item % ACROSS;

  float sum[RM][RN];
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) sum[i][j] = 0.0f;

  float next_x[3][4];
  float4 next_w[FETCH_W];
  FETCH(begin)
  int turn = 0;
  for (int k0 = begin; k0 < end; k0 += TK) {
    local float *slice_w = memory + turn * (SLICE_W + SLICE_X), *slice_x = slice_w + SLICE_W;
    #pragma unroll
    for (int e = 0; e < FETCH_W; ++e) ((local float4 *)slice_w)[item + e * ITEMS] = next_w[e];
    float outer[4], inner[4];
    #pragma unroll
    for (int c = 0; c < 4; ++c) {
      outer[c] = next_x[0][c] - next_x[2][c];
      inner[c] = next_x[1][c] + (lower ? -next_x[0][c] : next_x[2][c]);
    }
    local float *to = slice_x + item % (TN * TK);
    winograd_row(to + lower * 12 * TK * TN, TK * TN, outer[0], outer[1], outer[2], outer[3]);
    winograd_row(to + (lower + 1) * 4 * TK * TN, TK * TN, inner[0], inner[1], inner[2], inner[3]);
    // One for both: who is a slice ahead writes the other pair.
    barrier(CLK_LOCAL_MEM_FENCE);
    FETCH(k0 + TK)
    // One at a time: with all of a slice's loads begun at once 64 sums would take more than 128 registers.
    #pragma unroll 1
    for (int k = 0; k < TK; ++k) {
      float of_w[RM], of_x[RN];
      #pragma unroll
      for (int i = 0; i < RM; i += 4) winograd_take(of_w + i, slice_w + (product * TK + k) * TM + i * DOWN + down * 4);
      #pragma unroll
      for (int j = 0; j < RN; j += 4) winograd_take(of_x + j, slice_x + (product * TK + k) * TN + j * ACROSS + across * 4);
      #pragma unroll
      for (int i = 0; i < RM; ++i)
        #pragma unroll
        for (int j = 0; j < RN; ++j) sum[i][j] += of_w[i] * of_x[j];
    }
    turn ^= 1;
  }

  #pragma unroll
  for (int i0 = 0; i0 < RM; i0 += 4) {
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      #pragma unroll
      for (int j = 0; j < RN; j += 4)
        *(local float4 *)(memory + (product * EXCHANGED_ROWS + down * 4 + i) * TN + j * ACROSS + across * 4) =
            (float4)(sum[i0 + i][j], sum[i0 + i][j + 1], sum[i0 + i][j + 2], sum[i0 + i][j + 3]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = item / TN; row < EXCHANGED_ROWS; row += ITEMS / TN) {
      const int channel = panel * TM + i0 * DOWN + row;
      if (image >= N || channel >= O) continue;
      const local float *from = memory + row * TN + item % TN;
      float upper[4], under[4];
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float p0 = from[c * EXCHANGED_ROWS * TN], p1 = from[(4 + c) * EXCHANGED_ROWS * TN];
        const float p2 = from[(8 + c) * EXCHANGED_ROWS * TN], p3 = from[(12 + c) * EXCHANGED_ROWS * TN];
        upper[c] = p0 + p1 + p2;
        under[c] = p1 - p2 - p3;
      }
      const float start = has_bias ? LOAD(bias, channel) : 0.0f;
      const float results[2][2] = {{start + (upper[0] + upper[1] + upper[2]), start + (upper[1] - upper[2] - upper[3])},
                                   {start + (under[0] + under[1] + under[2]), start + (under[1] - under[2] - under[3])}};
      #pragma unroll
      for (int r = 0; r < 2; ++r)
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int at = (Y_PLANE(image, channel, O) * YH + y0 + r) * YW + column0 + c;
          if (y0 + r < YH && column0 + c < YW) STORE(y, which * part_stride + at, EPILOGUE(results[r][c], at, channel));
        }
    }
  }
}
