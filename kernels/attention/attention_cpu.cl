// Attention for CPUs: a work-item takes ROWS rows at a time and goes over the other side in tiles of TILE columns, whole pairs of
// vectors, whose scores are all that it holds. For the products lanes are columns: the other side lies in panels of VW columns,
// element after element. For the sums lanes are elements of rows, as they lie in memory, or packed to whole vectors. WIDTH and
// VALUES are the vectors of a row of q or k, and of v. A program has the kernel whose name in capitals is defined.
#include "attention.clh"
#include "transpose.clh"

#define UNROLL _Pragma("unroll")

// x {rows, width} as rows of whole vectors.
#ifdef ATTENTION_PACK_ROWS_CPU
kernel void attention_pack_rows_cpu(IN(x), OUT(packed), const int rows, const int width, const int stride, const int rows_per_item) {
  const int begin = (int)get_global_id(0) * rows_per_item, end = BLOCK_END(begin, rows_per_item, rows);
  for (int row = begin; row < end; ++row)
    for (int d = 0; d < stride; ++d) STORE(packed, row * stride + d, d < width ? LOAD(x, row * width + d) : 0.0f);
}
#endif

// x {lines, length, width} as {lines, panels, width, VW}; what is behind the length is 0.
#ifdef ATTENTION_PACK_PANELS_CPU
kernel void attention_pack_panels_cpu(IN(x), OUT(packed), const int length, const int width, const int panels) {
  const int item = (int)get_global_id(0), first = REMAINDER(item, panels) * VW, row = item / panels * length + first;
  for (int lane = 0; lane < VW; ++lane)
    for (int d = 0; d < width; ++d)
      STORE(packed, (item * width + d) * VW + lane, first + lane < length ? LOAD(x, (row + lane) * width + d) : 0.0f);
}
#endif

// tile[r][0..] = the products of rows, `width` elements each, with columns first..first + count of panels that begin at `base`.
#define PRODUCTS(tile, rows, panels, base, first, count, width)                                          \
  for (int c = 0; c < (count); c += 2 * VW) {                                                            \
    VFLOAT sum[ROWS][2];                                                                                 \
    UNROLL for (int r = 0; r < ROWS; ++r) sum[r][0] = sum[r][1] = (VFLOAT)(0.0f);                        \
    const int left = (base) + ((first) + c) * (width), right = left + VW * (width);                      \
    for (int d = 0; d < (width); ++d) {                                                                  \
      const VFLOAT a = VLOAD(panels, left + d * VW), b = VLOAD(panels, right + d * VW);                  \
      UNROLL for (int r = 0; r < ROWS; ++r) {                                                            \
        sum[r][0] = fma((VFLOAT)(rows[r][d]), a, sum[r][0]);                                             \
        sum[r][1] = fma((VFLOAT)(rows[r][d]), b, sum[r][1]);                                             \
      }                                                                                                  \
    }                                                                                                    \
    UNROLL for (int r = 0; r < ROWS; ++r) {                                                              \
      CLNET_CAT(vstore, VW)(sum[r][0], 0, &tile[r][c]);                                                  \
      CLNET_CAT(vstore, VW)(sum[r][1], 0, &tile[r][c + VW]);                                             \
    }                                                                                                    \
  }

// total[r] += sum of tile[r][c] times row first + c of x, rows of `vectors` vectors.
#define SUMS_OF(n, total, tile, x, first, count, vectors, v)                                             \
  {                                                                                                      \
    VFLOAT sum[ROWS][n];                                                                                 \
    UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int u = 0; u < n; ++u) sum[r][u] = (VFLOAT)(0.0f); \
    for (int c = 0; c < (count); ++c) {                                                                  \
      VFLOAT of[n];                                                                                      \
      UNROLL for (int u = 0; u < n; ++u) of[u] = VLOAD(x, (((first) + c) * (vectors) + (v) + u) * VW);   \
      UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int u = 0; u < n; ++u)                           \
          sum[r][u] = fma((VFLOAT)(tile[r][c]), of[u], sum[r][u]);                                       \
    }                                                                                                    \
    UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int u = 0; u < n; ++u) total[r][(v) + u] += sum[r][u]; \
  }
