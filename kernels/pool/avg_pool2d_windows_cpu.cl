// Average pooling and its gradient for CPUs, windows of any size: the sums down a window's rows in whole vectors, then those along it. A
// work-item makes `rows` rows of a plane, each in blocks of `most` results that local memory has room for. BACKWARD: x are gradients
// {out_h, out_w}, y those of the input {h, w}.
#include "avg_pool2d_cpu.clh"

#ifdef BACKWARD
// Adds `value` to made[first..end - 1].
static inline void add_to(local float *restrict made, const int first, const int end, const float value) {
  int i = first;
  for (; i + 4 <= end; i += 4) vstore4(vload4(0, made + i) + value, 0, made + i);
  SELDOM for (; i < end; ++i) made[i] += value;
}
#else
// The sum of sums[first..end - 1].
static inline float sum_of(local const float *restrict sums, const int first, const int end) {
  float4 four = 0;
  float rest = 0;
  int i = first;
  for (; i + 4 <= end; i += 4) four += vload4(0, sums + i);
  SELDOM for (; i < end; ++i) rest += sums[i];
  return (four.x + four.y) + (four.z + four.w) + rest;
}

// sums[..] = the sums of `count` columns of x from x[from] on, of as many rows of `width`.
static inline void column_sums(IN(x), local float *restrict sums, const int from, const int rows, const int count, const int width) {
  for (int i = 0; i < count; i += VW) AT(sums + i) = 0;
  int row = 0;
  for (; row + 4 <= rows; row += 4) {
    const int at = from + row * width;
    int i = 0;
    for (; i + VW <= count; i += VW)
      AT(sums + i) += (VLOAD(x, at + i) + VLOAD(x, at + width + i)) + (VLOAD(x, at + 2 * width + i) + VLOAD(x, at + 3 * width + i));
    SELDOM for (; i < count; ++i)
      sums[i] += (LOAD(x, at + i) + LOAD(x, at + width + i)) + (LOAD(x, at + 2 * width + i) + LOAD(x, at + 3 * width + i));
  }
  SELDOM for (; row < rows; ++row) {
    const int at = from + row * width;
    int i = 0;
    for (; i + VW <= count; i += VW) AT(sums + i) += VLOAD(x, at + i);
    SELDOM for (; i < count; ++i) sums[i] += LOAD(x, at + i);
  }
}
#endif

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void avg_pool2d_windows_cpu(IN(x), OUT(y), const int planes, POOL_PARAMETERS,
                                                                                  const int most, local float *restrict sums,
                                                                                  local float *restrict made EPILOGUE_PARAMETERS) {
  const int plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows;
  if (plane >= planes) return;
#ifdef BACKWARD
  const int last = BLOCK_END(first, rows, h);
  int made_first = 0, made_last = -2;  // the windows' rows that are in `made`
  for (int ih = first; ih < last; ++ih) {
    const int first_h = FIRST_H(ih), last_h = LAST_H(ih);
    for (int column = 0; column < w; column += most) {
      const int end = BLOCK_END(column, most, w);
      // Rows of the same windows are the same.
      if (most < w || first_h != made_first || last_h != made_last) {
        for (int i = 0; i < end - column; i += VW) AT(made + i) = 0;
        const int last_w = LAST_W(end - 1);
        for (int ow = FIRST_W(column); ow <= last_w; ++ow) {
          const int start_w = START_W(ow), count_w = COUNT_W(ow);
          float sum = 0;
          for (int oh = first_h; oh <= last_h; ++oh)
            sum += LOAD(x, (plane * out_h + oh) * out_w + ow) / DIVISOR(START_H(oh), COUNT_H(oh), start_w, count_w);
          add_to(made, max(start_w, column) - column, min(start_w + count_w, end) - column, sum);
        }
      }
      PUT_BLOCK((plane * h + ih) * w + column, made, end - column);
    }
    made_first = first_h, made_last = last_h;
  }
#else
  const int last = BLOCK_END(first, rows, out_h);
  for (int oh = first; oh < last; ++oh) {
    const int start_h = START_H(oh), count_h = COUNT_H(oh), row = max(start_h, 0), seen = max(min(start_h + count_h, h) - row, 0);
    for (int ow = 0; ow < out_w; ow += most) {
      const int end = BLOCK_END(ow, most, out_w), column = max(START_W(ow), 0);
      const int columns = max(min(START_W(end - 1) + COUNT_W(end - 1), w) - column, 0);
      column_sums(x_base, x_offset, sums, (plane * h + row) * w + column, seen, columns, w);
      for (int j = ow; j < end; ++j) {
        const int start_w = START_W(j), count_w = COUNT_W(j);
        const float sum = sum_of(sums, max(start_w, 0) - column, min(start_w + count_w, w) - column);
        made[j - ow] = sum / DIVISOR(start_h, count_h, start_w, count_w);
      }
      PUT_BLOCK((plane * out_h + oh) * out_w + ow, made, end - ow);
    }
  }
#endif
}
