// Whole rows per work-item, with explicit vectors; positions is 1.
#include "cross_entropy.clh"
#include "vector.clh"

kernel void cross_entropy_backward_cpu(IN(x), IN(target), WEIGHT_PARAMETER TOTAL_PARAMETER IN(peak), IN(logs), IN(gradient), OUT(y),
                                       const int rows, const int classes, const int rows_per_item, const int ignore_index,
                                       const float smoothing) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = classes / VW * VW, rest = classes - whole;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * classes;
    const long chosen = LOAD(target, row);
    const bool valid = chosen >= 0 && chosen < classes;
    const float2 factors = row_factors(chosen, ignore_index, classes, valid ? WEIGHT((int)chosen) : 0.0f, TOTAL, smoothing,
                                       LOAD(gradient, row));
    if (chosen == ignore_index) {
      for (int c = 0; c < classes; ++c) STORE(y, first + c, 0.0f);
      continue;
    }
    const float most = LOAD(peak, row), logsum = LOAD(logs, row);
    const float share = LOAD(gradient, row) * smoothing / classes;
    for (int c = 0; c < whole; c += VW) {
      VFLOAT result = factors.x * exp(VLOAD(x, first + c) - most - logsum);
#if WEIGHTED
      if (smoothing != 0.0f) result -= share * VLOAD(weight, c);
#else
      result -= share;
#endif
      VSTORE(y, first + c, result);
    }
    if (rest) {
      VFLOAT tail;
      VLOAD_PART(tail, x, first + whole, rest, 0.0f);
      tail = factors.x * exp(tail - most - logsum);
      VSTORE_PART(y, first + whole, rest, tail);
      if (smoothing != 0.0f)
        for (int c = whole; c < classes; ++c) STORE(y, first + c, LOAD(y, first + c) - share * WEIGHT(c));
    }
    if (valid) {
      const float p = exp(LOAD(x, first + (int)chosen) - most - logsum);
      STORE(y, first + (int)chosen, factors.x * p - factors.y - share * WEIGHT((int)chosen));
    }
  }
}
