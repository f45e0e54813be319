// Adds the parts of matrix products along k, in order, and the bias. A work-item does `chunk` rows.
#include "vector.clh"
#include "epilogue.clh"

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void matmul_cpu_sum(IN(x), IN(bias), OUT(c), const int has_bias,
                                                                           const int rows, const int n, const int parts,
                                                                           const int part_stride,
                                                                           const int chunk EPILOGUE_PARAMETERS) {
  const int first = (int)get_global_id(0) * chunk, last = min(rows, first + chunk);
  for (int row = first; row < last; ++row) {
    int j = 0;
    for (; j + VW <= n; j += VW) {
      VFLOAT sum = has_bias ? VLOAD(bias, j) : (VFLOAT)(0.0f);
      for (int p = 0; p < parts; ++p) sum += VLOAD(x, p * part_stride + row * n + j);
      VSTORE(c, row * n + j, VEPILOGUE(sum, row * n + j, j, 1));
    }
    for (; j < n; ++j) {
      float sum = has_bias ? LOAD(bias, j) : 0.0f;
      for (int p = 0; p < parts; ++p) sum += LOAD(x, p * part_stride + row * n + j);
      STORE(c, row * n + j, EPILOGUE(sum, row * n + j, j));
    }
  }
}
