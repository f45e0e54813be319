// Matrix products for CPUs with b in panels (matmul_pack_cpu.cl) and a as it lies. A work-item makes `chunk` columns, whole panels, of
// `tall` rows, a block of ROWS rows and a panel at a time.
#include "vector.clh"
#include "epilogue.clh"

#define WIDTH (VW * COLUMNS)

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void matmul_packed_cpu(
    IN(a), IN(b), IN(bias), OUT(c), const int has_bias, const int m, const int n, const int k, const int a_row, const int a_step,
    const int chunk, const int tall EPILOGUE_PARAMETERS) {
  const int j0 = (int)get_global_id(0) * chunk, j1 = BLOCK_END(j0, chunk, n);
  const int i0 = (int)get_global_id(1) * tall, i1 = BLOCK_END(i0, tall, m);
  for (int j = j0; j < j1; j += WIDTH) {
    const global float *restrict panel = PTR(b) + j * k;
    for (int i = i0; i < i1; i += ROWS) {
      VFLOAT total[ROWS][COLUMNS] = {{(VFLOAT)(0.0f)}}, lost[ROWS][COLUMNS] = {{(VFLOAT)(0.0f)}};
      for (int block = 0; block < k; block = BLOCK_END(block, CLNET_BLOCK, k)) {
        VFLOAT sum[ROWS][COLUMNS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
          #pragma unroll
          for (int q = 0; q < COLUMNS; ++q) sum[r][q] = (VFLOAT)(0.0f);
        const int end = BLOCK_END(block, CLNET_BLOCK, k);
        for (int t = block; t < end; ++t) {
          VFLOAT right[COLUMNS];
          #pragma unroll
          for (int q = 0; q < COLUMNS; ++q) right[q] = *(const global any_vector *)(panel + t * WIDTH + q * VW);
          #pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            const VFLOAT left = (VFLOAT)(LOAD(a, min(i + r, i1 - 1) * a_row + t * a_step));
            #pragma unroll
            for (int q = 0; q < COLUMNS; ++q) sum[r][q] = fma(left, right[q], sum[r][q]);
          }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
          #pragma unroll
          for (int q = 0; q < COLUMNS; ++q) ADD_BLOCK(VFLOAT, total[r][q], lost[r][q], sum[r][q]);
      }
#ifdef EPILOGUE_BODY
      // Once in the machine code, which compilers take long for otherwise.
      #define EACH SELDOM
#else
      #define EACH _Pragma("unroll")
#endif
      EACH for (int r = 0; r < ROWS; ++r) {
        if (i + r >= i1) continue;
        EACH for (int q = 0; q < COLUMNS; ++q) {
          const int column = j + q * VW, index = (i + r) * n + column;
          if (column + VW <= n) {
            const VFLOAT value = has_bias ? total[r][q] + VLOAD(bias, column) : total[r][q];
            VSTORE(c, index, VEPILOGUE(value, index, column, 1));
          } else {
            float lanes[VW];
            CLNET_CAT(vstore, VW)(total[r][q], 0, lanes);
            SELDOM for (int lane = 0; lane < n - column; ++lane) {
              const float value = has_bias ? lanes[lane] + LOAD(bias, column + lane) : lanes[lane];
              STORE(c, index + lane, EPILOGUE(value, index + lane, column + lane));
            }
          }
        }
      }
    }
  }
}
