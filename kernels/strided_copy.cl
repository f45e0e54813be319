// Copies a block of elements with a step per dimension in either tensor. Dimension 0 is the innermost, here only; RANK of them are
// in use. LINEAR: the first dimension is too short to be the range's own.
#include "clnet.clh"

#define NEXT(n, from_step, to_step) \
  {                                 \
    const int at = rest % n;        \
    rest /= n;                      \
    from += at * from_step;         \
    to += at * to_step;             \
  }

kernel void strided_copy(IN(x), OUT(y), const int count, const int n0, const int n1, const int n2, const int n3, const int n4,
                         const int x0, const int x1, const int x2, const int x3, const int x4, const int x5, const int y0,
                         const int y1, const int y2, const int y3, const int y4, const int y5) {
  int from = 0, to = 0;
#ifdef LINEAR
  int rest = (int)get_global_id(0);
  if (rest >= count) return;
  NEXT(n0, x0, y0)
#else
  const int inner = (int)get_global_id(0);
  int rest = (int)get_global_id(1);
  if (inner >= n0) return;
  from = inner * x0;
  to = inner * y0;
#endif
#if RANK > 2
  NEXT(n1, x1, y1)
#endif
#if RANK > 3
  NEXT(n2, x2, y2)
#endif
#if RANK > 4
  NEXT(n3, x3, y3)
#endif
#if RANK > 5
  NEXT(n4, x4, y4)
#endif
#if RANK == 2
  from += rest * x1;
  to += rest * y1;
#elif RANK == 3
  from += rest * x2;
  to += rest * y2;
#elif RANK == 4
  from += rest * x3;
  to += rest * y3;
#elif RANK == 5
  from += rest * x4;
  to += rest * y4;
#elif RANK == 6
  from += rest * x5;
  to += rest * y5;
#endif
  STORE(y, to, LOAD(x, from));
}
