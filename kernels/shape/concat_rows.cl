// Rows of y, `step` elements apart, begin with the rows of COUNT inputs (at most 8) side by side, n0, n1, ... elements of each. A
// work-item copies `rows` rows.
#include "clnet.clh"

#define COPY(x, n) \
  for (int i = 0; i < n; ++i) STORE(y, to + i, LOAD(x, row * n + i)); \
  to += n;

kernel void concat_rows(OUT(y), const int count, const int step, const int rows, IN(x0), const int n0
#if COUNT > 1
                        , IN(x1), const int n1
#endif
#if COUNT > 2
                        , IN(x2), const int n2
#endif
#if COUNT > 3
                        , IN(x3), const int n3
#endif
#if COUNT > 4
                        , IN(x4), const int n4
#endif
#if COUNT > 5
                        , IN(x5), const int n5
#endif
#if COUNT > 6
                        , IN(x6), const int n6
#endif
#if COUNT > 7
                        , IN(x7), const int n7
#endif
) {
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count);
  for (int row = first; row < last; ++row) {
    int to = row * step;
    COPY(x0, n0)
#if COUNT > 1
    COPY(x1, n1)
#endif
#if COUNT > 2
    COPY(x2, n2)
#endif
#if COUNT > 3
    COPY(x3, n3)
#endif
#if COUNT > 4
    COPY(x4, n4)
#endif
#if COUNT > 5
    COPY(x5, n5)
#endif
#if COUNT > 6
    COPY(x6, n6)
#endif
#if COUNT > 7
    COPY(x7, n7)
#endif
  }
}
