// index_add.cl's sums by sorted indices, without reading all of them for each row. A line of indices is sorted by itself: the only one,
// or with GATHER that of place (o, i). No atomics, and each sum is made in the order of the picks, in pieces that depend on nothing
// but the indices. In this order:
//   SORT     the rows of each GROUP of picks in order, and which picks they are (equal ones as they come)
//   MERGE    so many runs of them to one, as often as it takes
//   STARTS   where the picks of each row begin
//   CHUNKS   the sum of each `chunk` of sorted picks that has one row only: no row takes many steps, even if it has all picks
//   else     y: of each row its picks and chunks
// KIND (combine.clh) says how they are made one; but for sums, they start from x where that counts (OWN) or no picks come.
#include "clnet.clh"

#ifdef GATHER
#define LINE(o, i) ((o) * inner + (i))
#else
#define LINE(o, i) 0
#endif

#if defined(STARTS) || defined(MERGE)
// How many of the rows from `low` to `high`, which are sorted, are smaller than `row`, counted from the first of all.
static inline int clnet_first_from(global const int *rows, int low, int high, const int row) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int smaller = rows[middle] < row;
    low = smaller ? middle + 1 : low;
    high = smaller ? high : middle;
  }
  return low;
}
#endif

#if defined(SORT)
#include "indices.clh"

// Indices out of range are of row `extent`, behind all others.
kernel void index_add_sorted(IN(indices), OUT(rows), OUT(order), const int lines, const int extent, const int picks, const int inner) {
  local int group[GROUP];
  const int item = (int)get_local_id(0), at = (int)get_global_id(0), line = (int)get_global_id(1), first = at - item;
  int row = extent;
  if (at < picks && line < lines) {
#ifdef GATHER
    const int found = INDEX((line / inner * picks + at) * inner + REMAINDER(line, inner));
#else
    const int found = INDEX(at);
#endif
    row = found < 0 ? extent : found;
  }
  group[item] = row;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at >= picks || line >= lines) return;
  const int count = min(GROUP, picks - first);
  int to = line * picks + first;
  for (int other = 0; other < count; ++other) to += group[other] < row || (other < item && group[other] == row) ? 1 : 0;
  STORE(rows, to, row);
  STORE(order, to, at);
}

#elif defined(MERGE)
kernel void index_add_sorted(IN(rows), IN(order), OUT(to_rows), OUT(to_order), const int lines, const int picks, const int width) {
  const int at = (int)get_global_id(0), line = (int)get_global_id(1);
  if (at >= picks || line >= lines) return;
  global const int *its_rows = PTR(rows) + line * picks;
  const int row = its_rows[at], own = at / width, first = own / MERGE * MERGE;
  // Before the element are those of its own run, and of the others the smaller ones, from runs before it also the equal ones.
  int to = first * width + at - own * width;
  for (int run = first; run < first + MERGE; ++run) {
    const int begin = run * width;
    if (begin >= picks) break;
    if (run != own) to += clnet_first_from(its_rows, begin, BLOCK_END(begin, width, picks), run < own ? row + 1 : row) - begin;
  }
  STORE(to_rows, line * picks + to, row);
  STORE(to_order, line * picks + to, LOAD(order, line * picks + at));
}

#elif defined(STARTS)
kernel void index_add_sorted(IN(rows), OUT(starts), const int lines, const int extent, const int picks) {
  const int row = (int)get_global_id(0), line = (int)get_global_id(1);
  if (row > extent || line >= lines) return;
  STORE(starts, line * (extent + 1) + row, clnet_first_from(PTR(rows) + line * picks, 0, picks, row));
}

#else
#include "combine.clh"

#define CLNET_LEAST_f64 (-INFINITY)
#define CLNET_LEAST_f32 (-INFINITY)
#define CLNET_LEAST_i32 INT_MIN
#define CLNET_LEAST_i64 LONG_MIN
#define CLNET_GREATEST_f64 INFINITY
#define CLNET_GREATEST_f32 INFINITY
#define CLNET_GREATEST_i32 INT_MAX
#define CLNET_GREATEST_i64 LONG_MAX
#define LEAST CLNET_CAT(CLNET_LEAST_, TYPE_g)
#define GREATEST CLNET_CAT(CLNET_GREATEST_, TYPE_g)

// The sum of the sorted picks from `begin` to `end`.
#define SUM(sum, begin, end) \
  for (int j_ = (begin); j_ < (end); ++j_) { \
    const VALUE(g) pick_ = LOAD(g, (o * picks + LOAD(order, sorted + j_)) * inner + i); \
    sum = COMBINE(sum, pick_); \
  }

#ifdef CHUNKS
kernel void index_add_sorted(IN(g), IN(rows), IN(order), OUT(sums), const int count, const int extent, const int picks,
                             const int inner, const int chunk, const int chunks) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int i = REMAINDER(at, inner), rest = at / inner, begin = REMAINDER(rest, chunks) * chunk, o = rest / chunks;
  const int sorted = LINE(o, i) * picks, row = LOAD(rows, sorted + begin);
  VALUE(g) sum = IDENTITY;
  if (row < extent && LOAD(rows, sorted + begin + chunk - 1) == row) SUM(sum, begin, begin + chunk);
  STORE(sums, at, sum);
}

#else
kernel void index_add_sorted(
#ifdef OWN
                             IN(x),
#endif
                             IN(g), IN(order), IN(starts), IN(sums), OUT(y), const int count, const int extent, const int picks,
                             const int inner, const int chunk, const int chunks) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  const int i = REMAINDER(at, inner), rest = at / inner, row = REMAINDER(rest, extent), o = rest / extent;
  const int sorted = LINE(o, i) * picks, place = LINE(o, i) * (extent + 1) + row;
  const int begin = LOAD(starts, place), end = LOAD(starts, place + 1);
  const int first_chunk = (begin + chunk - 1) / chunk, last_chunk = end / chunk, first_end = min(first_chunk * chunk, end);
  VALUE(g) sum = IDENTITY, rest_sum = IDENTITY;
#ifdef OWN
  if (OWN || begin == end) sum = LOAD(x, at);
#endif
  SUM(sum, begin, first_end);
  for (int whole = first_chunk; whole < last_chunk; ++whole) {
    const VALUE(g) ahead = LOAD(sums, (o * chunks + whole) * inner + i);
    sum = COMBINE(sum, ahead);
  }
  SUM(rest_sum, max(first_end, last_chunk * chunk), end);
  STORE(y, at, COMBINE(sum, rest_sum));
}
#endif
#endif
