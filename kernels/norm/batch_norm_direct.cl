// One chunk of a channel per work-item, with compensated sums.
#include "batch_norm.clh"

#define ADD(total, lost, value)          \
  do {                                   \
    const float term_ = (value) - lost;  \
    const float next_ = total + term_;   \
    lost = (next_ - total) - term_;      \
    total = next_;                       \
  } while (0)

kernel void batch_norm_direct(IN(x), EXTRA_IN OUT(first), OUT(second), const int n, const int channels, const int spatial,
                              const int chunk, const int chunks) {
  const int part = (int)get_global_id(0), c = part / chunks;
  if (c >= channels) return;
  const int begin = REMAINDER(part, chunks) * chunk, end = BLOCK_END(begin, chunk, n * spatial);
  float a = 0, a_lost = 0, b = 0, b_lost = 0;
#if BACKWARD
  const float center = LOAD(mean, c);
  FOR_SEGMENTS(begin, end, c) {
    for (int i = at; i < at + count; ++i) {
      ADD(a, a_lost, LOAD(g, i));
      ADD(b, b_lost, LOAD(g, i) * (LOAD(x, i) - center));
    }
  }
#else
  const float shift = LOAD(x, c * spatial);
  FOR_SEGMENTS(begin, end, c) {
    for (int i = at; i < at + count; ++i) ADD(a, a_lost, LOAD(x, i) - shift);
  }
  a /= end - begin;
  FOR_SEGMENTS(begin, end, c) {
    for (int i = at; i < at + count; ++i) ADD(b, b_lost, (LOAD(x, i) - shift - a) * (LOAD(x, i) - shift - a));
  }
#endif
  STORE(first, part, a);
  STORE(second, part, b);
}
