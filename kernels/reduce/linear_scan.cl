// y[i] = a[i] y[i - 1] + b[i], one line along the axis per work-item: from step `begin` to `end`, in a launch behind those of the steps
// before.
#include "clnet.clh"

kernel void linear_scan(IN(a), IN(b), OUT(y), const int lines, const int length, const int inner, const int backwards,
                        const int begin, const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * length * inner + REMAINDER(line, inner);
  const int step = backwards ? -inner : inner;
  int i = first + (backwards ? length - 1 - begin : begin) * inner;
#ifdef WHOLE
  long value = 0;
#else
  float value = 0;
#endif
  int at = begin;
  if (begin > 0) {
    value = LOAD(y, i - step);
  } else {
    // The first a is read by nobody.
    value = LOAD(b, i);
    STORE(y, i, value);
    ++at, i += step;
  }
  for (; at < end; ++at, i += step) {
    value = LOAD(a, i) * value + LOAD(b, i);
    STORE(y, i, value);
  }
}
