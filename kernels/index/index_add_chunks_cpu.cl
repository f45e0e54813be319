// index_add.cl's sums of one line of elements: a work-item sums a chunk of picks by itself. TOTAL: the sums of all chunks, in order.
#include "clnet.clh"

#ifdef TOTAL
kernel void index_add_chunks_cpu(IN(sums), OUT(y), const int extent, const int chunks) {
  const int row = (int)get_global_id(0);
  if (row >= extent) return;
  VALUE(sums) total = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) total += LOAD(sums, chunk * extent + row);
  STORE(y, row, total);
}
#else
#include "indices.clh"

kernel void index_add_chunks_cpu(IN(g), IN(indices), OUT(sums), const int extent, const int picks, const int chunk,
                                 const int chunks) {
  const int part = (int)get_global_id(0), begin = part * chunk;
  if (part >= chunks) return;
  const int end = BLOCK_END(begin, chunk, picks);
  for (int row = 0; row < extent; ++row) STORE(sums, part * extent + row, 0);
  for (int j = begin; j < end; ++j) {
    const int row = INDEX(j);
    if (row >= 0) PTR(sums)[part * extent + row] += LOAD(g, j);
  }
}
#endif
