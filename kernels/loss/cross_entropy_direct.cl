// Forward: one row per work-item.
#include "cross_entropy.clh"
#include "prologue.clh"

kernel void cross_entropy_direct(IN(x), IN(target), WEIGHT_PARAMETER OUT(loss), OUT(counted), OUT(peak), OUT(logs), const int rows,
                                 const int classes, const int positions, const int ignore_index, const float smoothing
                                 PROLOGUE_PARAMETERS) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  const int first = row / positions * classes * positions + REMAINDER(row, positions);
  const long chosen = LOAD(target, row), ignore = ignore_index;
  float most = -INFINITY, sum = 0, plain = 0;
  for (int c = 0; c < classes; ++c) most = fmax(most, LOAD(x, first + c * positions));
  for (int block = 0; block < classes; block = BLOCK_END(block, CLNET_BLOCK, classes)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, classes);
    float part = 0;
    for (int c = block; c < end; ++c) part += exp(LOAD(x, first + c * positions) - most);
    sum += part;
  }
  const float logsum = log(sum);
  if (smoothing != 0.0f)
    for (int c = 0; c < classes; ++c) plain += WEIGHT(c) * (most - LOAD(x, first + c * positions) + logsum);
  const float picked = chosen >= 0 && chosen < classes ? LOAD(x, first + (int)chosen * positions) : NAN;
  STORE_ROW(row, chosen, most, logsum, picked, plain);
}
