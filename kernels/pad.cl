// Puts x into a larger (or smaller) block of `value`. Dimension 0 is the innermost, here only; RANK of them are in use: y's extents n,
// x's extents m, and where x begins in y (negative: elements are cut off).
#include "clnet.clh"

#define NEXT(n, m, before)                 \
  {                                        \
    const int at = rest % n - before;      \
    rest /= n;                             \
    inside = inside && at >= 0 && at < m;  \
    from += at * stride;                   \
    stride *= m;                           \
  }

kernel void pad(IN(x), OUT(y), SCALAR(value), const int count, const int n0, const int n1, const int n2, const int n3, const int n4,
                const int n5, const int m0, const int m1, const int m2, const int m3, const int m4, const int m5, const int before0,
                const int before1, const int before2, const int before3, const int before4, const int before5) {
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  int rest = i, from = 0, stride = 1;
  bool inside = true;
  NEXT(n0, m0, before0)
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
  STORE(y, i, inside ? LOAD(x, from) : value);
}
