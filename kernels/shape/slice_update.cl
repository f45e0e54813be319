// x {outer, extent, inner} with `length` of its middle replaced from `start` on; what would lie outside is left out.
#include "clnet.clh"

#ifdef START_KNOWN
#define START_PARAMETER SCALAR(start)
#define START start
#else
#define START_PARAMETER IN(start)
#define START LOAD(start, 0)
#endif

kernel void slice_update(IN(x), IN(value), START_PARAMETER, OUT(y), const int count, const int extent, const int length,
                         const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int row = i / inner, outer = row / extent;
  const long place = (long)REMAINDER(row, extent) - (long)START;
  if (place >= 0 && place < (long)length)
    STORE(y, i, LOAD(value, (outer * length + (int)place) * inner + REMAINDER(i, inner)));
  else
    STORE(y, i, LOAD(x, i));
}
