// Matrix products for CPUs. A work-item computes one tile of the result: block after block along k it packs its columns of b into local
// memory, and after them `pass_m` of its rows of a at a time, as panels of COLUMNS columns and of `panel_rows` rows, ROWS at most, and
// multiplies panel by panel with the sums in registers. Packing makes every transposition alike, and memory is then read in order.
#include "item.clh"
#include "rows.clh"
#include "transpose.clh"
#include "epilogue.clh"

#define COLUMNS (VW * VECTORS)
#define VECTOR VFLOAT

typedef STORAGE(a) storage;

// Packs `lanes` vectors that run along k, one under the other in memory: target[k * step + lane]. Lanes from `valid` on repeat the
// last one, as nobody looks at their sums. Vectors are stored whole: what comes after the last lane is overwritten or unused.
PART void pack_across(const global storage *restrict source, const int stride, const int lanes, const int valid,
                      const int depth, local float *restrict target, const int step) {
  int k = 0;
  for (; k + VW <= depth; k += VW) {
    VECTOR x[VW];
    #pragma unroll
    for (int i = 0; i < VW; ++i) x[i] = VLOAD_AT(a, source + min(i, valid - 1) * stride + k);
    TRANSPOSE(x)
    #pragma unroll
    for (int i = 0; i < VW; ++i) *(local any_vector *)(target + (k + i) * step) = x[i];
  }
  SELDOM for (; k < depth; ++k)
    SELDOM for (int i = 0; i < lanes; ++i) target[k * step + i] = LOAD_AT(a, source + min(i, valid - 1) * stride + k);
}

// Packs `depth` rows of memory of which `lanes` elements are wanted: target[k * step + lane]. `readable` elements of a row may be
// read, the last of them stands for those that are missing.
PART void pack_along(const global storage *restrict source, const int stride, const int lanes, const int readable,
                     const int depth, local float *restrict target, const int step) {
  if (readable >= VW)
    for (int k = 0; k < depth; ++k) *(local any_vector *)(target + k * step) = VLOAD_AT(a, source + k * stride);
  else
    SELDOM for (int k = 0; k < depth; ++k)
      SELDOM for (int i = 0; i < lanes; ++i) target[k * step + i] = LOAD_AT(a, source + k * stride + min(i, readable - 1));
}

// The same of four panels side by side, whose rows are whole lines of memory: rows are often 4 KB apart, and few of such lines stay in
// the caches until their next vector is wanted.
#define WIDE (4 * COLUMNS)
static inline void pack_wide(const global storage *restrict source, const int stride, const int depth, local float *restrict target) {
  for (int k = 0; k < depth; ++k) {
    #pragma unroll
    for (int v = 0; v < 4 * VECTORS; ++v)
      *(local any_vector *)(target + v / VECTORS * COLUMNS * depth + k * COLUMNS + v % VECTORS * VW) = VLOAD_AT(a, source + k * stride + v * VW);
  }
}

// The sums of `count` rows, to c, where what it holds is added, or at its edge, to `edge`. Of an even number the last row may be none of c.
#define SUM_ROWS(count)                                                                                             \
  _Pragma("unroll") for (int i = 0; i < count; ++i) FETCH_LINE(c + i * stride);                                     \
  VECTOR sum[count][VECTORS];                                                                                       \
  _Pragma("unroll") for (int i = 0; i < count; ++i) _Pragma("unroll") for (int v = 0; v < VECTORS; ++v)             \
      sum[i][v] = (VECTOR)(0.0f);                                                                                   \
  for (int k = 0; k < depth; ++k) {                                                                                 \
    VECTOR right[VECTORS];                                                                                          \
    _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) right[v] = ((const local VECTOR *)b)[k * VECTORS + v];      \
    _Pragma("unroll") for (int i = 0; i < count; ++i) {                                                             \
      const VECTOR left = (VECTOR)(a[k * count + i]);                                                               \
      _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[i][v] += left * right[v];                             \
    }                                                                                                               \
  }                                                                                                                 \
  if (columns == COLUMNS) {                                                                                         \
    _Pragma("unroll") for (int i = 0; i < count; ++i) if (i < count - 1 || rows == count)                           \
        _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) {                                                       \
      global any_vector *target = (global any_vector *)(c + i * stride + v * VW);                                   \
      *target = sum[i][v] + (first ? bias[v] : *target);                                                            \
    }                                                                                                               \
  } else {                                                                                                          \
    _Pragma("unroll") for (int i = 0; i < count; ++i) _Pragma("unroll") for (int v = 0; v < VECTORS; ++v)           \
        *(any_vector *)(edge[i] + v * VW) = sum[i][v];                                                              \
  }

