// Sums and maxima of the items of a group of GROUP, for each number of neighbours that share one: lib/cl/sub_groups.cpp compares.
#include "group.clh"

// y: for 1, 2, 4, ... neighbours the items' sums, then their maxima.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sub_groups_probe(global const float *x, global float *y) {
  local float scratch[GROUP];
  const int item = (int)get_local_id(0);
  for (int threads = 1; threads <= GROUP; threads *= 2, y += 2 * GROUP) {
    y[item] = clnet_group_sum(scratch, x[item], threads);
    y[GROUP + item] = clnet_group_max(scratch, x[item], threads);
  }
}
