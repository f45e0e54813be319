// Copies a block of elements with a step per dimension in either tensor. Dimension 0 is the innermost, here only; RANK of them are
// in use. A work-item copies one element; ROWS: `rows` rows along dimension 0, where the steps are 1 unless there is STEPS, of SHORT elements
// if that is defined; LINEAR: an element, where that dimension is too short to be the range's own; BLOCKS: `rows` blocks of the three innermost dimensions, of which RANK has at least one
// more than three, so that divisions are few and lines of memory are read and written whole.
#include "clnet.clh"

#ifdef SHORT
#define LENGTH SHORT
#else
#define LENGTH n0
#endif
#ifdef STEPS
#define FROM(i) (from + (i) * x0)
#define TO(i) (to + (i) * y0)
#else
#define FROM(i) (from + (i))
#define TO(i) (to + (i))
#endif

#define NEXT(n, from_step, to_step)          \
  {                                          \
    const int at = REMAINDER(rest, n);       \
    rest /= n;                               \
    from += at * from_step;                  \
    to += at * to_step;                      \
  }
#define LAST(from_step, to_step) \
  {                              \
    from += rest * from_step;    \
    to += rest * to_step;        \
  }

kernel void strided_copy(IN(x), OUT(y), const int count, const int rows, const int n0, const int n1, const int n2, const int n3,
                         const int n4, const int x0, const int x1, const int x2, const int x3, const int x4, const int x5,
                         const int y0, const int y1, const int y2, const int y3, const int y4, const int y5) {
#ifdef BLOCKS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / (n0 * n1 * n2));
  for (int block = first; block < last; ++block) {
    int from = 0, to = 0, rest = block;
#elif defined(ROWS)
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / LENGTH);
  for (int row = first; row < last; ++row) {
    int from = 0, to = 0, rest = row;
#elif defined(LINEAR)
  {
    int from = 0, to = 0, rest = (int)get_global_id(0);
    if (rest >= count) return;
    NEXT(n0, x0, y0)
#else
  {
    const int inner = (int)get_global_id(0);
    int from = inner * x0, to = inner * y0, rest = (int)get_global_id(1);
    if (inner >= n0) return;
#endif
#if RANK > 2 && !defined(BLOCKS)
    NEXT(n1, x1, y1)
#endif
#if RANK > 3 && !defined(BLOCKS)
    NEXT(n2, x2, y2)
#endif
#if RANK > 4
    NEXT(n3, x3, y3)
#endif
#if RANK > 5
    NEXT(n4, x4, y4)
#endif
#if RANK == 2
    LAST(x1, y1)
#elif RANK == 3
    LAST(x2, y2)
#elif RANK == 4
    LAST(x3, y3)
#elif RANK == 5
    LAST(x4, y4)
#elif RANK == 6
    LAST(x5, y5)
#endif
#ifdef BLOCKS
    for (int k = 0; k < n2; ++k)
      for (int j = 0; j < n1; ++j)
        for (int i = 0; i < n0; ++i) STORE(y, to + k * y2 + j * y1 + i * y0, LOAD(x, from + k * x2 + j * x1 + i * x0));
#elif defined(ROWS)
    for (int i = 0; i < LENGTH; ++i) STORE(y, TO(i), LOAD(x, FROM(i)));
#else
    STORE(y, to, LOAD(x, from));
#endif
  }
}
