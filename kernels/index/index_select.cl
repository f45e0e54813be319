// y[o, j, i] = x[o, indices[j], i]; with GATHER, the index is indices[o, j, i]. NaN (0) where an index is out of range. ROWS: a
// work-item copies `rows` rows along i; RUNS: `rows` elements, dividing once per run along i, or along j where that is i's only place
// (SINGLE).
#include "clnet.clh"
#include "indices.clh"

kernel WIDE_KERNEL void index_select(IN(x), INDICES, OUT(y), const int count, const int rows, const int extent, const int picks,
                                     const int inner) {
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / inner);
  for (int row = first; row < last; ++row) {
    const int o = row / picks, r = INDEX(REMAINDER(row, picks)), from = (o * extent + r) * inner, to = row * inner;
    if (r < 0) {
      for (int i = 0; i < inner; ++i) STORE(y, to + i, OUT_OF_RANGE(y));
    } else {
      for (int i = 0; i < inner; ++i) STORE(y, to + i, LOAD(x, from + i));
    }
  }
#elif defined(RUNS)
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count);
  for (int at = first; at < last;) {
#ifdef SINGLE
    const int o = at / picks, j = REMAINDER(at, picks), run = min(picks - j, last - at), from = o * extent;
#else
    const int rest = at / inner, i = REMAINDER(at, inner), o = rest / picks, j = REMAINDER(rest, picks);
    const int run = min(inner - i, last - at), from = o * extent * inner + i;
#endif
VECTOR_LOOP
    for (int k = 0; k < run; ++k) {
#ifdef GATHER
      const int r = INDEX(at + k);
#elif defined(SINGLE)
      const int r = INDEX(j + k);
#else
      const int r = INDEX(j);
#endif
#ifdef SINGLE
      STORE(y, at + k, r < 0 ? OUT_OF_RANGE(y) : LOAD(x, from + r));
#else
      STORE(y, at + k, r < 0 ? OUT_OF_RANGE(y) : LOAD(x, from + r * inner + k));
#endif
    }
    at += run;
  }
#else
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int rest = at / inner, i = REMAINDER(at, inner), o = rest / picks, j = REMAINDER(rest, picks);
#ifdef GATHER
  const int r = INDEX(at);
#else
  const int r = INDEX(j);
#endif
  STORE(y, at, r < 0 ? OUT_OF_RANGE(y) : LOAD(x, (o * extent + r) * inner + i));
#endif
}
