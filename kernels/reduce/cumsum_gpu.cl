// Running sums, a work-group for each line: tiles of EACH elements for every item, one after the other.
#include "clnet.clh"

#define TILE (GROUP * EACH)
// An element more behind each 32, so that what neighbours read EACH apart lies in different banks.
#define PLACE(i) ((i) + (i) / 32)

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void cumsum_gpu(IN(x), OUT(y), const int length, const int inner,
                                                                          const int backwards) {
  local float tile[PLACE(TILE)], sums[GROUP], losses[GROUP];
  const int item = (int)get_local_id(0), line = (int)(get_global_id(0) / GROUP);
  const int first = line / inner * length * inner + REMAINDER(line, inner);
  float before = 0, lost_before = 0;  // the sum of all tiles before, and what its additions have lost
  for (int begin = 0; begin < length; begin += TILE) {
    // Neighbours load neighbours.
    for (int k = item; k < TILE; k += GROUP) {
      const int step = begin + k;
      tile[PLACE(k)] = step < length ? LOAD(x, first + (backwards ? length - 1 - step : step) * inner) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Each item adds up elements that follow each other,
    float sum = 0, lost = 0;
    for (int k = item * EACH; k < (item + 1) * EACH; ++k) ADD_BLOCK(float, sum, lost, tile[PLACE(k)]);
    sums[item] = sum, losses[item] = lost;
    // gets the sums of 1, 2, 4, ... items before it,
    for (int reach = 1; reach < GROUP; reach *= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      float other = 0, lost_other = 0;
      if (item >= reach) other = sums[item - reach], lost_other = losses[item - reach];
      barrier(CLK_LOCAL_MEM_FENCE);
      ADD_BLOCK(float, other, lost_other, sums[item]);
      sums[item] = other, losses[item] += lost_other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // and goes through its own again from there.
    sum = before, lost = lost_before;
    if (item > 0) {
      ADD_BLOCK(float, sum, lost, sums[item - 1]);
      lost += losses[item - 1];
    }
    for (int k = item * EACH; k < (item + 1) * EACH; ++k) {
      ADD_BLOCK(float, sum, lost, tile[PLACE(k)]);
      tile[PLACE(k)] = sum;
    }
    ADD_BLOCK(float, before, lost_before, sums[GROUP - 1]);
    lost_before += losses[GROUP - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < TILE; k += GROUP) {
      const int step = begin + k;
      if (step < length) STORE(y, first + (backwards ? length - 1 - step : step) * inner, tile[PLACE(k)]);
    }
  }
}
