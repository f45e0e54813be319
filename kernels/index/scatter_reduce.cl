// y with all source[o, j, i] that go to place r = indices[o, j, i] of y[o, r, i] made to one there, as KIND says (combine.clh). One line per
// work-item, of which a launch takes the picks from `begin` to `end`. FILL: y is x before. FIRST: what was there gives way to an
// element that comes there, or to 1, before all others.
#include "clnet.clh"

#ifdef FILL
kernel void scatter_reduce(IN(x), OUT(y), const int count) {
  const int i = (int)get_global_id(0);
  if (i < count) STORE(y, i, LOAD(x, i));
}
#else
#include "combine.clh"
#include "indices.clh"

kernel void scatter_reduce(IN(indices), IN(source), INOUT(y), const int lines, const int picks, const int extent, const int inner,
                           const int begin, const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int o = line / inner, i = REMAINDER(line, inner);
  for (int j = begin; j < end; ++j) {
    const int from = (o * picks + j) * inner + i, r = INDEX(from), to = (o * extent + r) * inner + i;
    if (r < 0) continue;
    const VALUE(source) value = LOAD(source, from);
#if defined(FIRST) && KIND == KIND_PROD
    STORE(y, to, 1);
#elif defined(FIRST)
    STORE(y, to, value);
#else
    STORE(y, to, COMBINE(LOAD(y, to), value));
#endif
  }
}
#endif
