// Forward where positions is 1: `threads` neighbours share a row.
#include "cross_entropy.clh"
#include "group.clh"
#include "prologue.clh"

kernel void cross_entropy_gpu(IN(x), IN(target), WEIGHT_PARAMETER OUT(loss), OUT(counted), OUT(peak), OUT(logs), const int rows,
                              const int classes, const int threads, const int ignore_index, const float smoothing
                              PROLOGUE_PARAMETERS) {
  local float scratch[GROUP];
  const int item = (int)get_local_id(0), lane = item & (threads - 1);
  const int row = (int)get_group_id(0) * (GROUP / threads) + item / threads;
  const int first = row * classes, count = row < rows ? classes : 0;
  float most = -INFINITY, sum = 0, plain = 0;
  for (int c = lane; c < count; c += threads) most = fmax(most, LOAD(x, first + c));
  most = clnet_group_max(scratch, most, threads);
  for (int block = 0; block < count; block = BLOCK_END(block, CLNET_BLOCK * threads, count)) {
    const int end = BLOCK_END(block, CLNET_BLOCK * threads, count);
    float part = 0;
    for (int c = block + lane; c < end; c += threads) part += exp(LOAD(x, first + c) - most);
    sum += part;
  }
  const float logsum = log(clnet_group_sum(scratch, sum, threads));
  if (smoothing != 0.0f) {
    for (int c = lane; c < count; c += threads) plain += WEIGHT(c) * (most - LOAD(x, first + c) + logsum);
    plain = clnet_group_sum(scratch, plain, threads);
  }
  if (lane != 0 || row >= rows) return;
  const long chosen = LOAD(target, row), ignore = ignore_index;
  const float picked = chosen >= 0 && chosen < classes ? LOAD(x, first + (int)chosen) : NAN;
  STORE_ROW(row, chosen, most, logsum, picked, plain);
}
