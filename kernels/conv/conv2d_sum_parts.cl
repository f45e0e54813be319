// y = the sum of `parts` arrays of y's size that lie one after the other.
#include "clnet.clh"

kernel void conv2d_sum_parts(IN(x), OUT(y), const int total, const int parts) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += LOAD(x, part * total + i);
  STORE(y, i, sum);
}
