// Matrix products for GPUs: a tile of the result per work-group (gemm_gpu.clh), operands of any floating type, sums in f32.
#include "epilogue.clh"

#ifdef TRANSPOSE_A
#define A_ALONG_K 0
#define AT_A(row, k) ((k) * m + (row))
#else
#define A_ALONG_K 1
#define AT_A(row, k) ((row) * all_k + (k))
#endif
#ifdef TRANSPOSE_B
#define B_ALONG_K 1
#define AT_B(k, column) ((column) * all_k + (k))
#else
#define B_ALONG_K 0
#define AT_B(k, column) ((k) * n + (column))
#endif
#define GEMM_PARAMETERS \
  , IN(a), IN(b), const int m, const int n, const int all_k, const int a0, const int b0, const int row0, const int column0
#define GEMM_ARGUMENTS , a_base, a_offset, b_base, b_offset, m, n, all_k, a0, b0, row0, column0
#define GEMM_SLICE(k0)
#define GEMM_A(i, k, d) (row0 + (i) < m && (k) < end ? LOAD(a, a0 + AT_A(row0 + (i), k)) : 0.0f)
#define GEMM_B(k, d, j) (column0 + (j) < n && (k) < end ? LOAD(b, b0 + AT_B(k, column0 + (j))) : 0.0f)
#include "gemm_gpu.clh"

// From `first` on k is cut into parts of `part` elements, whose results follow one another in c (part_stride apart). ADD: to what
// c holds.
__attribute__((reqd_work_group_size(GEMM_ITEMS, 1, 1))) kernel void matmul_gpu(
    IN(a), IN(b), IN(bias), OUT(c), const int has_bias, const int m, const int n, const int all_k, const int a_batch,
    const int b_batch, const int c_batch, const int first, const int part, const int parts, const int part_stride EPILOGUE_PARAMETERS) {
  local float slices[GEMM_LOCAL] __attribute__((aligned(16)));
  const int item = (int)get_local_id(0);
  const int batch = (int)get_global_id(2) / parts, which = (int)get_global_id(2) % parts;
  const int row0 = (int)get_global_id(1) * TM, column0 = (int)get_global_id(0) / GEMM_ITEMS * TN;
  const int a0 = batch * a_batch, b0 = batch * b_batch, c0 = batch * c_batch + which * part_stride;
  const int begin = first + which * part, end = min(all_k, begin + part);
  float sum[RM][RN];
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) sum[i][j] = 0.0f;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int row = row0 + GEMM_ROW(item, i), column = column0 + GEMM_COLUMN(item, j), at = c0 + row * n + column;
      if (row >= m || column >= n) continue;
      float value = has_bias ? sum[i][j] + LOAD(bias, column) : sum[i][j];
#ifdef ADD
      value += LOAD(c, at);
#endif
      STORE(c, at, EPILOGUE(value, at, column));
    }
}
