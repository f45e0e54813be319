// Matrix products of few rows for CPUs: b is read as it lies and nothing is packed, as nothing would be used often enough. A
// work-item makes `chunk` columns of `tall` rows, a block of ROWS rows and COLUMNS vectors or columns at a time. SWAPPED: a and b
// are those of the transposed product, so that its few rows are the columns of c.
#include "vector.clh"
#include "epilogue.clh"

// Where element (i, j) goes in c, and the column of c in which that is.
#ifdef SWAPPED
#define INDEX(i, j) (c0 + (j) * m + (i))
#define COLUMN(i, j) (i)
#else
#define INDEX(i, j) (c0 + (i) * n + (j))
#define COLUMN(i, j) (j)
#endif

// The sums of a block to those of the blocks before.
#define ADD_BLOCKS(rows, columns)                                                                                   \
  _Pragma("unroll") for (int r = 0; r < (rows); ++r) _Pragma("unroll") for (int q = 0; q < (columns); ++q)          \
      ADD_BLOCK(VFLOAT, total[r][q], lost[r][q], sum[r][q]);

#ifdef TRANSPOSED

// b is {n, k}, and a's rows lie along k as well: lanes hold elements of the sums.
#define MULTIPLY                                                                                                    \
  for (int j = j0; j < j1; j += COLUMNS)                                                                            \
    for (int i = i0; i < i1; i += ROWS) {                                                                           \
      VFLOAT total[ROWS][COLUMNS] = {{(VFLOAT)(0.0f)}}, lost[ROWS][COLUMNS] = {{(VFLOAT)(0.0f)}};                   \
      const int whole = k / VW * VW;                                                                                \
      for (int block = 0; block < whole; block = BLOCK_END(block, CLNET_BLOCK * VW, whole)) {                       \
        VFLOAT sum[ROWS][COLUMNS];                                                                                  \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)        \
            sum[r][q] = (VFLOAT)(0.0f);                                                                             \
        const int end = BLOCK_END(block, CLNET_BLOCK * VW, whole);                                                  \
        for (int t = block; t < end; t += VW) {                                                                     \
          VFLOAT left[ROWS];                                                                                        \
          _Pragma("unroll") for (int r = 0; r < ROWS; ++r) left[r] = VLOAD(a, a0 + min(i + r, i1 - 1) * a_row + t); \
          _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q) {                                                     \
            const VFLOAT right = VLOAD(b, b0 + min(j + q, j1 - 1) * k + t);                                         \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) sum[r][q] = fma(left[r], right, sum[r][q]);            \
          }                                                                                                         \
        }                                                                                                           \
        ADD_BLOCKS(ROWS, COLUMNS)                                                                                   \
      }                                                                                                             \
      float value[ROWS][COLUMNS];                                                                                   \
      _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)          \
          value[r][q] = clnet_lanes_sum(total[r][q]);                                                               \
      SELDOM for (int r = 0; r < min(ROWS, i1 - i); ++r) SELDOM for (int q = 0; q < min(COLUMNS, j1 - j); ++q) {    \
        SELDOM for (int s = whole; s < k; ++s)                                                                      \
          value[r][q] += LOAD(a, a0 + (i + r) * a_row + s) * LOAD(b, b0 + (j + q) * k + s);                         \
        store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i + r, j + q), COLUMN(i + r, j + q),        \
              value[r][q] EPILOGUE_ARGUMENTS);                                                                      \
      }                                                                                                             \
    }

#else

// b is {k, n}: lanes hold columns. One loop stores a block's vectors: a copy for each, with the epilogue, takes the compiler longer than
// the sums. Of the last vector the first `skipped` lanes are another block's.
#define STORE_LANES(count, skipped)                                                                                 \
  SELDOM for (int r = 0; r < min(ROWS, i1 - i); ++r) SELDOM for (int lane = skipped; lane < (count) * VW; ++lane)   \
      store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i + r, j + lane), COLUMN(i + r, j + lane),    \
            made[r][lane] EPILOGUE_ARGUMENTS);
#ifdef SWAPPED
#define STORE_VECTORS(count) STORE_LANES(count, 0)
#define STORE_LAST(count) STORE_LANES(count, first)
#else
#define STORE_VECTORS(count)                                                                                        \
  SELDOM for (int r = 0; r < min(ROWS, i1 - i); ++r) SELDOM for (int q = 0; q < (count); ++q) {                     \
    const int column = j + q * VW, index = INDEX(i + r, column);                                                    \
    const VFLOAT sum = CLNET_CAT(vload, VW)(q, made[r]), value = has_bias ? sum + VLOAD(bias, column) : sum;        \
    VSTORE(c, index, VEPILOGUE(value, index, column, 1));                                                           \
  }
