// From the chunks of a channel to its statistics, and to the factors that batch_norm_apply takes; one channel per work-item.
#include "batch_norm_channel.clh"

#if BACKWARD
kernel void batch_norm_finish_backward(IN(first), IN(second), WEIGHT_PARAMETER IN(rstd), IN(low), OUT(dweight), OUT(dbias),
                                       OUT(by_x), OUT(by_g), OUT(constant_), const int channels, const int elements,
                                       const int chunks) {
  const int c = (int)get_global_id(0);
  if (c >= channels) return;
  float sum = 0, product = 0;
  for (int i = 0; i < chunks; ++i) {
    sum += LOAD(first, c * chunks + i);
    product += LOAD(second, c * chunks + i);
  }
  const float reciprocal = LOAD(rstd, c), lost = LOAD(low, c);
  CHANNEL_FACTORS(c, sum, product, reciprocal, lost, elements)
  STORE(dweight, c, product);
  STORE(dbias, c, sum);
  STORE(by_x, c, by_x);
  STORE(by_g, c, by_g);
  STORE(constant_, c, add);
}
#else
// low: what the mean lost when it was rounded to a float.
kernel void batch_norm_finish(IN(x), IN(first), IN(second), WEIGHT_PARAMETER BIAS_PARAMETER OUT(mean), OUT(variance), OUT(rstd),
                              OUT(low), OUT(by_x), OUT(constant_), const int channels, const int spatial, const int elements,
                              const int chunk, const int chunks, const float eps) {
  const int c = (int)get_global_id(0);
  if (c >= channels) return;
  float relative = 0, squares = 0;
  for (int i = 0; i < chunks; ++i) relative += LOAD(first, c * chunks + i) * (CHUNK_ELEMENTS(i) / (float)elements);
  for (int i = 0; i < chunks; ++i) {
    const float distance = LOAD(first, c * chunks + i) - relative;
    squares += LOAD(second, c * chunks + i) + CHUNK_ELEMENTS(i) * distance * distance;
  }
  const float shift = LOAD(x, c * spatial);
  CHANNEL_FACTORS(c, shift, relative, squares, elements, eps)
  STORE(mean, c, center);
  STORE(variance, c, squares / (elements - 1));
  STORE(rstd, c, reciprocal);
  STORE(low, c, lost);
  STORE(by_x, c, by_x);
  STORE(constant_, c, add);
}
#endif
