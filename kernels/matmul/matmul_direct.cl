// The reference solver of matrix products: one work-item per element of the result, operands with any strides.
#include "epilogue.clh"

kernel void matmul_direct(IN(a), IN(b),
#ifdef BIAS
                          IN(bias),
#endif
                          OUT(c), const int m, const int n, const int k, const int a_row, const int a_column, const int b_row,
                          const int b_column, const int a_batch, const int b_batch, const int c_batch EPILOGUE_PARAMETERS) {
  const uint index = get_global_id(0);
  const int batch = get_global_id(1);
  if (index >= (uint)(m * n)) return;
  const int row = (int)index / n, column = (int)index % n;
  const int first_a = batch * a_batch + row * a_row, first_b = batch * b_batch + column * b_column;
  float sum = 0.0f, lost = 0.0f;
  for (int block = 0; block < k; block = BLOCK_END(block, CLNET_BLOCK, k)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, k);
    float part = 0.0f;
    for (int i = block; i < end; ++i) part += LOAD(a, first_a + i * a_column) * LOAD(b, first_b + i * b_row);
    ADD_BLOCK(float, sum, lost, part);
  }
#ifdef BIAS
  sum += LOAD(bias, column);
#endif
  const int at = batch * c_batch + (int)index;
  STORE(c, at, EPILOGUE(sum, at, column));
}
