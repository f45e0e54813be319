// Forward where positions is 1: explicit vectors along the row.
#include "cross_entropy.clh"
#include "vector.clh"
#include "prologue.clh"

kernel void cross_entropy_cpu(IN(x), IN(target), WEIGHT_PARAMETER OUT(loss), OUT(counted), OUT(peak), OUT(logs), const int rows,
                              const int classes, const int rows_per_item, const int ignore_index, const float smoothing
                              PROLOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = classes / VW * VW, rest = classes - whole;
  const long ignore = ignore_index;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * classes;
    VFLOAT tail = (VFLOAT)(-INFINITY);
    if (rest) VLOAD_PART(tail, x, first + whole, rest, -INFINITY);
    VFLOAT lanes = tail;
    for (int c = 0; c < whole; c += VW) lanes = fmax(lanes, VLOAD(x, first + c));
    const float most = clnet_lanes_max(lanes);
    VFLOAT sum = rest ? exp(tail - most) : (VFLOAT)(0.0f);
    for (int block = 0; block < whole; block = BLOCK_END(block, CLNET_BLOCK * VW, whole)) {
      const int end = BLOCK_END(block, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int c = block; c < end; c += VW) part += exp(VLOAD(x, first + c) - most);
      sum += part;
    }
    const float logsum = log(clnet_lanes_sum(sum));
    float plain = 0;
    if (smoothing != 0.0f)
      for (int c = 0; c < classes; ++c) plain += WEIGHT(c) * (most - LOAD(x, first + c) + logsum);
    const long chosen = LOAD(target, row);
    const float picked = chosen >= 0 && chosen < classes ? LOAD(x, first + (int)chosen) : NAN;
    STORE_ROW(row, chosen, most, logsum, picked, plain);
  }
}
