// y[r, i] = how many of bounds[r, 0 .. n - 1], which ascend, are not above values[r, i], but n - 1 at most.
#include "clnet.clh"

kernel void place_among(IN(bounds), IN(values), OUT(y), const int all, const int count, const int n) {
  const int at = (int)get_global_id(0);
  if (at >= all) return;
  const int first = at / count * n;
  const float value = LOAD(values, at);
  int low = 0, high = n - 1;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int below = LOAD(bounds, first + middle) <= value;
    low = below ? middle + 1 : low;
    high = below ? high : middle;
  }
  STORE(y, at, low);
}
