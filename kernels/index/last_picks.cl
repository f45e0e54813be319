// y[o, r, i] = the largest j with indices[o, j, i] = r, or -1. One line per work-item.
#include "clnet.clh"
#include "indices.clh"

kernel void last_picks(IN(indices), OUT(y), const int lines, const int picks, const int extent, const int inner) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int o = line / inner, i = REMAINDER(line, inner);
  for (int r = 0; r < extent; ++r) STORE(y, (o * extent + r) * inner + i, -1);
  for (int j = 0; j < picks; ++j) {
    const int r = INDEX((o * picks + j) * inner + i);
    if (r >= 0) STORE(y, (o * extent + r) * inner + i, j);
  }
}
