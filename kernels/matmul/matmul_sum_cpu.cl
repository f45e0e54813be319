// Adds the parts of matrix products along k, in order, and the bias. A work-item does `chunk` of the `rows` rows of all products,
// which have m each and begin c_batch elements from one another in c.
#include "vector.clh"
#include "epilogue.clh"

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void matmul_sum_cpu(
    IN(x), IN(bias), OUT(c), const int has_bias, const int rows, const int m, const int n, const int c_batch, const int parts,
    const int part_stride, const int chunk EPILOGUE_PARAMETERS) {
  const int first = (int)get_global_id(0) * chunk, last = first + min(rows - first, chunk);
  for (int row = first; row < last; ++row) {
    const int from = row * n, to = row / m * c_batch + row % m * n;
    int j = 0;
    for (; j + VW <= n; j += VW) {
      VFLOAT sum = has_bias ? VLOAD(bias, j) : (VFLOAT)(0.0f);
      for (int p = 0; p < parts; ++p) sum += VLOAD(x, p * part_stride + from + j);
      VSTORE(c, to + j, VEPILOGUE(sum, to + j, j, 1));
    }
    for (; j < n; ++j) {
      float sum = has_bias ? LOAD(bias, j) : 0.0f;
      for (int p = 0; p < parts; ++p) sum += LOAD(x, p * part_stride + from + j);
      STORE(c, to + j, EPILOGUE(sum, to + j, j));
    }
  }
}