#define STORE_LAST(count)                                                                                           \
  if (first > 0) {                                                                                                  \
    STORE_LANES(count, first)                                                                                       \
  } else {                                                                                                          \
    STORE_VECTORS(count)                                                                                            \
  }
#endif
#define BLOCK_OF(count, STORE_BLOCK)                                                                                \
    for (int i = i0; i < i1; i += ROWS) {                                                                           \
      VFLOAT total[ROWS][count] = {{(VFLOAT)(0.0f)}}, lost[ROWS][count] = {{(VFLOAT)(0.0f)}};                       \
      for (int block = 0; block < k; block = BLOCK_END(block, CLNET_BLOCK, k)) {                                    \
        VFLOAT sum[ROWS][count];                                                                                    \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int q = 0; q < (count); ++q)        \
            sum[r][q] = (VFLOAT)(0.0f);                                                                             \
        const int end = BLOCK_END(block, CLNET_BLOCK, k);                                                           \
        for (int t = block; t < end; ++t) {                                                                         \
          VFLOAT right[count];                                                                                      \
          _Pragma("unroll") for (int q = 0; q < (count); ++q) right[q] = VLOAD(b, b0 + t * n + j + q * VW);         \
          _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                        \
            const VFLOAT left = (VFLOAT)(LOAD(a, a0 + min(i + r, i1 - 1) * a_row + t * a_step));                    \
            _Pragma("unroll") for (int q = 0; q < (count); ++q) sum[r][q] = fma(left, right[q], sum[r][q]);         \
          }                                                                                                         \
        }                                                                                                           \
        ADD_BLOCKS(ROWS, count)                                                                                     \
      }                                                                                                             \
      float made[ROWS][(count) * VW];                                                                               \
      _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int q = 0; q < (count); ++q)          \
          CLNET_CAT(vstore, VW)(total[r][q], q, made[r]);                                                           \
      STORE_BLOCK(count)                                                                                            \
    }
#define MULTIPLY                                                                                                    \
  int j = j0;                                                                                                       \
  for (; j + COLUMNS * VW <= j1; j += COLUMNS * VW) BLOCK_OF(COLUMNS, STORE_VECTORS)                                \
  /* The last vector begins among the columns before it, wherever in c they are. */                                 \
  for (int next = j; next < j1 && j1 >= VW; next = j + VW) {                                                        \
    j = min(next, j1 - VW);                                                                                         \
    const int first = next - j;                                                                                     \
    BLOCK_OF(1, STORE_LAST)                                                                                         \
  }                                                                                                                 \
  SELDOM for (; j < j1 && j1 < VW; ++j) SELDOM for (int i = i0; i < i1; ++i) {                                      \
    float value = 0, lost = 0;                                                                                      \
    SELDOM for (int block = 0; block < k; block = BLOCK_END(block, CLNET_BLOCK, k)) {                               \
      const int end = BLOCK_END(block, CLNET_BLOCK, k);                                                             \
      float sum = 0;                                                                                                \
      SELDOM for (int t = block; t < end; ++t) sum += LOAD(a, a0 + i * a_row + t * a_step) * LOAD(b, b0 + t * n + j); \
      ADD_BLOCK(float, value, lost, sum);                                                                           \
    }                                                                                                               \
    store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i, j), COLUMN(i, j), value EPILOGUE_ARGUMENTS); \
  }

#endif

static inline void store(OUT(c), IN(bias), const int has_bias, const int index, const int column, const float value EPILOGUE_PARAMETERS) {
  const float result = has_bias ? value + LOAD(bias, column) : value;
  STORE(c, index, EPILOGUE(result, index, column));
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void matmul_skinny_cpu(
    IN(a), IN(b), IN(bias), OUT(c), const int has_bias, const int m, const int n, const int k, const int a_row, const int a_step,
    const int a_batch, const int b_batch, const int c_batch, const int chunk, const int tall EPILOGUE_PARAMETERS) {
  const int j0 = (int)get_global_id(0) * chunk, j1 = BLOCK_END(j0, chunk, n), batch = (int)get_global_id(2);
  const int i0 = (int)get_global_id(1) * tall, i1 = BLOCK_END(i0, tall, m);
  const int a0 = batch * a_batch, b0 = batch * b_batch, c0 = batch * c_batch;
  MULTIPLY
}
