// y[o, r, i] = the largest j with indices[o, j, i] = r, or -1. One line per work-item, of which a launch takes the picks from `begin` to
// `end`. FILL: the -1 before. SORTED: from index_add_sorted.cl's sorted picks of each line, and where each row's begin.
#include "clnet.clh"

#ifdef FILL
kernel void last_picks(OUT(y), const int count) {
  const int i = (int)get_global_id(0);
  if (i < count) STORE(y, i, -1);
}
#elif defined(SORTED)
kernel void last_picks(IN(order), IN(starts), OUT(y), const int count, const int extent, const int picks, const int inner) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int i = REMAINDER(at, inner), rest = at / inner, row = REMAINDER(rest, extent), line = rest / extent * inner + i;
  const int place = line * (extent + 1) + row, end = LOAD(starts, place + 1);
  STORE(y, at, LOAD(starts, place) < end ? LOAD(order, line * picks + end - 1) : -1);
}
#else
#include "indices.clh"

kernel void last_picks(IN(indices), INOUT(y), const int lines, const int picks, const int extent, const int inner, const int begin,
                       const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int o = line / inner, i = REMAINDER(line, inner);
  for (int j = begin; j < end; ++j) {
    const int r = INDEX((o * picks + j) * inner + i);
    if (r >= 0) STORE(y, (o * extent + r) * inner + i, j);
  }
}
#endif
