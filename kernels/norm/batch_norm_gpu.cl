// One chunk of a channel per work-group.
#include "batch_norm.clh"
#include "moments.clh"

#define AT(p) (((p) / spatial * channels + c) * spatial + REMAINDER(p, spatial))
#define RELATIVE(p) (LOAD(x, AT(p)) - shift)

kernel void batch_norm_gpu(IN(x), EXTRA_IN OUT(first), OUT(second), const int n, const int channels, const int spatial,
                           const int chunk, const int chunks) {
  local float scratch[GROUP];
  const int part = (int)get_group_id(0), c = part / chunks, begin = REMAINDER(part, chunks) * chunk, end = BLOCK_END(begin, chunk, n * spatial);
  const int mine = end - begin - (int)get_local_id(0);
  float a = 0, b = 0;
#if BACKWARD
  const float center = LOAD(mean, c);
  for (int left = mine; left > 0; left -= GROUP) {
    const int p = end - left;
    const float gradient = LOAD(g, AT(p));
    a += gradient;
    b += gradient * (LOAD(x, AT(p)) - center);
  }
  a = clnet_group_sum(scratch, a, GROUP);
  b = clnet_group_sum(scratch, b, GROUP);
#else
  const float shift = LOAD(x, c * spatial);
  int count = 0;
  for (int left = mine; left > 0; left -= MOMENTS_AT_ONCE * GROUP) ADD_MOMENTS(count, a, b, end - left, left, GROUP, RELATIVE);
  GROUP_MOMENTS(scratch, GROUP, end - begin, count, a, b);
#endif
  if (get_local_id(0) != 0) return;
  STORE(first, part, a);
  STORE(second, part, b);
}
