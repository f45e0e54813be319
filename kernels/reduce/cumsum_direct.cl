// One line along the axis per work-item.
#include "clnet.clh"

kernel void cumsum_direct(IN(x), OUT(y), const int lines, const int length, const int inner, const int backwards) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * length * inner + REMAINDER(line, inner);
  float sum = 0;
  for (int step = 0; step < length; ++step) {
    const int i = first + (backwards ? length - 1 - step : step) * inner;
    sum += LOAD(x, i);
    STORE(y, i, sum);
  }
}
