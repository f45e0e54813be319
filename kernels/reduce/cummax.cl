// The index of the largest (LEAST: smallest) element so far, the last one of equals; NaN is beyond all numbers. One line along the axis
// per work-item: from step `begin` to `end`, in a launch behind those of the steps before.
#include "clnet.clh"

#ifdef LEAST
#define REACHES(a, b) ((a) <= (b))
#else
#define REACHES(a, b) ((a) >= (b))
#endif

kernel void cummax(IN(x), OUT(y), const int lines, const int length, const int inner, const int begin, const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * length * inner + REMAINDER(line, inner);
  int at = 0;
  if (begin > 0) at = (int)LOAD(y, first + (begin - 1) * inner);
  VALUE(x) best = LOAD(x, first + at * inner);
  for (int step = begin; step < end; ++step) {
    const VALUE(x) value = LOAD(x, first + step * inner);
    const int later = value != value || REACHES(value, best);
    best = later ? value : best;
    at = later ? step : at;
    STORE(y, first + step * inner, at);
  }
}
