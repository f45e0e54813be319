// y[o, j, i] = x[o, indices[j], i]; with GATHER, the index is indices[o, j, i]. NaN (0) where an index is out of range.
#include "clnet.clh"
#include "indices.clh"

kernel void index_select(IN(x), IN(indices), OUT(y), const int count, const int extent, const int picks, const int inner) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int i = at % inner, rest = at / inner, j = rest % picks, o = rest / picks;
#ifdef GATHER
  const int from = INDEX(at);
#else
  const int from = INDEX(j);
#endif
  STORE(y, at, from < 0 ? OUT_OF_RANGE(y) : LOAD(x, (o * extent + from) * inner + i));
}
