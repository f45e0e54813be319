// Average pooling and its gradient for CPUs, strides 1 and 2, no dilation: a row of sums down the windows, then sums along it, in whole
// vectors. A work-item makes `strips` of `rows` rows, of one plane after the other. BACKWARD: x are gradients {out_h, out_w}, y those
// of the input {h, w}.
// ROW_BY_ROW: the last of the rows that a window sees is read after the others, as hardware fetches ahead along one row.
#include "avg_pool2d_cpu.clh"

#ifdef BACKWARD
#define SOURCE_H out_h
#define SOURCE_W out_w
#define RESULT_H h
#define RESULT_W w
#define FIRST_SEEN(row) FIRST_H(row)
#define LAST_SEEN(row) LAST_H(row)
#else
#define SOURCE_H h
#define SOURCE_W w
#define RESULT_H out_h
#define RESULT_W out_w
#define FIRST_SEEN(row) max(START_H(row), 0)
#define LAST_SEEN(row) min(START_H(row) + KERNEL_H, h) - 1
#endif

// A sum is divided by a number, or by its window's rows and columns, of which `columns` holds the latter.
#ifdef DIVISOR_OVERRIDE
#define UNIFORM ((float)(DIVISOR_OVERRIDE))
#elif defined(INSIDE)
#define UNIFORM ((float)(KERNEL_H * KERNEL_W))
#endif
#define WINDOW_ROWS(oh) max(COUNTED(START_H(oh), KERNEL_H, h, BOTTOM), 1)
#define WINDOW_COLUMNS(ow) max(COUNTED(START_W(ow), KERNEL_W, w, RIGHT), 1)
#ifdef UNIFORM
#define SHARE(values, rows, column) ((values) / UNIFORM)
#else
#define SHARE(values, rows, column) ((values) / ((float)(rows) * AT(columns + (column))))
#endif

// What is divided at last: all but the gradients of windows of different sizes, which are before they are added up.
#if defined(BACKWARD) && !defined(UNIFORM)
#define FINAL(values, rows, column) (values)
#else
#define FINAL SHARE
#endif

// WHOLE: rows are whole vectors and stored at once (NONTEMPORAL_STORES: past the caches), else by way of `made`, where
// they lie in one piece.
#ifdef WHOLE
#define PUT(p, values)                               \
  do {                                               \
    const VFLOAT final_ = VEPILOGUE(values, p, 0, 0); \
    if (streams)                                     \
      NONTEMPORAL_VSTORE(y, p, final_);                         \
    else                                             \
      VSTORE(y, p, final_);                          \
  } while (0)
#else
#define PUT(p, values) AT(p) = values
#endif

// Zeros before a row of sums; as many floats behind it as a window has columns are zeros, too.
#if defined(BACKWARD) && STRIDE_W == 1
#define BEFORE (KERNEL_W - 1 - LEFT)
#elif defined(BACKWARD)
#define BEFORE (KERNEL_W / 2)
#else
#define BEFORE LEFT
#endif
// Forward with stride 2 even and odd columns, counted from the first zero on, lie apart: window ow begins at ow of each.
#if !defined(BACKWARD) && STRIDE_W == 2
#define APART
// A result is made as soon as its sums are, so many results later, so that reading and writing overlap. With stride 1 the sums are
// read while they are still on their way to the cache, and it does not pay.
#define LAG ((KERNEL_W + VW - 2) / VW * VW)
#endif

// A vector of each of `count` rows from x[at] on, added up, most often `usual` ones. TALL: what most windows see.
#ifdef BACKWARD
#define TALL ((KERNEL_H + STRIDE_H - 1) / STRIDE_H)
#else
#define TALL KERNEL_H
#endif
static inline VFLOAT column_sums(IN(x), const int at, const int count, const int width, const int usual) {
  VFLOAT sum = 0;
  if (count == usual) {
#pragma unroll
    for (int row = 0; row < usual; ++row) sum += VLOAD(x, at + row * width);
  } else {
    SELDOM for (int row = 0; row < count; ++row) sum += VLOAD(x, at + row * width);
  }
  return sum;
}

