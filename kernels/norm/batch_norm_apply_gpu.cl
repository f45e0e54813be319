// Each work-group finishes a channel's sums from its chunks for itself, and applies them to one piece of the channel: a launch less
// than with a kernel in between. The first piece's group stores what is kept of the channel. LANES above 1, a divisor of spatial and piece: so
// many elements are loaded and stored as one.
#include "batch_norm_channel.clh"
#include "group.clh"
#include "epilogue.clh"
#if LANES > 1
#include "lanes.clh"
#endif

#define AT(p) (((p) / spatial * channels + c) * spatial + REMAINDER(p, spatial))

#if BACKWARD
#define EXTRA IN(g), IN(mean), IN(rstd), IN(low), WEIGHT_PARAMETER OUT(dweight), OUT(dbias),
#else
#define EXTRA WEIGHT_PARAMETER BIAS_PARAMETER OUT(mean), OUT(variance), OUT(rstd), OUT(low),
#endif

kernel void batch_norm_apply_gpu(IN(x), IN(first), IN(second), EXTRA OUT(y), const int n, const int channels, const int spatial,
                                 const int chunk, const int chunks, const int piece, const int pieces, const float eps EPILOGUE_PARAMETERS) {
  local float scratch[GROUP];
  const int c = (int)get_group_id(0) / pieces, begin = REMAINDER((int)get_group_id(0), pieces) * piece, elements = n * spatial;
  const int lane = (int)get_local_id(0), end = BLOCK_END(begin, piece, elements);
  const bool keeps = begin == 0 && lane == 0;
#if BACKWARD
  float sum = 0, product = 0;
  for (int i = lane; i < chunks; i += GROUP) {
    sum += LOAD(first, c * chunks + i);
    product += LOAD(second, c * chunks + i);
  }
  sum = clnet_group_sum(scratch, sum, GROUP);
  product = clnet_group_sum(scratch, product, GROUP);
  const float center = LOAD(mean, c), reciprocal = LOAD(rstd, c), lost = LOAD(low, c);
  CHANNEL_FACTORS(c, sum, product, reciprocal, lost, elements)
  if (keeps) {
    STORE(dweight, c, product);
    STORE(dbias, c, sum);
  }
#if LANES > 1
  if (ALIGNED(x_offset | g_offset | y_offset)) {
    for (int left = end - begin - lane * LANES; left > 0; left -= GROUP * LANES) {
      const int at = AT(end - left);
      float values[LANES], gradients[LANES], results[LANES];
      LOAD_LANES(x, at, values);
      LOAD_LANES(g, at, gradients);
#pragma unroll
      for (int k = 0; k < LANES; ++k) {
        const float result = (values[k] - center) * by_x + add + gradients[k] * by_g;
        results[k] = EPILOGUE(result, at + k, c);
      }
      STORE_LANES(y, at, results);
    }
    return;
  }
#endif
  for (int left = end - begin - lane; left > 0; left -= GROUP) {
    const int p = end - left;
    const float result = (LOAD(x, AT(p)) - center) * by_x + add + LOAD(g, AT(p)) * by_g;
    STORE(y, AT(p), EPILOGUE(result, AT(p), c));
  }
#else
  float relative = 0, squares = 0;
  for (int i = lane; i < chunks; i += GROUP) relative += LOAD(first, c * chunks + i) * (CHUNK_ELEMENTS(i) / (float)elements);
  relative = clnet_group_sum(scratch, relative, GROUP);
  for (int i = lane; i < chunks; i += GROUP) {
    const float distance = LOAD(first, c * chunks + i) - relative;
    squares += LOAD(second, c * chunks + i) + CHUNK_ELEMENTS(i) * distance * distance;
  }
  squares = clnet_group_sum(scratch, squares, GROUP);
  const float shift = LOAD(x, c * spatial);
  CHANNEL_FACTORS(c, shift, relative, squares, elements, eps)
  if (keeps) {
    STORE(mean, c, center);
    STORE(variance, c, squares / (elements - 1));
    STORE(rstd, c, reciprocal);
    STORE(low, c, lost);
  }
#if LANES > 1
  if (ALIGNED(x_offset | y_offset)) {
    for (int left = end - begin - lane * LANES; left > 0; left -= GROUP * LANES) {
      const int at = AT(end - left);
      float values[LANES], results[LANES];
      LOAD_LANES(x, at, values);
#pragma unroll
      for (int k = 0; k < LANES; ++k) results[k] = EPILOGUE((values[k] - center) * by_x + add, at + k, c);
      STORE_LANES(y, at, results);
    }
    return;
  }
#endif
  for (int left = end - begin - lane; left > 0; left -= GROUP) {
    const int p = end - left;
    STORE(y, AT(p), EPILOGUE((LOAD(x, AT(p)) - center) * by_x + add, AT(p), c));
  }
#endif
}
