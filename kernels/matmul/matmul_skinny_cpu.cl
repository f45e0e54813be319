// Matrix products of few rows for CPUs: b is read as it lies and nothing is packed, as nothing would be used often enough. A
// work-item makes `chunk` columns of `tall` rows, a block of `rows` rows, ROWS at most, and COLUMNS vectors or columns at a time. SWAPPED: a and b
// are those of the transposed product, so that its few rows are the columns of c.
#include "item.clh"
#include "block_sums.clh"
#include "epilogue.clh"

// Where element (i, j) goes in c, and the column of c in which that is.
#ifdef SWAPPED
#define INDEX(i, j) (c0 + (j) * m + (i))
#define COLUMN(i, j) (i)
#else
#define INDEX(i, j) (c0 + (i) * n + (j))
#define COLUMN(i, j) (j)
#endif

#ifdef TRANSPOSED

// b is {n, k}, and a's rows lie along k as well: lanes hold elements of the sums.
#define SUM_ROWS(count)                                                                                             \
  VFLOAT part[count][COLUMNS];                                                                                      \
  _Pragma("unroll") for (int r = 0; r < count; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)             \
      part[r][q] = (VFLOAT)(0.0f);                                                                                  \
  const global STORAGE(a) *from_a[count];                                                                           \
  const global STORAGE(b) *from_b[COLUMNS];                                                                         \
  _Pragma("unroll") for (int r = 0; r < count; ++r) from_a[r] = PTR(a) + a0 + (i + r) * a_row;                      \
  _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q) from_b[q] = PTR(b) + b0 + min(j + q, j1 - 1) * k;             \
  for (size_t t = block; t < (size_t)end; t += VW) {                                                                \
    VFLOAT left[count];                                                                                             \
    _Pragma("unroll") for (int r = 0; r < count; ++r) left[r] = VLOAD_AT(a, from_a[r] + t);                         \
    _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q) {                                                           \
      const VFLOAT right = VLOAD_AT(b, from_b[q] + t);                                                              \
      _Pragma("unroll") for (int r = 0; r < count; ++r) part[r][q] = fma(left[r], right, part[r][q]);               \
    }                                                                                                               \
  }                                                                                                                 \
  _Pragma("unroll") for (int r = 0; r < count; ++r) _Pragma("unroll") for (int q = 0; q < COLUMNS; ++q)             \
      sums[r][q] = part[r][q];
#define MULTIPLY                                                                                                    \
  const int whole = k / VW * VW;                                                                                    \
  for (int j = j0; j < j1; j += COLUMNS)                                                                            \
    for (int i = i0; i < i1; i += rows) {                                                                           \
      const int here = min(rows, i1 - i);                                                                           \
      SUM_BLOCKS(SUM_ROWS, COLUMNS, CLNET_BLOCK * VW, whole)                                                        \
      SELDOM for (int r = 0; r < here; ++r) SELDOM for (int q = 0; q < min(COLUMNS, j1 - j); ++q) {                 \
        float value = clnet_lanes_sum(total[r][q]);                                                                 \
        SELDOM for (int s = whole; s < k; ++s)                                                                      \
          value += LOAD(a, a0 + (i + r) * a_row + s) * LOAD(b, b0 + (j + q) * k + s);                               \
        store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i + r, j + q), COLUMN(i + r, j + q),        \
              value EPILOGUE_ARGUMENTS);                                                                            \
      }                                                                                                             \
    }

#else

// b is {k, n}: lanes hold columns. One loop stores a block's vectors: a copy for each, with the epilogue, takes the compiler longer than
// the sums. Of the last vector the first `skipped` lanes are another block's.
#define STORE_LANES(count, skipped)                                                                                 \
  SELDOM for (int r = 0; r < here; ++r) SELDOM for (int lane = skipped; lane < (count) * VW; ++lane)                \
      store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i + r, j + lane), COLUMN(i + r, j + lane),    \
            ((const float *)total[r])[lane] EPILOGUE_ARGUMENTS);
#ifdef SWAPPED
#define STORE_VECTORS(count) STORE_LANES(count, 0)
#define STORE_LAST(count) STORE_LANES(count, first)
#else
#define STORE_VECTORS(count)                                                                                        \
  SELDOM for (int r = 0; r < here; ++r) SELDOM for (int q = 0; q < (count); ++q) {                                  \
    const int column = j + q * VW, index = INDEX(i + r, column);                                                    \
    const VFLOAT made = total[r][q], value = has_bias ? made + VLOAD(bias, column) : made;                          \
    VSTORE(c, index, VEPILOGUE(value, index, column, 1));                                                           \
  }
#define STORE_LAST(count)                                                                                           \
  if (first > 0) {                                                                                                  \
    STORE_LANES(count, first)                                                                                       \
  } else {                                                                                                          \
    STORE_VECTORS(count)                                                                                            \
  }
