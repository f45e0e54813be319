// Depthwise convolution for CPUs: every plane has a small kernel of its own, {KH, KW} with steps STEP. A work-item makes a strip of RB rows
// of several planes, one after the other: its window is staged with zeros around it, VECTORS vectors of sums are made at a time while
// each vector of the window is loaded once, and what they make lies in one piece, so that only its end is finished by single
// elements. A vector is GROUP rows of a plane: two where they are narrow.
#include "conv2d_slices.clh"
#include "vector.clh"
#include "epilogue.clh"

// The window is sorted by the remainders of its rows and columns by STEP into STEP * STEP parts, in which neighbouring outputs read neighbouring
// floats. What a vector stores beyond a row is made good by the next row, or lies behind the last.
#define PART(staged, row_rest, column_rest) ((staged) + ((row_rest) * STEP + (column_rest)) * part)

#if GROUP == 2
typedef float8 any_half __attribute__((aligned(4)));
#endif

// With what the last row's outputs see beyond it.
static inline void zero_row(local float *restrict target, const int pitch) {
  for (int i = 0; i < pitch + KW; i += VW) *(local any_vector *)(target + i) = (VFLOAT)(0.0f);
}

// Row `row` of the window from the `columns` elements at `first`, behind `left` zeros. What the last vector has beyond them becomes
// zeros, where zeros or the next row belong.
static inline void stage_row(IN(x), const int first, const int elements, const int columns, const int left, const int pitch,
                             const int part, const int row, local float *restrict staged) {
#if STEP == 1
  local float *restrict target = staged + row * pitch;
  SELDOM for (int i = 0; i < left; ++i) target[i] = 0;
  target += left;
  VINT lane;
  #pragma unroll
  for (int l = 0; l < VW; ++l) lane[l] = l;
  int c = 0;
  for (; c + VW <= columns; c += VW) *(local any_vector *)(target + c) = VLOAD(x, first + c);
  if (c < columns && first + c <= elements - VW)
    *(local any_vector *)(target + c) = select((VFLOAT)(0.0f), VLOAD(x, first + c), lane < (VINT)(columns - c));
  else
    SELDOM for (; c < columns; ++c) target[c] = LOAD(x, first + c);
  SELDOM for (int i = columns; i < pitch; ++i) target[i] = 0;
#else
  local float *restrict even = PART(staged, row % STEP, left % STEP) + row / STEP * pitch + left / STEP;
  local float *restrict odd = PART(staged, row % STEP, 1 - left % STEP) + row / STEP * pitch + (left + 1) / STEP;
  SELDOM for (int i = 1; i <= left / STEP; ++i) even[-i] = 0;
  SELDOM for (int i = 1; i <= (left + 1) / STEP; ++i) odd[-i] = 0;
  int i = 0;
  for (; i < columns && first + i <= elements - 2 * VW; i += 2 * VW) {
    const VFLOAT a = VLOAD(x, first + i), b = VLOAD(x, first + i + VW);
    *(local any_vector *)(even + i / 2) = (VFLOAT)(a.even, b.even);
    *(local any_vector *)(odd + i / 2) = (VFLOAT)(a.odd, b.odd);
  }
  SELDOM for (; i < columns; ++i) (i % 2 ? odd : even)[i / 2] = LOAD(x, first + i);
  SELDOM for (i = (columns + 1) / 2; i < pitch - left / STEP; ++i) even[i] = 0;
  SELDOM for (i = columns / 2; i < pitch - (left + 1) / STEP; ++i) odd[i] = 0;
#endif
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_cpu(
    IN(x), IN(w),
#ifdef BIAS
    IN(bias),
#endif
    OUT(y), const int planes, const int channels, const int block, const int H, const int W, const int PH, const int PW,
    const int top, const int left, const int RB, const int columns, const int pitch, const int part, local float *restrict staged,
    local float *restrict made SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int row0 = (int)get_global_id(0) * RB, rows = min(RB, PH - row0);
  const int blocks = (rows + VECTORS * GROUP - 1) / (VECTORS * GROUP), source = row0 * STEP - top;
  const int plane0 = (int)get_global_id(1) * block, plane1 = plane0 + min(block, planes - plane0);
  for (int plane = plane0; plane < plane1; ++plane) {
    const int channel = plane % channels;
    float weights[KH * KW];
    #pragma unroll
    for (int k = 0; k < KH * KW; ++k)
#ifdef FLIP
      weights[k] = LOAD(w, channel * (KH * KW) + KH * KW - 1 - k);
#else
      weights[k] = LOAD(w, channel * (KH * KW) + k);
#endif
    VFLOAT start = (VFLOAT)(0.0f);
#ifdef BIAS
    start = (VFLOAT)(LOAD(bias, channel));
#endif
    for (int row = 0; row < (blocks * VECTORS * GROUP - 1) * STEP + KH; ++row) {
      const int from = source + row;
      if (from >= 0 && from < H)
        stage_row(x_base, x_offset, (plane * H + from) * W, planes * H * W, columns, left, pitch, part, row, staged);
      else
        #pragma unroll
        for (int rest = 0; rest < STEP; ++rest) zero_row(PART(staged, row % STEP, rest) + row / STEP * pitch, pitch);
    }
    for (int r = 0; r < blocks * VECTORS * GROUP; r += VECTORS * GROUP)
      for (int column = 0; column < PW; column += VW) {
        // The last vector of a row covers the one before, if there is one.
        const int j = max(0, min(column, PW - VW));
        VFLOAT sum[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[v] = start;
        #pragma unroll
        for (int rest = 0; rest < STEP; ++rest)
          #pragma unroll
          for (int q = 0; q <= (VECTORS - 1) * GROUP + (KH - 1 - rest) / STEP; ++q) {
            VFLOAT pixels[KW];
            #pragma unroll
            for (int t = 0; t < KW; ++t)
              pixels[t] = *(const local any_vector *)(PART(staged, rest, t % STEP) + (r + q) * pitch + j + t / STEP);
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v)
              #pragma unroll
              for (int s = rest; s < KH; s += STEP)
                if (v * GROUP + s / STEP == q)
                  #pragma unroll
                  for (int t = 0; t < KW; ++t) sum[v] = fma((VFLOAT)(weights[s * KW + t]), pixels[t], sum[v]);
          }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          local float *target = made + (r + v * GROUP) * PW + j;
#if GROUP == 1
          *(local any_vector *)target = sum[v];
#else
          *(local any_half *)target = sum[v].lo;
          *(local any_half *)(target + PW) = sum[v].hi;
#endif
        }
      }
    const int first = (Y_PLANE(plane / channels, channel, channels) * PH + row0) * PW, count = rows * PW;
    int i = 0;
    for (; i + VW <= count; i += VW) VSTORE(y, first + i, VEPILOGUE(*(const local any_vector *)(made + i), first + i, channel, 0));
    SELDOM for (; i < count; ++i) STORE(y, first + i, EPILOGUE(made[i], first + i, channel));
  }
}
