// log(sum(exp(x))) of the elements so far, from the largest one and the sum of the others beside it. One line along the axis per
// work-item: from step `begin` to `end`, in a launch behind those of the steps before.
#include "clnet.clh"

kernel void logcumsumexp(IN(x), OUT(y), const int lines, const int length, const int inner, const int begin, const int end) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * length * inner + REMAINDER(line, inner);
  float most = -INFINITY, sum = 0, lost = 0;
  if (begin > 0) {
    most = LOAD(y, first + (begin - 1) * inner);
    sum = most > -INFINITY ? 1.0f : 0.0f;
  }
  for (int step = begin; step < end; ++step) {
    const float value = LOAD(x, first + step * inner);
    if (value > most) {
      const float scale = exp(most - value);
      sum *= scale;
      lost *= scale;
      most = value;
    }
    // Equal infinities are no distance.
    ADD_BLOCK(float, sum, lost, value == most ? (value > -INFINITY ? 1.0f : 0.0f) : exp(value - most));
    STORE(y, first + step * inner, sum == 0.0f ? -INFINITY : most + log(sum));
  }
}
