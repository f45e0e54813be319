// Explicit vectors: along the row where inner is 1, or across rows that are shorter, else across columns.
#define POWER power
#define ONE 0x1p64f
#include "softmax.clh"
#include "vector.clh"
#include "epilogue.clh"
#include "prologue.clh"

// e^x 2^64 for x up to 0, as clnet_exp: nothing is denormal then.
static inline VFLOAT power(const VFLOAT value) {
  const VFLOAT x = value < -104.0f ? (VFLOAT)(-104.0f) : value;
  // In the last bits is n + 64 + 127, the exponent of 2^(n + 64).
  const VFLOAT shifted = x * 1.44269504f + 12583103.0f, n = shifted - 12583103.0f;
  const VFLOAT r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const VFLOAT rest = ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r +
                       1.6666665459e-1f) * r + 5.0000001201e-1f;
  return (rest * (r * r) + r + 1.0f) * VAS_FLOAT(VAS_INT(shifted) << 23);
}

// The larger one, and `a` where b is NaN: its power is NaN, and so are then all results.
static inline VFLOAT larger(const VFLOAT a, const VFLOAT b) { return b > a ? b : a; }

kernel void softmax_rows_cpu(IN(x), OUT(y), const int rows, const int length, const int rows_per_item
                             PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  const int whole = length / VW * VW, rest = length - whole;
  for (int row = first_row; row < last_row; ++row) {
    const int first = row * length;
    VFLOAT tail = (VFLOAT)(-INFINITY);
    if (rest) VLOAD_PART(tail, x, first + whole, rest, -INFINITY);
    VFLOAT lanes = tail;
    for (int i = 0; i < whole; i += VW) lanes = larger(lanes, VLOAD(x, first + i));
    const float most = clnet_lanes_max(lanes);
    VFLOAT sum = rest ? POWER(tail - most) : (VFLOAT)(0.0f);
    for (int block = 0; block < whole; block = BLOCK_END(block, CLNET_BLOCK * VW, whole)) {
      const int end = BLOCK_END(block, CLNET_BLOCK * VW, whole);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; i += VW) {
        const VFLOAT e = POWER(VLOAD(x, first + i) - most);
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

// Rows shorter than a vector: VW of them side by side, each in a lane. Lanes without a row repeat the last one.
kernel void softmax_narrow_rows_cpu(IN(x), OUT(y), const int rows, const int length, const int rows_per_item
                                    PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int first_row = (int)get_global_id(0) * rows_per_item, last_row = BLOCK_END(first_row, rows_per_item, rows);
  for (int row = first_row; row < last_row; row += VW) {
    const int first = row * length, count = min(VW, last_row - row);
    VFLOAT elements[VW], most = (VFLOAT)(-INFINITY), sum = (VFLOAT)(0.0f);
    float *lanes = (float *)elements;
    for (int i = 0; i < length; ++i) {
      for (int lane = 0; lane < VW; ++lane) lanes[i * VW + lane] = LOAD(x, first + min(lane, count - 1) * length + i);
      most = larger(most, elements[i]);
    }
    for (int i = 0; i < length; ++i) {
      const VFLOAT rest = elements[i] - most, e = POWER(rest);
      sum += e;
      elements[i] = LOGARITHM ? rest : e;
    }
    const VFLOAT scale = SCALE(sum);
    for (int i = 0; i < length; ++i) elements[i] = SCALED(elements[i], scale);
    for (int lane = 0; lane < count; ++lane)
      SELDOM for (int i = 0; i < length; ++i) {
        const int at = first + lane * length + i;
        STORE(y, at, EPILOGUE(lanes[i * VW + lane], at, i));
      }
  }
}

kernel void softmax_columns_cpu(IN(x), OUT(y), const int axis, const int inner PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int blocks = (inner + VW - 1) / VW, item = (int)get_global_id(0);
  const int column = REMAINDER(item, blocks) * VW, width = min(VW, inner - column);
  const int first = item / blocks * axis * inner + column;
  VFLOAT most = (VFLOAT)(-INFINITY), sum = (VFLOAT)(0.0f);
  if (width == VW) {
    for (int i = 0; i < axis; ++i) most = larger(most, VLOAD(x, first + i * inner));
    for (int block = 0; block < axis; block = BLOCK_END(block, CLNET_BLOCK, axis)) {
      const int end = BLOCK_END(block, CLNET_BLOCK, axis);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; ++i) part += POWER(VLOAD(x, first + i * inner) - most);
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
      most = larger(most, value);
    }
    for (int block = 0; block < axis; block = BLOCK_END(block, CLNET_BLOCK, axis)) {
      const int end = BLOCK_END(block, CLNET_BLOCK, axis);
      VFLOAT part = (VFLOAT)(0.0f);
      for (int i = block; i < end; ++i) {
        VLOAD_PART(value, x, first + i * inner, width, 0.0f);
        part += POWER(value - most);
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
