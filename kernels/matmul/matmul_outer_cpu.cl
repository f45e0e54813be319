// Products of one column by one row (k is 1): nothing is summed, so that writing c is all of the work. A work-item makes `tall` rows
// of one product.
#include "vector.clh"
#include "epilogue.clh"

kernel void matmul_outer_cpu(IN(a), IN(b), IN(bias), OUT(c), const int has_bias, const int m, const int n, const int a_batch,
                             const int b_batch, const int c_batch, const int tall EPILOGUE_PARAMETERS) {
  const int i0 = (int)get_global_id(0) * tall, i1 = BLOCK_END(i0, tall, m), batch = (int)get_global_id(1);
  const int b0 = batch * b_batch, whole = n / VW * VW;
  for (int i = i0; i < i1; ++i) {
    const float left = LOAD(a, batch * a_batch + i);
    const int row = batch * c_batch + i * n;
    for (int j = 0; j < whole; j += VW) {
      const VFLOAT product = left * VLOAD(b, b0 + j), value = has_bias ? product + VLOAD(bias, j) : product;
      VSTORE(c, row + j, VEPILOGUE(value, row + j, j, 1));
    }
    SELDOM for (int j = whole; j < n; ++j) {
      const float product = left * LOAD(b, b0 + j), value = has_bias ? product + LOAD(bias, j) : product;
      STORE(c, row + j, EPILOGUE(value, row + j, j));
    }
  }
}
