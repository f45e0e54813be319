// One element of the logits' gradient per work-item.
#include "cross_entropy.clh"

kernel void cross_entropy_backward_direct(IN(x), IN(target), WEIGHT_PARAMETER TOTAL_PARAMETER IN(peak), IN(logs), IN(gradient), OUT(y),
                                          const int elements, const int classes, const int positions, const int ignore_index,
                                          const float smoothing) {
  const int element = (int)get_global_id(0);
  if (element >= elements) return;
  const int c = REMAINDER(element / positions, classes);
  const int row = element / positions / classes * positions + REMAINDER(element, positions);
  const long chosen = LOAD(target, row);
  const bool valid = chosen >= 0 && chosen < classes;
  const float2 factors = row_factors(chosen, ignore_index, classes, valid ? WEIGHT((int)chosen) : 0.0f, TOTAL, smoothing,
                                     LOAD(gradient, row));
  float result = factors.x * exp(LOAD(x, element) - LOAD(peak, row) - LOAD(logs, row));
  if (c == chosen) result -= factors.y;
  if (smoothing != 0.0f && chosen != ignore_index) result -= LOAD(gradient, row) * smoothing / classes * WEIGHT(c);
  STORE(y, element, chosen == ignore_index ? 0.0f : result);
}
