// Explicit vectors: along the row where inner is 1, else across columns.
#include "softmax.clh"
#include "vector.clh"
#include "epilogue.clh"
#include "prologue.clh"

kernel void softmax_rows(IN(x), OUT(y), const int rows, const int length, const int rows_per_item
                         PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = length / VW * VW, rest = length - whole;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * length;
    VFLOAT tail = (VFLOAT)(-INFINITY);
    if (rest) VLOAD_PART(tail, x, first + whole, rest, -INFINITY);
    VFLOAT lanes = tail;
    for (int i = 0; i < whole; i += VW) lanes = fmax(lanes, VLOAD(x, first + i));
    const float most = clnet_lanes_max(lanes);
    VFLOAT sum = rest ? exp(tail - most) : (VFLOAT)(0.0f);
    for (int block = 0; block < whole; block = BLOCK_END(block, CLNET_BLOCK * VW, whole)) {
      const int end = BLOCK_END(block, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; i += VW) {
        const VFLOAT e = exp(VLOAD(x, first + i) - most);
        part += e;
#if KEEP_EXP
        VSTORE(y, first + i, e);
#endif
      }
      sum += part;
    }
    const float scale = SCALE(clnet_lanes_sum(sum));
    for (int i = 0; i < whole; i += VW) {
#if KEEP_EXP
      const VFLOAT result = VLOAD(y, first + i) * scale;
#else
      const VFLOAT result = RESULT(VLOAD(x, first + i), most, scale);
#endif
      VSTORE(y, first + i, VEPILOGUE(result, first + i, i, 1));
    }
    if (rest) {
      const VFLOAT result = RESULT(tail, most, scale);
      VSTORE_PART_FINISHED(y, first + whole, rest, result, whole, 1);
    }
  }
}

kernel void softmax_columns(IN(x), OUT(y), const int axis, const int inner PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int blocks = (inner + VW - 1) / VW, item = (int)get_global_id(0);
  const int column = REMAINDER(item, blocks) * VW, width = min(VW, inner - column);
  const int first = item / blocks * axis * inner + column;
  VFLOAT most = (VFLOAT)(-INFINITY), sum = (VFLOAT)(0.0f);
  if (width == VW) {
    for (int i = 0; i < axis; ++i) most = fmax(most, VLOAD(x, first + i * inner));
    for (int block = 0; block < axis; block = BLOCK_END(block, CLNET_BLOCK, axis)) {
      const int end = BLOCK_END(block, CLNET_BLOCK, axis);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; ++i) part += exp(VLOAD(x, first + i * inner) - most);
      sum += part;
    }
    const VFLOAT scale = SCALE(sum);
    for (int i = 0; i < axis; ++i) {
      const VFLOAT result = RESULT(VLOAD(x, first + i * inner), most, scale);
      VSTORE(y, first + i * inner, VEPILOGUE(result, first + i * inner, i, 0));
    }
  } else {
    VFLOAT value;
    for (int i = 0; i < axis; ++i) {
      VLOAD_PART(value, x, first + i * inner, width, 0.0f);
      most = fmax(most, value);
    }
    for (int block = 0; block < axis; block = BLOCK_END(block, CLNET_BLOCK, axis)) {
      const int end = BLOCK_END(block, CLNET_BLOCK, axis);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; ++i) {
        VLOAD_PART(value, x, first + i * inner, width, 0.0f);
        part += exp(value - most);
      }
      sum += part;
    }
    const VFLOAT scale = SCALE(sum);
    for (int i = 0; i < axis; ++i) {
      VLOAD_PART(value, x, first + i * inner, width, 0.0f);
      const VFLOAT result = RESULT(value, most, scale);
      VSTORE_PART_FINISHED(y, first + i * inner, width, result, i, 0);
    }
  }
}
