// The gradients of layer normalisation's weight and bias, as sums over chunks of rows: by_weight[chunks][length] of g (x - mean) rstd
// and by_bias[chunks][length] of g. VW above 1: a work-item takes `piece` columns of a chunk, all of them where there are
// rows enough, and keeps its sums in memory, which is the first-level cache's, to read rows as they lie; else one column, as its
// neighbours take the next ones.
#include "layer_norm.clh"
#include "vector.clh"

#if BIASED
#define BY_BIAS_PARAMETER OUT(by_bias),
#define PUT_BIAS(text) text
#else
#define BY_BIAS_PARAMETER
#define PUT_BIAS(text)
#endif

#if VW > 1

// Sums of `count` rows from `row` on are added to those before, or begin them.
#define ADD_ROWS(count)                                                                                                 \
  {                                                                                                                     \
    float center[count], scale[count];                                                                                  \
    _Pragma("unroll") for (int k = 0; k < count; ++k) center[k] = LOAD(mean, row + k), scale[k] = LOAD(rstd, row + k);  \
    int i = begin;                                                                                                      \
    for (; i < whole; i += VW) {                                                                                        \
      VFLOAT sum = (VFLOAT)(0.0f), product = sum;                                                                       \
      _Pragma("unroll") for (int k = 0; k < count; ++k) {                                                               \
        const VFLOAT slope = VLOAD(g, (row + k) * length + i);                                                          \
        product += slope * ((VLOAD(x, (row + k) * length + i) - center[k]) * scale[k]);                                 \
        sum += slope;                                                                                                   \
      }                                                                                                                 \
      VSTORE(by_weight, to + i, row == first_row ? product : VLOAD(by_weight, to + i) + product);                       \
      PUT_BIAS(VSTORE(by_bias, to + i, row == first_row ? sum : VLOAD(by_bias, to + i) + sum);)                         \
    }                                                                                                                   \
    SELDOM for (; i < end; ++i) {                                                                                       \
      float sum = 0, product = 0;                                                                                       \
      for (int k = 0; k < count; ++k) {                                                                                 \
        const float slope = LOAD(g, (row + k) * length + i);                                                            \
        product += slope * ((LOAD(x, (row + k) * length + i) - center[k]) * scale[k]);                                  \
        sum += slope;                                                                                                   \
      }                                                                                                                 \
      STORE(by_weight, to + i, row == first_row ? product : LOAD(by_weight, to + i) + product);                         \
      PUT_BIAS(STORE(by_bias, to + i, row == first_row ? sum : LOAD(by_bias, to + i) + sum);)                           \
    }                                                                                                                   \
  }
#define AT_ONCE 8

kernel void layer_norm_parameters(IN(x), IN(g), IN(mean), IN(rstd), OUT(by_weight), BY_BIAS_PARAMETER const int rows, const int length,
                                  const int chunk, const int piece) {
  const int item = (int)get_global_id(0), first_row = item * chunk, last_row = BLOCK_END(first_row, chunk, rows);
  const int begin = (int)get_global_id(1) * piece, end = BLOCK_END(begin, piece, length);
  const int to = item * length, whole = begin + (end - begin) / VW * VW;
  int row = first_row;
  for (; row + AT_ONCE <= last_row; row += AT_ONCE) ADD_ROWS(AT_ONCE)
  for (; row < last_row; ++row) ADD_ROWS(1)
}

#else

kernel void layer_norm_parameters(IN(x), IN(g), IN(mean), IN(rstd), OUT(by_weight), BY_BIAS_PARAMETER const int rows, const int length,
                                  const int chunk, const int piece) {
  const int item = (int)get_global_id(0), part = item / length, i = REMAINDER(item, length), first_row = part * chunk;
  if (first_row >= rows) return;
  const int last_row = BLOCK_END(first_row, chunk, rows);
  float sum = 0, product = 0;
  for (int block = first_row; block < last_row; block = BLOCK_END(block, CLNET_BLOCK, last_row)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, last_row);
    float sum_part = 0, product_part = 0;
    for (int row = block; row < end; ++row) {
      const float slope = LOAD(g, row * length + i);
      product_part += slope * ((LOAD(x, row * length + i) - LOAD(mean, row)) * LOAD(rstd, row));
      sum_part += slope;
    }
    sum += sum_part;
    product += product_part;
  }
  STORE(by_weight, item, product);
  PUT_BIAS(STORE(by_bias, item, sum);)
}

#endif
