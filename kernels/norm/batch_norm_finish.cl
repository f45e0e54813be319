// From the chunks of a channel to its statistics, and to the factors that batch_norm_apply takes; one channel per work-item.
#include "clnet.clh"

#if WEIGHTED
#define WEIGHT_PARAMETER IN(weight),
#define WEIGHT(c) LOAD(weight, c)
#else
#define WEIGHT_PARAMETER
#define WEIGHT(c) 1.0f
#endif
#if BIASED
#define BIAS_PARAMETER IN(bias),
#define BIAS(c) LOAD(bias, c)
#else
#define BIAS_PARAMETER
#define BIAS(c) 0.0f
#endif

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
  product = (product - LOAD(low, c) * sum) * LOAD(rstd, c);
  STORE(dweight, c, product);
  STORE(dbias, c, sum);
  const float scale = WEIGHT(c) * LOAD(rstd, c), slope = -scale * LOAD(rstd, c) * product / elements;
  STORE(by_x, c, slope);
  STORE(by_g, c, scale);
  STORE(constant_, c, -scale * sum / elements - slope * LOAD(low, c));
}
#else
// low: what the mean lost when it was rounded to a float.
kernel void batch_norm_finish(IN(x), IN(first), IN(second), WEIGHT_PARAMETER BIAS_PARAMETER OUT(mean), OUT(variance), OUT(rstd),
                              OUT(low), OUT(by_x), OUT(constant_), const int channels, const int spatial, const int elements,
                              const int chunk, const int chunks, const float eps) {
  const int c = (int)get_global_id(0);
  if (c >= channels) return;
  float relative = 0, squares = 0;
  for (int i = 0; i < chunks; ++i)
    relative += LOAD(first, c * chunks + i) * ((float)min(chunk, elements - i * chunk) / (float)elements);
  for (int i = 0; i < chunks; ++i) {
    const float distance = LOAD(first, c * chunks + i) - relative;
    squares += LOAD(second, c * chunks + i) + (float)min(chunk, elements - i * chunk) * distance * distance;
  }
  const float shift = LOAD(x, c * spatial), center = shift + relative, lost = relative - (center - shift);
  const float reciprocal = 1.0f / sqrt(squares / elements + eps), scale = reciprocal * WEIGHT(c);
  STORE(mean, c, center);
  STORE(variance, c, squares / (elements - 1));
  STORE(rstd, c, reciprocal);
  STORE(low, c, lost);
  STORE(by_x, c, scale);
  STORE(constant_, c, BIAS(c) - lost * scale);
}
#endif
