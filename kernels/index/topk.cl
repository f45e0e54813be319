// The places of the `count` elements of each line that come first, in order. x is {outer, extent, inner}, y {outer, count, inner}. COPY:
// from the order of all elements. Else one line per work-item, which keeps the first so far, MOST of them at most, as keys beside places.
#include "clnet.clh"

#ifdef COPY
kernel void topk(IN(order), OUT(y), const int all, const int extent, const int count, const int inner) {
  const int at = (int)get_global_id(0);
  if (at >= all) return;
  const int i = REMAINDER(at, inner), rest = at / inner;
  STORE(y, at, LOAD(order, (rest / count * extent + REMAINDER(rest, count)) * inner + i));
}
#else
#include "sort_key.clh"

#define TOGETHER 16

#ifdef DENSE
// Floats that follow each other. MAY_PRECEDE: before `limit`, or NaN, as an empty limit is.
#ifdef DESCENDING
#define MAY_PRECEDE(value) (!((value) <= limit))
#else
#define MAY_PRECEDE(value) (!((value) >= limit))
#endif
static inline int clnet_some_may_precede(global const float *values, const float limit) {
  const int16 found = MAY_PRECEDE(vload16(0, values));
  const int8 of_8 = found.lo | found.hi;
  const int4 of_4 = of_8.lo | of_8.hi;
  const int2 of_2 = of_4.lo | of_4.hi;
  return of_2.lo | of_2.hi;
}
#endif

kernel void topk(IN(x), OUT(y), const int lines, const int extent, const int count, const int inner) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int outer = line / inner, i = REMAINDER(line, inner), base = outer * extent * inner + i;
  ulong first[MOST];
  for (int k = 0; k < MOST; ++k) first[k] = ~0ul;
#ifdef DENSE
  float limit = NAN;
#else
  uint last = 0xffffffffu;
#endif
  for (int begin = 0; begin < extent; begin += TOGETHER) {
    const int end = min(begin + TOGETHER, extent);
    // Of most elements none comes before the last one that is kept; of equal keys the earlier place counts.
    int some = begin < count;
#ifdef DENSE
    if (begin + TOGETHER <= extent)
      some = some || clnet_some_may_precede(PTR(x) + base + begin, limit);
#else
    if (begin + TOGETHER <= extent)
      for (int at = 0; at < TOGETHER; ++at) some |= SORT_KEY(LOAD(x, base + (begin + at) * inner)) < last;
#endif
    else
      some = 1;
    if (!some) continue;
    for (int at = begin; at < end; ++at) {
#ifdef DENSE
      if (!MAY_PRECEDE(LOAD(x, base + at))) continue;
#endif
      const ulong pair = (ulong)SORT_KEY(LOAD(x, base + at * inner)) << 32 | (uint)at;
      if (pair >= first[count - 1]) continue;
      int to = count - 1;
      for (; to > 0 && first[to - 1] > pair; --to) first[to] = first[to - 1];
      first[to] = pair;
#ifdef DENSE
      if (at + 1 >= count) limit = LOAD(x, base + (int)(uint)first[count - 1]);
#else
      last = (uint)(first[count - 1] >> 32);
#endif
    }
  }
  for (int k = 0; k < count; ++k) STORE(y, (outer * count + k) * inner + i, (int)(uint)first[k]);
}
#endif