#endif
#define SUM_ROWS_OF(height, count)                                                                                  \
  VFLOAT part[height][count];                                                                                       \
  _Pragma("unroll") for (int r = 0; r < height; ++r) _Pragma("unroll") for (int q = 0; q < (count); ++q)            \
      part[r][q] = (VFLOAT)(0.0f);                                                                                  \
  const global STORAGE(a) *from_a = PTR(a) + a0 + i * a_row + block * a_step;                                       \
  const global STORAGE(b) *from_b = PTR(b) + b0 + block * n + j;                                                    \
  const size_t next_row = a_row, next_a = a_step, next_b = n;                                                       \
  for (int t = block; t < end; ++t, from_a += next_a, from_b += next_b) {                                           \
    VFLOAT right[count];                                                                                            \
    _Pragma("unroll") for (int q = 0; q < (count); ++q) right[q] = VLOAD_AT(b, from_b + q * VW);                    \
    _Pragma("unroll") for (int r = 0; r < height; ++r) {                                                            \
      const VFLOAT left = (VFLOAT)(LOAD_AT(a, from_a + r * next_row));                                              \
      _Pragma("unroll") for (int q = 0; q < (count); ++q) part[r][q] = fma(left, right[q], part[r][q]);             \
    }                                                                                                               \
  }                                                                                                                 \
  _Pragma("unroll") for (int r = 0; r < height; ++r) _Pragma("unroll") for (int q = 0; q < (count); ++q)            \
      sums[r][q] = part[r][q];
#define SUM_ROWS(count) SUM_ROWS_OF(count, COLUMNS)
#define SUM_ROWS_OF_ONE_VECTOR(count) SUM_ROWS_OF(count, 1)
#define BLOCK_OF(SUM, count, STORE_BLOCK)                                                                           \
    for (int i = i0; i < i1; i += rows) {                                                                           \
      const int here = min(rows, i1 - i);                                                                           \
      SUM_BLOCKS(SUM, count, CLNET_BLOCK, k)                                                                        \
      STORE_BLOCK(count)                                                                                            \
    }
#define MULTIPLY                                                                                                    \
  int j = j0;                                                                                                       \
  for (; j + COLUMNS * VW <= j1; j += COLUMNS * VW) BLOCK_OF(SUM_ROWS, COLUMNS, STORE_VECTORS)                      \
  /* The last vector begins among the columns before it, wherever in c they are. */                                 \
  for (int next = j; next < j1 && j1 >= VW; next = j + VW) {                                                        \
    j = min(next, j1 - VW);                                                                                         \
    const int first = next - j;                                                                                     \
    BLOCK_OF(SUM_ROWS_OF_ONE_VECTOR, 1, STORE_LAST)                                                                 \
  }                                                                                                                 \
  SELDOM for (; j < j1 && j1 < VW; ++j) SELDOM for (int i = i0; i < i1; ++i) {                                      \
    float value = 0, lost = 0;                                                                                      \
    SELDOM for (int block = 0; block < k; block = BLOCK_END(block, CLNET_BLOCK, k)) {                               \
      const int end = BLOCK_END(block, CLNET_BLOCK, k);                                                             \
      float sum = 0;                                                                                                \
      SELDOM for (int t = block; t < end; ++t) sum += LOAD(a, a0 + i * a_row + t * a_step) * LOAD(b, b0 + t * n + j);\
      ADD_BLOCK(float, value, lost, sum);                                                                           \
    }                                                                                                               \
    store(c_base, c_offset, bias_base, bias_offset, has_bias, INDEX(i, j), COLUMN(i, j), value EPILOGUE_ARGUMENTS); \
  }

#endif

static inline void store(OUT(c), IN(bias), const int has_bias, const int index, const int column, const float value EPILOGUE_PARAMETERS) {
  const float result = has_bias ? value + LOAD(bias, column) : value;
  STORE(c, index, EPILOGUE(result, index, column));
}

#define PARAMETERS                                                                                                  \
  IN(a), IN(b), IN(bias), OUT(c), INT(has_bias), INT(m), INT(n), INT(k), INT(a_row), INT(a_step), INT(a_batch),     \
  INT(b_batch), INT(c_batch), INT(chunk), INT(tall), INT(rows) EPILOGUE_PARAMETERS
WORK_ITEM void matmul_skinny_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int j0 = id0 * chunk, j1 = BLOCK_END(j0, chunk, n), batch = id2;
  const int i0 = id1 * tall, i1 = BLOCK_END(i0, tall, m);
  const int a0 = batch * a_batch, b0 = batch * b_batch, c0 = batch * c_batch;
  MULTIPLY
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_skinny_cpu(PARAMETERS) {
#include "arguments.clh"
  matmul_skinny_cpu_item(IDS, PARAMETERS);
}
