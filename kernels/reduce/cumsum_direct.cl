// One line along the axis per work-item: its elements from step `begin` to `end`, in a launch behind those of the steps before. `state`
// has the sum up to there and what its additions have lost.
#include "clnet.clh"

kernel void cumsum_direct(IN(x), OUT(y),
#ifdef PARTS
                          INOUT(state),
#endif
                          const int lines, const int length, const int inner, const int backwards, const int begin,
                          const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * length * inner + REMAINDER(line, inner);
#ifdef WHOLE
  long sum = 0, lost = 0;
#else
  float sum = 0, lost = 0;
#endif
#ifdef PARTS
  if (begin > 0) {
    sum = LOAD(state, 2 * line);
    lost = LOAD(state, 2 * line + 1);
  }
#endif
  for (int step = begin; step < end; ++step) {
    const int i = first + (backwards ? length - 1 - step : step) * inner;
#ifdef WHOLE
    sum += LOAD(x, i);
#else
    ADD_BLOCK(float, sum, lost, LOAD(x, i));
#endif
    STORE(y, i, sum);
  }
#ifdef PARTS
  STORE(state, 2 * line, sum);
  STORE(state, 2 * line + 1, lost);
#endif
}
