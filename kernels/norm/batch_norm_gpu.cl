// One chunk of a channel per work-group. LANES above 1, a divisor of spatial and chunk: so many elements are loaded as one.
#include "batch_norm.clh"
#include "moments.clh"
#if LANES > 1
#include "lanes.clh"
#define FEW(k) (few[k] - shift)
#endif

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
#if LANES > 1
  if (ALIGNED(x_offset | g_offset)) {
    for (int left = end - begin - (int)get_local_id(0) * LANES; left > 0; left -= GROUP * LANES) {
      const int at = AT(end - left);
      float values[LANES], gradients[LANES];
      LOAD_LANES(x, at, values);
      LOAD_LANES(g, at, gradients);
#pragma unroll
      for (int k = 0; k < LANES; ++k) {
        a += gradients[k];
        b += gradients[k] * (values[k] - center);
      }
    }
  } else
#endif
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
#if LANES > 1
  if (ALIGNED(x_offset)) {
    for (int left = end - begin - (int)get_local_id(0) * LANES; left > 0; left -= MOMENTS_AT_ONCE * GROUP) {
      float few[MOMENTS_AT_ONCE];
#pragma unroll
      for (int k = 0; k < MOMENTS_AT_ONCE; k += LANES)
        if (k * GROUP < left) LOAD_LANES(x, AT(end - left + k * GROUP), few + k);
      const int taken = min(MOMENTS_AT_ONCE, ((left - 1) / (GROUP * LANES) + 1) * LANES);
      ADD_MOMENTS(count, a, b, 0, taken, 1, FEW);
    }
  } else
#endif
  for (int left = mine; left > 0; left -= MOMENTS_AT_ONCE * GROUP) ADD_MOMENTS(count, a, b, end - left, left, GROUP, RELATIVE);
  GROUP_MOMENTS(scratch, GROUP, end - begin, count, a, b);
#endif
  if (get_local_id(0) != 0) return;
  STORE(first, part, a);
  STORE(second, part, b);
}
