// Reduction of x[outer][reduce][inner] over its middle dimension, in chunks: y[outer][chunks][inner]. One work-item takes whole
// chunks with explicit vectors. Sums go over three levels, so that no accumulator takes more than a few
// dozen values of a long row.
#include "reduce.clh"
#include "vector.clh"
#include "epilogue.clh"
#include "prologue.clh"

#if ACC_INT
#define VACC CLNET_CAT(long, VW)
#define VACC_LOAD(x, i) CLNET_CAT(convert_long, VW)(CLNET_CAT(vload, VW)(0, PTR(x) + (i)))
#else
#define VACC VFLOAT
#define VACC_LOAD(x, i) VLOAD(x, i)
#endif
#define STEPS 16
#define BLOCKS 32
// The four vectors that are added up at once lie side by side, or, with FAR, in four parts of a long row: hardware fetches more ahead
// of four streams than of one, but not before it has got to know them.
#ifdef FAR
#define APART part_length
#define NEXT VW
#else
#define APART VW
#define NEXT (4 * VW)
#endif

static inline acc_t lanes(const VACC vector) {
  acc_t values[VW];
  CLNET_CAT(vstore, VW)(vector, 0, values);
  for (int half_ = VW / 2; half_ > 0; half_ /= 2)
    for (int i = 0; i < half_; ++i) values[i] = COMBINE(values[i], values[i + half_]);
  return values[0];
}

// inner == 1
kernel void reduce_rows_cpu(IN(x), OUT(y), const int rows, const int length, const int chunk, const int chunks, const int rows_per_item,
                            const float scale PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int item = (int)get_global_id(0);
  const int from = REMAINDER(item, chunks) * chunk, count = min(chunk, length - from);
  const int first_row = item / chunks * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * length + from;
    acc_t total = IDENTITY;
    int i = 0;
    if (count >= VW) {
      VACC sum = (VACC)(IDENTITY);
      const int steps = count / (4 * STEPS * VW), part_length = steps * STEPS * VW;
      for (int step = 0; step < steps;) {
        VACC part = (VACC)(IDENTITY);
        const int stop = BLOCK_END(step, BLOCKS, steps);
        for (; step < stop; ++step) {
          const int p = first + step * STEPS * NEXT, q = p + APART, r = q + APART, s = r + APART;
          VACC a = VACC_LOAD(x, p), b = VACC_LOAD(x, q), c = VACC_LOAD(x, r), d = VACC_LOAD(x, s);
          for (int k = NEXT; k < STEPS * NEXT; k += NEXT) {
            const VACC e = VACC_LOAD(x, p + k), f = VACC_LOAD(x, q + k), g = VACC_LOAD(x, r + k), h = VACC_LOAD(x, s + k);
            a = VCOMBINE(a, e);
            b = VCOMBINE(b, f);
            c = VCOMBINE(c, g);
            d = VCOMBINE(d, h);
          }
          a = VCOMBINE(a, b);
          c = VCOMBINE(c, d);
          a = VCOMBINE(a, c);
          part = VCOMBINE(part, a);
        }
        sum = VCOMBINE(sum, part);
      }
      i = 4 * part_length;
      for (; i + VW <= count; i += VW) {
        const VACC a = VACC_LOAD(x, first + i);
        sum = VCOMBINE(sum, a);
      }
      total = lanes(sum);
    }
    for (; i < count; ++i) {
      const acc_t value = LOAD(x, first + i);
      total = COMBINE(total, value);
    }
    const int target = row * chunks + REMAINDER(item, chunks);
    STORE(y, target, FINISHED(total, target));
  }
}

// Columns of `count` rows from element `first` on, as vectors: lanes beyond the row's end hold what follows in memory, and are not
// stored. Rows from `safe` on would read behind the tensor's end.
kernel void reduce_columns_cpu(IN(x), OUT(y), const int outer, const int reduce, const int inner, const int chunk, const int chunks,
                               const int outer_per_item, const float scale PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int blocks = (inner + 4 * VW - 1) / (4 * VW), item = (int)get_global_id(0);
  const int begin = REMAINDER(item, blocks) * (4 * VW), end = BLOCK_END(begin, 4 * VW, inner);
  const int part = REMAINDER(item / blocks, chunks), from = part * chunk, count = min(chunk, reduce - from);
  const int first_outer = item / blocks / chunks * outer_per_item, last_outer = BLOCK_END(first_outer, outer_per_item, outer);
  const int elements = outer * reduce * inner;
  for (int o = first_outer; o < last_outer; ++o) {
    const int target = (o * chunks + part) * inner;
    const int rows = (o * reduce + from) * inner;
    if (end - begin == 4 * VW) {
      const int first = rows + begin;
      VACC a = (VACC)(IDENTITY), b = a, c = a, d = a;
      for (int block = 0; block < count; block += 2 * STEPS) {
        const int stop = min(block + 2 * STEPS, count);
        VACC e = (VACC)(IDENTITY), f = e, g = e, h = e;
        for (int i = block; i < stop; ++i) {
          const int at = first + i * inner;
          const VACC p = VACC_LOAD(x, at), q = VACC_LOAD(x, at + VW), r = VACC_LOAD(x, at + 2 * VW), s = VACC_LOAD(x, at + 3 * VW);
          e = VCOMBINE(e, p);
          f = VCOMBINE(f, q);
          g = VCOMBINE(g, r);
          h = VCOMBINE(h, s);
        }
        a = VCOMBINE(a, e);
        b = VCOMBINE(b, f);
        c = VCOMBINE(c, g);
        d = VCOMBINE(d, h);
      }
      acc_t values[4 * VW];
      CLNET_CAT(vstore, VW)(a, 0, values);
      CLNET_CAT(vstore, VW)(b, 1, values);
      CLNET_CAT(vstore, VW)(c, 2, values);
      CLNET_CAT(vstore, VW)(d, 3, values);
      for (int k = 0; k < 4 * VW; ++k) STORE(y, target + begin + k, FINISHED(values[k], target + begin + k));
    } else {
      for (int column = begin; column < end; column += VW) {
        const int first = rows + column;
        const int room = elements - VW - first;
        const int safe = room < 0 ? 0 : min(count, room / inner + 1);
        VACC a = (VACC)(IDENTITY);
        for (int block = 0; block < safe; block += 2 * STEPS) {
          const int stop = min(block + 2 * STEPS, safe);
          VACC e = (VACC)(IDENTITY);
          for (int i = block; i < stop; ++i) {
            const VACC p = VACC_LOAD(x, first + i * inner);
            e = VCOMBINE(e, p);
          }
          a = VCOMBINE(a, e);
        }
        acc_t values[VW];
        CLNET_CAT(vstore, VW)(a, 0, values);
        const int width = min(VW, end - column);
        for (int i = safe; i < count; ++i)
          for (int k = 0; k < width; ++k) {
            const acc_t value = LOAD(x, first + i * inner + k);
            values[k] = COMBINE(values[k], value);
          }
        for (int k = 0; k < width; ++k) STORE(y, target + column + k, FINISHED(values[k], target + column + k));
      }
    }
  }
}
