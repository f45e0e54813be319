// Matrix products for CPUs with b in panels (matmul_pack_cpu.cl) and a as it lies. A work-item makes `chunk` columns, whole panels, of
// `tall` rows, a block of `rows` rows, ROWS at most, and a panel at a time.
#include "item.clh"
#include "block_sums.clh"
#include "epilogue.clh"

#define WIDTH (VW * COLUMNS)

#define SUM_ROWS(count)                                                                                             \
  VFLOAT part[count][COLUMNS];                                                                                      \
  _Pragma("unroll") for (int r = 0; r < count; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)             \
      part[r][q] = (VFLOAT)(0.0f);                                                                                  \
  for (int t = block; t < end; ++t) {                                                                               \
    VFLOAT right[COLUMNS];                                                                                          \
    _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)                                                             \
        right[q] = *(const global any_vector *)(panel + t * WIDTH + q * VW);                                        \
    _Pragma("unroll") for (int r = 0; r < count; ++r) {                                                             \
      const VFLOAT left = (VFLOAT)(LOAD(a, (i + r) * a_row + t * a_step));                                          \
      _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q) part[r][q] = fma(left, right[q], part[r][q]);             \
    }                                                                                                               \
  }                                                                                                                 \
  _Pragma("unroll") for (int r = 0; r < count; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)             \
      sums[r][q] = part[r][q];

#define PARAMETERS                                                                                                  \
  IN(a), IN(b), IN(bias), OUT(c), INT(has_bias), INT(m), INT(n), INT(k), INT(a_row), INT(a_step), INT(chunk),       \
  INT(tall), INT(rows) EPILOGUE_PARAMETERS
WORK_ITEM void matmul_packed_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int j0 = id0 * chunk, j1 = BLOCK_END(j0, chunk, n);
  const int i0 = id1 * tall, i1 = BLOCK_END(i0, tall, m);
  for (int j = j0; j < j1; j += WIDTH) {
    const global float *restrict panel = PTR(b) + j * k;
    for (int i = i0; i < i1; i += rows) {
      const int here = min(rows, i1 - i);
      SUM_BLOCKS(SUM_ROWS, COLUMNS, CLNET_BLOCK, k)
      // Once in the machine code, which compilers take long for otherwise.
      SELDOM for (int r = 0; r < here; ++r)
        SELDOM for (int q = 0; q < COLUMNS; ++q) {
          const int column = j + q * VW, index = (i + r) * n + column;
          if (column + VW <= n) {
            const VFLOAT value = has_bias ? total[r][q] + VLOAD(bias, column) : total[r][q];
            VSTORE(c, index, VEPILOGUE(value, index, column, 1));
          } else {
            const float *lanes = (const float *)&total[r][q];
            SELDOM for (int lane = 0; lane < n - column; ++lane) {
              const float value = has_bias ? lanes[lane] + LOAD(bias, column + lane) : lanes[lane];
              STORE(c, index + lane, EPILOGUE(value, index + lane, column + lane));
            }
          }
        }
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_packed_cpu(PARAMETERS) {
#include "arguments.clh"
  matmul_packed_cpu_item(IDS, PARAMETERS);
}