// The same of a row's last n columns, which may be the end of x.
static inline VFLOAT last_column_sums(IN(x), const int at, const int count, const int width, const int n, const int elements) {
  if (at + (count - 1) * width <= elements - VW) return column_sums(x_base, x_offset, at, count, width, TALL);
  VFLOAT sum = 0;
  SELDOM for (int row = 0; row < count; ++row) {
    VFLOAT values;
    VLOAD_PART(values, x, at + row * width, n, 0.0f);
    sum += values;
  }
  return sum;
}

#if !defined(BACKWARD) || STRIDE_W == 1
// VW windows from window j on.
static inline VFLOAT window_sums(local const float *restrict sums, const int pitch, const int j) {
  VFLOAT sum = 0;
#pragma unroll
  for (int t = 0; t < KERNEL_W; ++t)
#ifdef APART
    sum += AT(sums + t % 2 * pitch + j + t / 2);
#else
    sum += AT(sums + j + t);
#endif
  return sum;
}
#endif

#ifdef ROW_BY_ROW
#define COLUMN_SUMS(c) (AT(upper + (c)) + VLOAD(x, at + (count - 1) * SOURCE_W + (c)))
#else
#define COLUMN_SUMS(c) column_sums(x_base, x_offset, at + (c), count, SOURCE_W, TALL)
#endif
#define LAST_COLUMN_SUMS(c) last_column_sums(x_base, x_offset, at + (c), count, SOURCE_W, SOURCE_W - (c), elements)

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void avg_pool2d_strips_cpu(IN(x), OUT(y), const int planes, const int rows, const int block,
                                                                                 const int h, const int w, const int out_h, const int out_w,
                                                                                 const int pitch, local float *restrict sums,
                                                                                 local float *restrict columns,
                                                                                 local float *restrict made EPILOGUE_PARAMETERS) {
#ifdef NONTEMPORAL_STORES
  const bool streams = NONTEMPORAL_ALIGNED(PTR(y));
#else
  const bool streams = false;
#endif
  const int strips = (RESULT_H + rows - 1) / rows, elements = planes * SOURCE_H * SOURCE_W;
  const int strip0 = (int)get_global_id(0) * block, strip1 = min(strip0 + block, planes * strips);
#ifndef UNIFORM
  for (int ow = 0; ow < out_w; ++ow) columns[ow] = (float)WINDOW_COLUMNS(ow);
#endif
  SELDOM for (int i = 0; i < BEFORE; ++i) sums[i] = 0;
#ifdef APART
  local float *restrict others = sums + pitch;
  SELDOM for (int i = 0; i < BEFORE; ++i) others[i] = 0;
  local float *restrict even = (LEFT % 2 ? others : sums) + LEFT / 2, *restrict odd = (LEFT % 2 ? sums : others) + (LEFT + 1) / 2;
#endif
#ifdef ROW_BY_ROW
  local float *restrict upper = sums + 2 * pitch;
#endif
  for (int strip = strip0; strip < strip1; ++strip) {
    const int plane = strip / strips, row0 = REMAINDER(strip, strips) * rows, row1 = min(row0 + rows, RESULT_H);
    const int from = plane * SOURCE_H * SOURCE_W;
    for (int row = row0; row < row1; ++row) {
      const int first = FIRST_SEEN(row), count = LAST_SEEN(row) + 1 - first, at = from + first * SOURCE_W;
#ifdef WHOLE
      const int target = (plane * RESULT_H + row) * RESULT_W;
#else
      local float *restrict target = made + (row - row0) * RESULT_W;
#endif
      int c = 0, j = 0;
#ifdef ROW_BY_ROW
      for (; c + VW <= SOURCE_W; c += VW) AT(upper + c) = column_sums(x_base, x_offset, at + c, count - 1, SOURCE_W, TALL - 1);
      c = 0;
#endif
#ifdef APART
      for (; c + 2 * VW <= SOURCE_W; c += 2 * VW) {
        const VFLOAT a = COLUMN_SUMS(c), b = COLUMN_SUMS(c + VW);
        AT(even + c / 2) = (VFLOAT)(a.even, b.even);
        AT(odd + c / 2) = (VFLOAT)(a.odd, b.odd);
        if (c >= 2 * LAG && j < RESULT_W) {
          PUT(target + j, FINAL(window_sums(sums, pitch, j), WINDOW_ROWS(row), j));
          j += VW;
        }
      }
      if (c < SOURCE_W) {
        const VFLOAT a = LAST_COLUMN_SUMS(c);
        VFLOAT b = 0;
        if (c + VW < SOURCE_W) b = LAST_COLUMN_SUMS(c + VW);
        AT(even + c / 2) = (VFLOAT)(a.even, b.even);
        AT(odd + c / 2) = (VFLOAT)(a.odd, b.odd);
      }
      SELDOM for (int i = (SOURCE_W + 1) / 2; i < SOURCE_W / 2 + KERNEL_W; ++i) even[i] = 0;
      SELDOM for (int i = SOURCE_W / 2; i < SOURCE_W / 2 + KERNEL_W; ++i) odd[i] = 0;
#else
      for (; c + VW <= SOURCE_W; c += VW) AT(sums + BEFORE + c) = COLUMN_SUMS(c);
      if (c < SOURCE_W) AT(sums + BEFORE + c) = LAST_COLUMN_SUMS(c);
#if defined(BACKWARD) && !defined(UNIFORM)
      const int common = WINDOW_ROWS(first);
      bool alike = true;
      for (int oh = first + 1; oh < first + count; ++oh) alike = alike && WINDOW_ROWS(oh) == common;
      if (alike) {
        for (c = 0; c < SOURCE_W; c += VW) AT(sums + BEFORE + c) = SHARE(AT(sums + BEFORE + c), common, c);
      } else {
        for (c = 0; c < SOURCE_W; c += VW) {
          VFLOAT sum = 0;
          for (int oh = first; oh < first + count; ++oh)
            sum += SHARE(last_column_sums(x_base, x_offset, from + oh * SOURCE_W + c, 1, SOURCE_W, SOURCE_W - c, elements),
                         WINDOW_ROWS(oh), c);
          AT(sums + BEFORE + c) = sum;
        }
      }
#endif
      SELDOM for (int i = 0; i < KERNEL_W; ++i) sums[BEFORE + SOURCE_W + i] = 0;
#endif
#if !defined(BACKWARD) || STRIDE_W == 1
      for (; j < RESULT_W; j += VW) PUT(target + j, FINAL(window_sums(sums, pitch, j), WINDOW_ROWS(row), j));
#else
      // Input 2 * q - LEFT is seen by windows q, q - 1, ... with their even columns, the next input with their odd ones.
      for (; j < RESULT_W; j += 2 * VW) {
        local const float *restrict q = sums + BEFORE + (j + LEFT) / 2;
        VFLOAT even = 0, odd = 0, lower, upper;
#pragma unroll
        for (int t = 0; 2 * t < KERNEL_W; ++t) even += AT(q + LEFT % 2 - t);
#pragma unroll
        for (int t = 0; 2 * t + 1 < KERNEL_W; ++t) odd += AT(q - t);
#if LEFT % 2
        const VFLOAT swapped = even;
        even = odd, odd = swapped;
#endif
        lower.even = even.lo, lower.odd = odd.lo, upper.even = even.hi, upper.odd = odd.hi;
        PUT(target + j, FINAL(lower, 0, 0));
        if (j + VW < RESULT_W) PUT(target + j + VW, FINAL(upper, 0, 0));
      }
#endif
    }
#ifndef WHOLE
    PUT_BLOCK((plane * RESULT_H + row0) * RESULT_W, made, (row1 - row0) * RESULT_W);
#endif
  }
  NONTEMPORAL_FENCE();
}
