// `threads` neighbours share a row; with threads 1, one work-item does all of it: the reference solver. ONCE: the row fits into the
// registers of the neighbours, and is loaded once.
#include "layer_norm.clh"
#include "epilogue.clh"
#include "prologue.clh"
#if GROUP
#include "moments.clh"
#define ELEMENT(i) LOAD(x, i)
#define SCRATCH local float scratch[GROUP];
#define TOTAL(value) clnet_group_sum(scratch, value, threads)
#define ROW ((int)get_group_id(0) * (GROUP / threads) + (int)get_local_id(0) / threads)
#define LANE ((int)get_local_id(0) & (threads - 1))
// For each of a work-item's elements, i, which is in its registers k.
#define FOR_FEW                                                                                          \
  _Pragma("unroll") for (int k = 0, i = lane; k < MOMENTS_AT_ONCE; ++k, i += threads) if (i < count)
#else
#define SCRATCH
#define TOTAL(value) (value)
#define ROW ((int)get_global_id(0))
#define LANE 0
#endif

#if BACKWARD
kernel void layer_norm_backward_rows(IN(x), IN(g), IN(mean), IN(rstd), WEIGHT_PARAMETER OUT(dx), const int rows, const int length,
                                     const int threads PROLOGUE_PARAMETERS) {
  SCRATCH
  const int row = ROW, lane = LANE, first = row * length, count = row < rows ? length : 0;
  const float center = row < rows ? LOAD(mean, row) : 0.0f, scale = row < rows ? LOAD(rstd, row) : 0.0f;
  float sum = 0, product = 0;
#if ONCE
  float h[MOMENTS_AT_ONCE], deviation[MOMENTS_AT_ONCE];
  FOR_FEW {
    h[k] = LOAD(g, first + i) * WEIGHT(i);
    deviation[k] = LOAD(x, first + i) - center;
    sum += h[k];
    product += h[k] * deviation[k];
  }
#else
  for (int block = 0; block < count; block = BLOCK_END(block, CLNET_BLOCK * threads, count)) {
    const int end = BLOCK_END(block, CLNET_BLOCK * threads, count);
    float part = 0, product_part = 0;
    for (int i = block + lane; i < end; i += threads) {
      const float h = LOAD(g, first + i) * WEIGHT(i);
      part += h;
      product_part += h * (LOAD(x, first + i) - center);
    }
    sum += part;
    product += product_part;
  }
#endif
  sum = TOTAL(sum) / length;
  product = TOTAL(product) * scale * scale / length;
#if ONCE
  FOR_FEW STORE(dx, first + i, scale * (h[k] - sum - deviation[k] * product));
#else
  for (int i = lane; i < count; i += threads)
    STORE(dx, first + i, scale * (LOAD(g, first + i) * WEIGHT(i) - sum - (LOAD(x, first + i) - center) * product));
#endif
}
#else
kernel void layer_norm_rows(IN(x), WEIGHT_PARAMETER BIAS_PARAMETER OUT(y), OUT(mean), OUT(rstd), const int rows, const int length,
                            const int threads, const float eps PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  SCRATCH
  const int row = ROW, lane = LANE, first = row * length, count = row < rows ? length : 0;
#if ONCE
  float few[MOMENTS_AT_ONCE], sum = 0, around = 0;
  FOR_FEW sum += few[k] = LOAD(x, first + i);
  const float center = TOTAL(sum / length);
  FOR_FEW around += (few[k] - center) * (few[k] - center);
  const float squares = TOTAL(around);
#elif GROUP
  int seen = 0;
  float center = 0, squares = 0;
  for (int left = count - lane; left > 0; left -= MOMENTS_AT_ONCE * threads)
    ADD_MOMENTS(seen, center, squares, first + count - left, left, threads, ELEMENT);
  GROUP_MOMENTS(scratch, threads, length, seen, center, squares);
#else
  float sum = 0, squares = 0;
  for (int block = 0; block < count; block = BLOCK_END(block, CLNET_BLOCK * threads, count)) {
    const int end = BLOCK_END(block, CLNET_BLOCK * threads, count);
    float part = 0;
    for (int i = block + lane; i < end; i += threads) part += LOAD(x, first + i);
    sum += part;
  }
  const float center = sum / length;
  for (int block = 0; block < count; block = BLOCK_END(block, CLNET_BLOCK * threads, count)) {
    const int end = BLOCK_END(block, CLNET_BLOCK * threads, count);
    float part = 0;
    for (int i = block + lane; i < end; i += threads) {
      const float deviation = LOAD(x, first + i) - center;
      part += deviation * deviation;
    }
    squares += part;
  }
#endif
  const float scale = 1.0f / sqrt(squares / length + eps);
#if ONCE
  FOR_FEW STORE(y, first + i, EPILOGUE((few[k] - center) * scale * WEIGHT(i) + BIAS(i), first + i, i));
#else
  for (int i = lane; i < count; i += threads)
    STORE(y, first + i, EPILOGUE((LOAD(x, first + i) - center) * scale * WEIGHT(i) + BIAS(i), first + i, i));
#endif
  if (lane == 0 && row < rows) {
    STORE(mean, row, center);
    STORE(rstd, row, scale);
  }
}
#endif
