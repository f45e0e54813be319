// y[o, r, i] = the sum of g[o, j, i] over the j with indices[j] = r; with GATHER, over those with indices[o, j, i] = r. No atomics,
// and always in the order of j: each work-item owns its elements of y.
#include "clnet.clh"
#include "indices.clh"

#ifdef GATHER
#define AT(j, i) ((o * picks + j) * inner + i)
#else
#define AT(j, i) (j)
#endif

#ifdef DIRECT
kernel void index_add(IN(g), IN(indices), OUT(y), const int count, const int extent, const int picks, const int inner) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int i = REMAINDER(at, inner), rest = at / inner, r = REMAINDER(rest, extent), o = rest / extent;
  VALUE(g) sum = 0;
  for (int block = 0; block < picks; block = BLOCK_END(block, CLNET_BLOCK, picks)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, picks);
    VALUE(g) part = 0;
    for (int j = block; j < end; ++j)
      if (INDEX(AT(j, i)) == r) part += LOAD(g, (o * picks + j) * inner + i);
    sum += part;
  }
  STORE(y, at, sum);
}
#else
// A work-item owns `rows` rows of y, f32, and every LANES-th column of them (of integers i32 or i64); it reads all indices from `begin` to `end`, of which the
// first launch begins with 0. With BLOCKS, each `block` of them is summed by itself in `part`, which has y's size.
#ifdef BLOCKS
#define SUMS PTR(part)
#else
#define SUMS PTR(y)
#endif

kernel void index_add(IN(g), IN(indices), OUT(y),
#ifdef BLOCKS
                      OUT(part), const int block,
#endif
                      const int outer, const int rows, const int extent, const int picks, const int inner, const int begin,
                      const int end) {
  const int lane = (int)get_global_id(0), o = (int)get_global_id(2);
  const int first = (int)get_global_id(1) * rows, last = BLOCK_END(first, rows, extent);
  if (first >= extent || lane >= LANES) return;
  for (int r = first; begin == 0 && r < last; ++r)
    for (int i = lane; i < inner; i += LANES) {
      STORE(y, (o * extent + r) * inner + i, 0.0f);
#ifdef BLOCKS
      STORE(part, (o * extent + r) * inner + i, 0.0f);
#endif
    }
#ifdef BLOCKS
  for (int from = begin, to; from < end; from = to) {
    // Where the block ends, or the launch does.
    to = BLOCK_END(from, block - REMAINDER(from, block), end);
#else
  const int from = begin, to = end;
#endif
#ifdef GATHER
  for (int j = from; j < to; ++j)
    for (int i = lane; i < inner; i += LANES) {
      const int r = INDEX(AT(j, i));
      if (r >= first && r < last) SUMS[(o * extent + r) * inner + i] += LOAD(g, AT(j, i));
    }
#else
  for (int j = from; j < to; ++j) {
    const int r = INDEX(j);
    if (r < first || r >= last) continue;
    for (int i = lane; i < inner; i += LANES) SUMS[(o * extent + r) * inner + i] += LOAD(g, (o * picks + j) * inner + i);
  }
#endif
#ifdef BLOCKS
    if (to < picks && REMAINDER(to, block) != 0) continue;
    for (int r = first; r < last; ++r)
      for (int i = lane; i < inner; i += LANES) {
        const int at = (o * extent + r) * inner + i;
        PTR(y)[at] += PTR(part)[at];
        PTR(part)[at] = 0;
      }
  }
#endif
}
#endif
