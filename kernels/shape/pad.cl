// Puts x into a larger (or smaller) block of `value`. Dimension 0 is the innermost, here only; RANK of them are in use: y's extents n,
// x's extents m, and where x begins in y (negative: elements are cut off). ROWS: a work-item makes `rows` rows along dimension 0.
#include "clnet.clh"

#define NEXT(n, m, before)                    \
  {                                           \
    const int at = REMAINDER(rest, n) - before; \
    rest /= n;                                \
    inside = inside && at >= 0 && at < m;     \
    from += at * stride;                      \
    stride *= m;                              \
  }

kernel void pad(IN(x), OUT(y), SCALAR(value), const int count, const int rows, const int n0, const int n1, const int n2,
                const int n3, const int n4, const int n5, const int m0, const int m1, const int m2, const int m3, const int m4,
                const int m5, const int before0, const int before1, const int before2, const int before3, const int before4,
                const int before5) {
  bool inside;
  int from, stride, rest;
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / n0);
  for (int row = first; row < last; ++row) {
    inside = true;
    rest = row;
    from = -before0;
    stride = m0;
#else
  {
    const int i = (int)get_global_id(0);
    if (i >= count) return;
    inside = true;
    rest = i;
    from = 0;
    stride = 1;
    NEXT(n0, m0, before0)
#endif
#if RANK > 1
    NEXT(n1, m1, before1)
#endif
#if RANK > 2
    NEXT(n2, m2, before2)
#endif
#if RANK > 3
    NEXT(n3, m3, before3)
#endif
#if RANK > 4
    NEXT(n4, m4, before4)
#endif
#if RANK > 5
    NEXT(n5, m5, before5)
#endif
#ifdef ROWS
    const int begin = inside ? clamp(before0, 0, n0) : n0, end = inside ? clamp(before0 + m0, 0, n0) : n0, to = row * n0;
    for (int i = 0; i < begin; ++i) STORE(y, to + i, value);
    for (int i = begin; i < end; ++i) STORE(y, to + i, LOAD(x, from + i));
    for (int i = max(begin, end); i < n0; ++i) STORE(y, to + i, value);
#else
    STORE(y, i, inside ? LOAD(x, from) : value);
#endif
  }
}
