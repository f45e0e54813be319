// How many elements of a sorted line come before each value; RIGHT: before or equal to it. Each line is for `count` values. NaN is larger
// than any number, as in argsort.
#include "clnet.clh"

#define SMALLER(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#ifdef RIGHT
#define BEFORE(element, value) (!SMALLER(value, element))
#else
#define BEFORE(element, value) SMALLER(element, value)
#endif

kernel void searchsorted(IN(sorted), IN(values), OUT(y), const int all, const int count, const int extent) {
  const int at = (int)get_global_id(0);
  if (at >= all) return;
  const int first = at / count * extent;
  const VALUE(values) value = LOAD(values, at);
  int low = 0, high = extent;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const VALUE(sorted) element = LOAD(sorted, first + middle);
    const int before = BEFORE(element, value);
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  STORE(y, at, low);
}
