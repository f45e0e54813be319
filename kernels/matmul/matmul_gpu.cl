// Matrix products for GPUs: a tile of the result per work-group (gemm_gpu.clh), operands of any floating type, sums in f32.
#include "epilogue.clh"

#ifdef TRANSPOSE_A
#define A_ALONG_K 0
#else
#define A_ALONG_K 1
#endif
#ifdef TRANSPOSE_B
#define B_ALONG_K 1
#define AT_B(k, column) ((column) * all_k + (k))
#else
#define B_ALONG_K 0
#define AT_B(k, column) ((k) * n + (column))
#endif
// What an item fetches of a begins at `at_a` and is so many rows or depths from one another (that it says so spares registers).
// Places are cast to uint: to extend a sign takes AMD's an instruction for each.
#if A_ALONG_K
#define APART_A (GEMM_ITEMS / TK)
#define PLACE_A (a0 + (row0 + item / TK) * all_k + item % TK)
#define LEFT_A (m - row0 - item / TK)
#define GEMM_A(i, k, d) \
  (e * APART_A < left_a && (k) < end ? LOAD(a, (uint)(at_a + e * APART_A * all_k + (k) - (d))) : 0.0f)
#else
#define APART_A (GEMM_ITEMS / TM)
#define PLACE_A (a0 + item / TM * m + row0 + item % TM)
#define LEFT_A (row0 + item % TM < m ? end - item / TM : 0)
#define GEMM_A(i, k, d) \
  ((k) - (d) + e * APART_A < left_a ? LOAD(a, (uint)(at_a + ((k) - (d) + e * APART_A) * m)) : 0.0f)
#endif
#define GEMM_B(k, d, j) (column0 + (j) < n && (k) < end ? LOAD(b, (uint)(b0 + AT_B(k, column0 + (j)))) : 0.0f)
#define GEMM_PARAMETERS \
  , IN(a), IN(b), const int m, const int n, const int all_k, const int at_a, const int left_a, const int b0, const int column0
#define GEMM_ARGUMENTS , a_base, a_offset, b_base, b_offset, m, n, all_k, PLACE_A, LEFT_A, b0, column0
#define GEMM_SLICE(k0)
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