#define ADD_SUMS(total, tile, x, first, count, vectors)                                                  \
  {                                                                                                      \
    for (int v = 0; v + 1 < (vectors); v += 2) SUMS_OF(2, total, tile, x, first, count, vectors, v)      \
    if ((vectors) & 1) SUMS_OF(1, total, tile, x, first, count, vectors, (vectors) - 1)                  \
  }

// Row `row` of y, `width` elements of `total` times `factor`.
#define STORE_ROW(y, row, width, vectors, total, factor)                                                 \
  for (int v = 0; v < (vectors); ++v) {                                                                  \
    const VFLOAT value = total[v] * (factor);                                                            \
    const int at = (row) * (width) + v * VW, rest = (width) - v * VW;                                    \
    if (rest >= VW) VSTORE(y, at, value);                                                                \
    else VSTORE_PART(y, at, rest, value);                                                                \
  }

// Rows first..first + ROWS of x as floats; those behind the last are the last one again.
#define LOAD_ROWS(rows, x, first, last, width, factor)                                                   \
  for (int r = 0; r < ROWS; ++r)                                                                         \
    for (int d = 0; d < (width); ++d) rows[r][d] = LOAD(x, min((first) + r, (last)) * (width) + d) * (factor);

#if MASK
#define MASK_TILE(r, i, j) \
  for (int c = 0; c < count; ++c) tile[r][c] = MASKED(tile[r][c], first, i, j);
#else
#define MASK_TILE(r, i, j)
#endif

#if DROPOUT
#define DROP_WEIGHTS(r, i) \
  for (int c = 0; c < count; ++c) tile[r][c] *= KEPT(line, i, j0 + c);
#else
#define DROP_WEIGHTS(r, i)
#endif

// The scores of row r, query i, become weights, beside the sums of earlier tiles.
#define WEIGH_TILE(r, i)                                                                                               \
  {                                                                                                                    \
    MASK_TILE(r, i, j0 + c)                                                                                            \
    const int seen = causal ? min(count, (i) + ahead - j0 + 1) : count;                                                \
    for (int c = max(seen, 0); c < whole; ++c) tile[r][c] = -INFINITY;                                                 \
    VFLOAT peak = (VFLOAT)(-INFINITY), part = (VFLOAT)(0.0f);                                                          \
    for (int c = 0; c < whole; c += VW) peak = fmax(peak, CLNET_CAT(vload, VW)(0, &tile[r][c]));                       \
    const float now = fmax(most[r], clnet_lanes_max(peak)), base = now == -INFINITY ? 0.0f : now;                      \
    for (int c = 0; c < whole; c += VW) {                                                                              \
      const VFLOAT e = exp(CLNET_CAT(vload, VW)(0, &tile[r][c]) - base);                                               \
      part += e;                                                                                                       \
      CLNET_CAT(vstore, VW)(e, 0, &tile[r][c]);                                                                        \
    }                                                                                                                  \
    const float factor = exp(most[r] - base);                                                                          \
    sum[r] = sum[r] * factor + clnet_lanes_sum(part);                                                                  \
    for (int v = 0; v < VALUES; ++v) total[r][v] *= factor;                                                            \
    most[r] = now;                                                                                                     \
    DROP_WEIGHTS(r, i)                                                                                                 \
  }

// What row r is divided by, and what its gradients need.
#define INVERSE_SUM(r) (sum[r] == 0.0f ? 0.0f : 1.0f / sum[r])
#define STORE_SUM(r) STORE(sums, row0 + (r), sum[r] == 0.0f ? INFINITY : most[r] + log(sum[r]));

