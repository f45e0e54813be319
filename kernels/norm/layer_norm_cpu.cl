// Whole rows per work-item, with explicit vectors.
#include "layer_norm.clh"
#include "vector.clh"
#include "epilogue.clh"
#include "prologue.clh"

#if BACKWARD
kernel void layer_norm_backward_cpu(IN(x), IN(g), IN(mean), IN(rstd), WEIGHT_PARAMETER OUT(dx), const int rows, const int length,
                                    const int rows_per_item PROLOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = length / VW * VW;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * length;
    const float center = LOAD(mean, row), scale = LOAD(rstd, row);
    VFLOAT sums = (VFLOAT)(0.0f), products = sums;
    float sum = 0, product = 0;
    int i = 0;
    while (i < whole) {
      const int end = BLOCK_END(i, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f), product_part = part;
      for (; i < end; i += VW) {
        const VFLOAT h = VLOAD(g, first + i) * VWEIGHT(i);
        part += h;
        product_part += h * (VLOAD(x, first + i) - center);
      }
      sums += part;
      products += product_part;
    }
    for (; i < length; ++i) {
      const float h = LOAD(g, first + i) * WEIGHT(i);
      sum += h;
      product += h * (LOAD(x, first + i) - center);
    }
    sum = (sum + clnet_lanes_sum(sums)) / length;
    product = (product + clnet_lanes_sum(products)) * scale * scale / length;
    for (i = 0; i < whole; i += VW) {
      const VFLOAT result = scale * (VLOAD(g, first + i) * VWEIGHT(i) - sum - (VLOAD(x, first + i) - center) * product);
      VSTORE(dx, first + i, result);
    }
    for (; i < length; ++i)
      STORE(dx, first + i, scale * (LOAD(g, first + i) * WEIGHT(i) - sum - (LOAD(x, first + i) - center) * product));
  }
}
#else
kernel void layer_norm_cpu(IN(x), WEIGHT_PARAMETER BIAS_PARAMETER OUT(y), OUT(mean), OUT(rstd), const int rows, const int length,
                           const int rows_per_item, const float eps PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = length / VW * VW;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * length;
    VFLOAT sums = (VFLOAT)(0.0f), squares = sums;
    float sum = 0, square = 0;
    int i = 0;
    while (i < whole) {
      const int end = BLOCK_END(i, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f);
      for (; i < end; i += VW) part += VLOAD(x, first + i);
      sums += part;
    }
    for (; i < length; ++i) sum += LOAD(x, first + i);
    const float center = (sum + clnet_lanes_sum(sums)) / length;
    for (i = 0; i < whole;) {
      const int end = BLOCK_END(i, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f);
      for (; i < end; i += VW) {
        const VFLOAT deviation = VLOAD(x, first + i) - center;
        part += deviation * deviation;
      }
      squares += part;
    }
    for (; i < length; ++i) {
      const float deviation = LOAD(x, first + i) - center;
      square += deviation * deviation;
    }
    const float scale = 1.0f / sqrt((square + clnet_lanes_sum(squares)) / length + eps);
    for (i = 0; i < whole; i += VW) {
      const VFLOAT result = (VLOAD(x, first + i) - center) * scale * VWEIGHT(i) + VBIAS(i);
      VSTORE(y, first + i, VEPILOGUE(result, first + i, i, 1));
    }
    for (; i < length; ++i)
      STORE(y, first + i, EPILOGUE((LOAD(x, first + i) - center) * scale * WEIGHT(i) + BIAS(i), first + i, i));
    STORE(mean, row, center);
    STORE(rstd, row, scale);
  }
}
#endif
