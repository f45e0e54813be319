// x {outer, extent, inner} with `length` of its middle replaced from `start` on; what would lie outside is left out. In place, y holds x.
// ROWS: a work-item makes `rows` rows along the last dimension.
#include "clnet.clh"

#ifdef START_KNOWN
#define START_PARAMETER SCALAR(start)
#define START start
#else
#define START_PARAMETER IN(start)
#define START LOAD(start, 0)
#endif

kernel void slice_update(const int count, const int rows, IN_SHARED(x), OUT_SHARED(y), IN(value), START_PARAMETER, const int extent,
                         const int length, const int inner) {
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / inner);
  for (int row = first; row < last; ++row) {
    const long place = (long)REMAINDER(row, extent) - (long)START;
    const int to = row * inner;
    if (place >= 0 && place < (long)length) {
      const int from = (row / extent * length + (int)place) * inner;
      for (int i = 0; i < inner; ++i) STORE(y, to + i, LOAD(value, from + i));
    } else {
      for (int i = 0; i < inner; ++i) STORE(y, to + i, LOAD(x, to + i));
    }
  }
#else
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int row = i / inner, outer = row / extent;
  const long place = (long)REMAINDER(row, extent) - (long)START;
  if (place >= 0 && place < (long)length)
    STORE(y, i, LOAD(value, (outer * length + (int)place) * inner + REMAINDER(i, inner)));
  else
    STORE(y, i, LOAD(x, i));
#endif
}

// `count` are the elements of value.
kernel void slice_update_in_place(const int count, const int rows, INOUT(y), IN(value), START_PARAMETER, const int extent,
                                  const int length, const int inner) {
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / inner);
  for (int row = first; row < last; ++row) {
    const long place = (long)REMAINDER(row, length) + (long)START;
    if (place < 0 || place >= (long)extent) continue;
    const int from = row * inner, to = (row / length * extent + (int)place) * inner;
    for (int i = 0; i < inner; ++i) STORE(y, to + i, LOAD(value, from + i));
  }
#else
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int row = i / inner;
  const long place = (long)REMAINDER(row, length) + (long)START;
  if (place >= 0 && place < (long)extent)
    STORE(y, (row / length * extent + (int)place) * inner + REMAINDER(i, inner), LOAD(value, i));
#endif
}