// One panel of a, of ROWS_MADE(rows) rows, times one panel of b; adds what `c` holds, or the bias at the first block along k. After the last
// block the epilogue follows; `index` and `column` are those of the first element.
static inline void multiply(const local float *restrict a, const local float *restrict b, const int depth, global float *restrict c,
                     const int stride, const int rows, const int columns, const bool first, const bool last, const int index,
                     const int column, const VECTOR bias[VECTORS] EPILOGUE_PARAMETERS) {
  float edge[ROWS][COLUMNS];
  WITH_ROWS(ROWS_MADE(rows), SUM_ROWS)
  if (columns == COLUMNS) {
#ifdef EPILOGUE_BODY
    // Once in the machine code: compilers take three times as long for one per row.
    if (last)
      SELDOM for (int i = 0; i < rows; ++i) {
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          global any_vector *target = (global any_vector *)(c + i * stride + v * VW);
          *target = VEPILOGUE(*target, index + i * stride + v * VW, column + v * VW, 1);
        }
      }
#endif
    return;
  }
  float edge_bias[COLUMNS];
  #pragma unroll
  for (int v = 0; v < VECTORS; ++v) *(any_vector *)(edge_bias + v * VW) = bias[v];
  SELDOM for (int i = 0; i < rows; ++i)
    SELDOM for (int j = 0; j < columns; ++j) {
      const int at = i * stride + j;
      const float result = edge[i][j] + (first ? edge_bias[j] : c[at]);
      c[at] = last ? EPILOGUE(result, index + at, column + j) : result;
    }
}

// c is f32. k is cut into parts of `part` elements, whose results follow one another in c (part_stride apart).
#define PARAMETERS                                                                                                  \
  IN(a), IN(b), IN(bias), OUT(c), INT(has_bias), INT(m), INT(n), INT(all_k), INT(transpose_a), INT(transpose_b),    \
  INT(a_batch), INT(b_batch), INT(c_batch), INT(tile_m), INT(tile_n), INT(block), INT(part), INT(parts),            \
  INT(part_stride), INT(panel_rows), INT(pass_m), LOCAL(float, packed) EPILOGUE_PARAMETERS
WORK_ITEM void matmul_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int batch = id2 / parts, which = id2 % parts;
  const int m0 = id1 * tile_m, n0 = id0 * tile_n;
  const int height = min(tile_m, m - m0), width = min(tile_n, n - n0);
  const int begin = which * part, end = min(all_k, begin + part);
  const int lda = transpose_a ? m : all_k, ldb = transpose_b ? all_k : n;
  const global storage *restrict from_a = PTR(a) + batch * a_batch;
  const global storage *restrict from_b = PTR(b) + batch * b_batch;
  global float *restrict to = PTR(c) + batch * c_batch + which * part_stride + m0 * n + n0;
  const int start_index = batch * c_batch + m0 * n + n0;
  local float *restrict packed_b = packed, *restrict packed_a = packed + tile_n * block;

  for (int k0 = begin; k0 == begin || k0 < end; k0 += block) {
    const int depth = min(block, end - k0);
    int j = 0;
    if (!transpose_b)
      for (; j + WIDE <= width; j += WIDE) pack_wide(from_b + k0 * ldb + n0 + j, ldb, depth, packed_b + j * depth);
    for (; j < width; j += VW) {
      const int panel = j / COLUMNS * COLUMNS;
      local float *restrict target = packed_b + panel * depth + (j - panel);
      if (transpose_b)
        pack_across(from_b + (n0 + j) * ldb + k0, ldb, VW, min(VW, width - j), depth, target, COLUMNS);
      else
        pack_along(from_b + k0 * ldb + n0 + j, ldb, VW, n - n0 - j, depth, target, COLUMNS);
    }
    for (int from = 0; from < height; from += pass_m) {
      const int end_row = min(height, from + pass_m);
      for (int i = from; i < end_row; i += panel_rows) {
        const int rows = min(panel_rows, end_row - i), made = ROWS_MADE(rows);
        local float *restrict target = packed_a + (i - from) * depth;
        if (transpose_a)
          pack_along(from_a + k0 * lda + m0 + i, lda, made, m - m0 - i, depth, target, made);
        else
          pack_across(from_a + (m0 + i) * lda + k0, lda, made, rows, depth, target, made);
      }
      for (int j = 0; j < width; j += COLUMNS) {
        VECTOR start[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          start[v] = (VECTOR)(0.0f);
          if (has_bias && k0 == begin) {
            float lanes[VW];
            SELDOM for (int l = 0; l < VW; ++l) lanes[l] = LOAD(bias, min(n0 + j + v * VW + l, n - 1));
            start[v] = *(any_vector *)lanes;
          }
        }
        for (int i = from; i < end_row; i += panel_rows)
          multiply(packed_a + (i - from) * depth, packed_b + j * depth, depth, to + i * n + j, n, min(panel_rows, end_row - i),
                   min(COLUMNS, width - j), k0 == begin, k0 + block >= end, start_index + i * n + j, n0 + j,
                   start EPILOGUE_ARGUMENTS);
      }
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_cpu(PARAMETERS) {
#include "arguments.clh"
  matmul_cpu_item(IDS, PARAMETERS);
}
