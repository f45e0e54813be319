// One chunk of a channel per work-group.
#include "batch_norm.clh"
#include "group.clh"

#define FOR_MINE for (int p = begin + (int)get_local_id(0); p < end; p += GROUP)
#define AT ((p / spatial * channels + c) * spatial + REMAINDER(p, spatial))

kernel void batch_norm_gpu(IN(x), EXTRA_IN OUT(first), OUT(second), const int n, const int channels, const int spatial,
                           const int chunk, const int chunks) {
  local float scratch[GROUP];
  const int part = (int)get_group_id(0), c = part / chunks, begin = REMAINDER(part, chunks) * chunk, end = BLOCK_END(begin, chunk, n * spatial);
  float a = 0, b = 0;
#if BACKWARD
  const float center = LOAD(mean, c);
  FOR_MINE {
    const float gradient = LOAD(g, AT);
    a += gradient;
    b += gradient * (LOAD(x, AT) - center);
  }
  a = clnet_group_sum(scratch, a, GROUP);
#else
  const float shift = LOAD(x, c * spatial);
  FOR_MINE a += LOAD(x, AT) - shift;
  a = clnet_group_sum(scratch, a, GROUP) / (end - begin);
  FOR_MINE {
    const float deviation = LOAD(x, AT) - shift - a;
    b += deviation * deviation;
  }
#endif
  b = clnet_group_sum(scratch, b, GROUP);
  if (get_local_id(0) != 0) return;
  STORE(first, part, a);
  STORE(second, part, b);
}