#ifdef ATTENTION_CPU
#define PARAMETERS                                                                                                  \
  IN(q), IN(k_panels), IN(v), OUT(y), OUT(sums), INT(panels), INT(blocks), INT(lines), INT(blocks_per_item),        \
  ATTENTION_PARAMETERS
WORK_ITEM void attention_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int begin = id0 * blocks_per_item, end = BLOCK_END(begin, blocks_per_item, blocks * lines);
  for (int block = begin; block < end; ++block) {
    const int line = block / blocks, i0 = REMAINDER(block, blocks) * ROWS, row0 = line * queries + i0;
    const int first_key = line / group * keys, first_panel = line / group * panels * VW * width, first = MASK_LINE(line);
    const int rows = min(ROWS, queries - i0), ahead = AHEAD, limit = causal ? min(keys, i0 + rows + ahead) : keys;
    float own[ROWS][WIDTH * VW], most[ROWS], sum[ROWS];
    VFLOAT total[ROWS][VALUES];
    LOAD_ROWS(own, q, row0, row0 + rows - 1, width, scale)
    for (int r = 0; r < ROWS; ++r) {
      most[r] = -INFINITY;
      sum[r] = 0.0f;
      for (int v = 0; v < VALUES; ++v) total[r][v] = (VFLOAT)(0.0f);
    }
    for (int j0 = 0; j0 < limit; j0 += TILE) {
      const int count = min(TILE, limit - j0), whole = (count + VW - 1) / VW * VW;
      float tile[ROWS][TILE];
      PRODUCTS(tile, own, k_panels, first_panel, j0, count, width)
      for (int r = 0; r < ROWS; ++r) {
        const int i = min(i0 + r, queries - 1);
        WEIGH_TILE(r, i)
      }
      ADD_SUMS(total, tile, v, first_key + j0, count, VALUES)
    }
    for (int r = 0; r < rows; ++r) {
      STORE_ROW(y, row0 + r, value_width, VALUES, total[r], INVERSE_SUM(r))
      STORE_SUM(r)
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_cpu(PARAMETERS) {
#include "arguments.clh"
  attention_cpu_item(IDS, PARAMETERS);
}
#endif

// Few queries, ROWS at most: each key is read once, as it lies in memory, and there is nothing to pack but rows shorter than a
// vector. The last vector of others ends with its row, and has elements of the one before. The products of VW keys are summed by
// transposing them.
#ifdef ATTENTION_FEW_QUERIES_CPU
#include "rows.clh"
#define VECTOR_OF(stride, u) min((u) * VW, (stride) - VW)

#if MASK == 1
static bool is_hidden(IN(mask), const int first, const int mask_query, const int queries) {
  for (int i = 0; i < queries; ++i)
    if (LOAD(mask, first + i * mask_query)) return false;
  return true;
}
#define HIDDEN(j) is_hidden(mask_base, mask_offset, first + (j) * mask_key, mask_query, queries)
#else
#define HIDDEN(j) false
#endif

// n vectors of the results of `rows` queries from vector u0 on: weights times rows of v, `count` from key j0 on.
#define FEW_SUMS(rows, n)                                                                                              \
  VFLOAT part[rows][n];                                                                                                \
  UNROLL for (int r = 0; r < rows; ++r) UNROLL for (int u = 0; u < n; ++u) part[r][u] = total[r][u0 + u];              \
  for (int c = 0; c < count; ++c) {                                                                                    \
    const int at = (first_key + j0 + c) * v_stride;                                                                    \
    UNROLL for (int u = 0; u < n; ++u) {                                                                               \
      const VFLOAT of = VLOAD(v, at + VECTOR_OF(v_stride, u0 + u));                                                    \
      UNROLL for (int r = 0; r < rows; ++r) part[r][u] = fma((VFLOAT)(tile[r][c]), of, part[r][u]);                    \
    }                                                                                                                  \
  }                                                                                                                    \
  UNROLL for (int r = 0; r < rows; ++r) UNROLL for (int u = 0; u < n; ++u) total[r][u0 + u] = part[r][u];
#define FEW_SUMS_OF_4(rows) FEW_SUMS(rows, 4)
#define FEW_SUMS_OF_1(rows) FEW_SUMS(rows, 1)

#define PARAMETERS                                                                                                  \
  IN(q), IN(k), IN(v), OUT(y), OUT(sums), INT(lines), INT(lines_per_item), INT(k_stride), INT(v_stride),            \
  ATTENTION_PARAMETERS
WORK_ITEM void attention_few_queries_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int begin = id0 * lines_per_item, end = BLOCK_END(begin, lines_per_item, lines);
  for (int line = begin; line < end; ++line) {
    const int row0 = line * queries, first_key = line / group * keys, first = MASK_LINE(line);
    // Keys behind a cache's length, and before a window.
    const int ahead = AHEAD;
    int from = 0, limit = causal ? min(keys, queries + ahead) : keys;
    while (limit > 0 && HIDDEN(limit - 1)) --limit;
    while (from < limit && HIDDEN(from)) ++from;
    float own[ROWS][WIDTH * VW], most[ROWS], sum[ROWS];
    VFLOAT total[ROWS][VALUES];
    for (int r = 0; r < queries; ++r) {
      for (int u = 0; u < WIDTH; ++u)
        for (int lane = 0; lane < VW; ++lane) {
          const int d = VECTOR_OF(k_stride, u) + lane;
          own[r][u * VW + lane] = d >= u * VW && d < width ? LOAD(q, (row0 + r) * width + d) * scale : 0.0f;
        }
      most[r] = -INFINITY;
      sum[r] = 0.0f;
      for (int u = 0; u < VALUES; ++u) total[r][u] = (VFLOAT)(0.0f);
    }
    for (int j0 = from; j0 < limit; j0 += TILE) {
      const int count = min(TILE, limit - j0), whole = (count + VW - 1) / VW * VW;
      float tile[ROWS][TILE];
      for (int c = 0; c < whole; c += VW)
        for (int r = 0; r < queries; ++r) {
          VFLOAT part[VW];
          UNROLL for (int lane = 0; lane < VW; ++lane) {
            const int at = (first_key + min(j0 + c + lane, limit - 1)) * k_stride;
            part[lane] = (VFLOAT)(0.0f);
            UNROLL for (int u = 0; u < WIDTH; ++u)
              part[lane] = fma(CLNET_CAT(vload, VW)(u, own[r]), VLOAD(k, at + VECTOR_OF(k_stride, u)), part[lane]);
          }
          TRANSPOSE(part)
          UNROLL for (int lane = 1; lane < VW; ++lane) part[0] += part[lane];
          CLNET_CAT(vstore, VW)(part[0], 0, &tile[r][c]);
        }
      for (int r = 0; r < queries; ++r) WEIGH_TILE(r, r)
      for (int u0 = 0; u0 + 3 < VALUES; u0 += 4) WITH_ROWS(queries, FEW_SUMS_OF_4)
      for (int u0 = VALUES / 4 * 4; u0 < VALUES; ++u0) WITH_ROWS(queries, FEW_SUMS_OF_1)
    }
    for (int r = 0; r < queries; ++r) {
      const int row = (row0 + r) * value_width;
      for (int u = 0; u < VALUES; ++u) {
        const VFLOAT value = total[r][u] * INVERSE_SUM(r);
        const int at = row + VECTOR_OF(v_stride, u);
        if (value_width >= VW) VSTORE(y, at, value);
        else VSTORE_PART(y, at, value_width, value);
      }
      STORE_SUM(r)
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_few_queries_cpu(PARAMETERS) {
#include "arguments.clh"
  attention_few_queries_cpu_item(IDS, PARAMETERS);
}
#endif

#if DROPOUT
#define DROP_TILE(r, i, j)                        \
  for (int c = 0; c < count; ++c) {               \
    const float kept = KEPT(line, i, j);          \
    towards[r][c] *= kept;                        \
    dropped_tile[c] = kept;                       \
  }
#define KEPT_LANES(c) CLNET_CAT(vload, VW)(0, dropped_tile + (c))
#else
#define DROP_TILE(r, i, j)
#define KEPT_LANES(c) 1.0f
#endif

// Lanes c.. of row r: makes weights of the scores in `tile`, and the scores' gradients of those of the weights in `towards`.
#define WEIGHTS(r, c, sums_of, delta_of, hidden)                                                         \
  {                                                                                                      \
    const VFLOAT score = CLNET_CAT(vload, VW)(0, &tile[r][c]), to = CLNET_CAT(vload, VW)(0, &towards[r][c]); \
    const VFLOAT weight = select(exp(score - (sums_of)), (VFLOAT)(0.0f), hidden);                        \
    CLNET_CAT(vstore, VW)(weight * (to - (delta_of)), 0, &towards[r][c]);                                \
    CLNET_CAT(vstore, VW)(weight * KEPT_LANES(c), 0, &tile[r][c]);                                       \
  }
#define LANES(name)                                                \
  int name##_of[VW];                                               \
  for (int lane = 0; lane < VW; ++lane) name##_of[lane] = lane;    \
  const VINT name = CLNET_CAT(vload, VW)(0, name##_of);

#ifdef ATTENTION_BACKWARD_QUERIES_CPU
#define PARAMETERS                                                                                                  \
  IN(q), IN(k_panels), IN(v_panels), IN(k), IN(g), IN(sums), IN(delta), OUT(dq), INT(panels), INT(blocks),          \
  INT(lines), INT(blocks_per_item), ATTENTION_PARAMETERS
WORK_ITEM void attention_backward_queries_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int begin = id0 * blocks_per_item, end = BLOCK_END(begin, blocks_per_item, blocks * lines);
  LANES(lanes)
  for (int block = begin; block < end; ++block) {
    const int line = block / blocks, i0 = REMAINDER(block, blocks) * ROWS, row0 = line * queries + i0;
    const int first_key = line / group * keys, first_panel = line / group * panels * VW, first = MASK_LINE(line);
    const int rows = min(ROWS, queries - i0), ahead = AHEAD, limit = causal ? min(keys, i0 + rows + ahead) : keys;
    float own[ROWS][WIDTH * VW], own_g[ROWS][VALUES * VW];
    VFLOAT total[ROWS][WIDTH];
    LOAD_ROWS(own, q, row0, row0 + rows - 1, width, scale)
    LOAD_ROWS(own_g, g, row0, row0 + rows - 1, value_width, 1.0f)
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < WIDTH; ++v) total[r][v] = (VFLOAT)(0.0f);
    for (int j0 = 0; j0 < limit; j0 += TILE) {
      const int count = min(TILE, limit - j0);
      float tile[ROWS][TILE], towards[ROWS][TILE];
#if DROPOUT
      float dropped_tile[TILE];
#endif
      PRODUCTS(tile, own, k_panels, first_panel * width, j0, count, width)
      PRODUCTS(towards, own_g, v_panels, first_panel * value_width, j0, count, value_width)
      for (int r = 0; r < ROWS; ++r) {
        const int i = min(i0 + r, queries - 1);
        const float sums_of = LOAD(sums, line * queries + i), delta_of = LOAD(delta, line * queries + i);
        MASK_TILE(r, i, j0 + c)
        DROP_TILE(r, i, j0 + c)
        for (int c = 0; c < count; c += VW)
          WEIGHTS(r, c, (VFLOAT)(sums_of), (VFLOAT)(delta_of), lanes > (VINT)((causal ? i + ahead : keys) - j0 - c))
      }
      ADD_SUMS(total, towards, k, first_key + j0, count, WIDTH)
    }
    for (int r = 0; r < rows; ++r) STORE_ROW(dq, row0 + r, width, WIDTH, total[r], scale)
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_backward_queries_cpu(PARAMETERS) {
#include "arguments.clh"
  attention_backward_queries_cpu_item(IDS, PARAMETERS);
}
#endif

// Rows are keys here, and columns the queries of all lines that share them.
#ifdef ATTENTION_BACKWARD_KEYS_CPU
#define PARAMETERS                                                                                                  \
  IN(k), IN(v), IN(q_panels), IN(g_panels), IN(q), IN(g), IN(sums), IN(delta), OUT(dk), OUT(dv), INT(panels),       \
  INT(blocks), INT(lines), INT(blocks_per_item), ATTENTION_PARAMETERS
WORK_ITEM void attention_backward_keys_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int begin = id0 * blocks_per_item, end = BLOCK_END(begin, blocks_per_item, blocks * lines);
  LANES(lanes)
  for (int block = begin; block < end; ++block) {
    const int key_line = block / blocks, j0 = REMAINDER(block, blocks) * ROWS, row0 = key_line * keys + j0;
    const int rows = min(ROWS, keys - j0), ahead = AHEAD;
    float own[ROWS][WIDTH * VW], own_v[ROWS][VALUES * VW];
    VFLOAT total[ROWS][WIDTH], total_v[ROWS][VALUES];
    LOAD_ROWS(own, k, row0, row0 + rows - 1, width, scale)
    LOAD_ROWS(own_v, v, row0, row0 + rows - 1, value_width, 1.0f)
    for (int r = 0; r < ROWS; ++r) {
      for (int u = 0; u < WIDTH; ++u) total[r][u] = (VFLOAT)(0.0f);
      for (int u = 0; u < VALUES; ++u) total_v[r][u] = (VFLOAT)(0.0f);
    }
    for (int line = key_line * group; line < key_line * group + group; ++line) {
      const int first_panel = line * panels * VW, first_query = line * queries, first = MASK_LINE(line);
      for (int i0 = causal ? max(j0 - ahead, 0) / TILE * TILE : 0; i0 < queries; i0 += TILE) {
        const int count = min(TILE, queries - i0);
        float tile[ROWS][TILE], towards[ROWS][TILE];
#if DROPOUT
        float dropped_tile[TILE];
#endif
        PRODUCTS(tile, own, q_panels, first_panel * width, i0, count, width)
        PRODUCTS(towards, own_v, g_panels, first_panel * value_width, i0, count, value_width)
        for (int r = 0; r < ROWS; ++r) {
          const int j = min(j0 + r, keys - 1);
          MASK_TILE(r, i0 + c, j)
          DROP_TILE(r, i0 + c, j)
          for (int c = 0; c < count; c += VW) {
            VFLOAT sums_of, delta_of;
            if (count - c >= VW) {
              sums_of = VLOAD(sums, first_query + i0 + c);
              delta_of = VLOAD(delta, first_query + i0 + c);
            } else {
              VLOAD_PART(sums_of, sums, first_query + i0 + c, count - c, 0.0f);
              VLOAD_PART(delta_of, delta, first_query + i0 + c, count - c, 0.0f);
            }
            WEIGHTS(r, c, sums_of, delta_of, lanes < (VINT)((causal ? j - ahead : 0) - i0 - c))
          }
        }
        ADD_SUMS(total, towards, q, first_query + i0, count, WIDTH)
        ADD_SUMS(total_v, tile, g, first_query + i0, count, VALUES)
      }
    }
    for (int r = 0; r < rows; ++r) {
      STORE_ROW(dk, row0 + r, width, WIDTH, total[r], scale)
      STORE_ROW(dv, row0 + r, value_width, VALUES, total_v[r], 1.0f)
    }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_backward_keys_cpu(PARAMETERS) {
#include "arguments.clh"
  attention_backward_keys_cpu_item(IDS, PARAMETERS);
}
#endif
