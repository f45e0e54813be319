// Attention for GPUs: a work-item has one row in registers (a query, or a key in the backward pass of keys and values), and its
// group goes over the other side in tiles of TILE rows in local memory, which all of its work-items read at once. WIDTH and VALUES
// are elements of a row. A program has the kernel whose name in capitals is defined.
#include "attention.clh"

#define UNROLL _Pragma("unroll")
#define ITEM ((int)get_local_id(0))

// `count` rows of x from row `first` on.
#define LOAD_TILE(tile, x, first, count, width) \
  for (int e = ITEM; e < (count) * (width); e += GROUP) tile[e] = LOAD(x, (first) * (width) + e);
#define LOAD_ROW(name, x, row, width, factor) \
  float name[width];                          \
  UNROLL for (int d = 0; d < width; ++d) name[d] = LOAD(x, (row) * width + d) * (factor);
#define ZERO_ROW(name, width) \
  float name[width];          \
  UNROLL for (int d = 0; d < width; ++d) name[d] = 0.0f;
#define DOT(name, row, tile, c, width) \
  float name = 0.0f;                   \
  UNROLL for (int d = 0; d < width; ++d) name = fma(row[d], tile[(c) * width + d], name);
#define ADD_ROW(total, factor, tile, c, width) \
  UNROLL for (int d = 0; d < width; ++d) total[d] = fma(factor, tile[(c) * width + d], total[d]);
#define STORE_ROW(y, row, total, width, factor) \
  UNROLL for (int d = 0; d < width; ++d) STORE(y, (row) * width + d, total[d] * (factor));

#ifdef ATTENTION_GPU
kernel void attention_gpu(IN(q), IN(k), IN(v), OUT(y), OUT(sums), const int blocks, ATTENTION_PARAMETERS) {
  local float k_tile[TILE * WIDTH], v_tile[TILE * VALUES];
  const int block = (int)get_group_id(0), line = block / blocks, i0 = REMAINDER(block, blocks) * GROUP;
  const int i = min(i0 + ITEM, queries - 1), row = line * queries + i, first_key = line / group * keys;
  const int first = MASK_LINE(line), limit = causal ? min(keys, i0 + GROUP) : keys;
  LOAD_ROW(own, q, row, WIDTH, 1.0f)
  ZERO_ROW(total, VALUES)
  float most = -INFINITY, sum = 0.0f;
  for (int j0 = 0; j0 < limit; j0 += TILE) {
    const int count = min(TILE, limit - j0);
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD_TILE(k_tile, k, first_key + j0, count, WIDTH)
    LOAD_TILE(v_tile, v, first_key + j0, count, VALUES)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = 0; c < count; ++c) {
      DOT(product, own, k_tile, c, WIDTH)
      const float score = SCORE(product, first, i, j0 + c);
      if (score == -INFINITY) continue;
      if (score > most) {
        const float factor = exp(most - score);
        sum *= factor;
        UNROLL for (int d = 0; d < VALUES; ++d) total[d] *= factor;
        most = score;
      }
      const float weight = exp(score - most);
      sum += weight;
      ADD_ROW(total, weight * KEPT(line, i, j0 + c), v_tile, c, VALUES)
    }
  }
  if (i0 + ITEM >= queries) return;
  STORE_ROW(y, row, total, VALUES, sum == 0.0f ? 0.0f : 1.0f / sum)
  STORE(sums, row, sum == 0.0f ? INFINITY : most + log(sum));
}
#endif

#ifdef ATTENTION_QUERIES_BACKWARD_GPU
kernel void attention_queries_backward_gpu(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dq), const int blocks,
                                           ATTENTION_PARAMETERS) {
  local float k_tile[TILE * WIDTH], v_tile[TILE * VALUES];
  const int block = (int)get_group_id(0), line = block / blocks, i0 = REMAINDER(block, blocks) * GROUP;
  const int i = min(i0 + ITEM, queries - 1), row = line * queries + i, first_key = line / group * keys;
  const int first = MASK_LINE(line), limit = causal ? min(keys, i0 + GROUP) : keys;
  LOAD_ROW(own, q, row, WIDTH, 1.0f)
  LOAD_ROW(own_g, g, row, VALUES, 1.0f)
  ZERO_ROW(total, WIDTH)
  const float sums_of = LOAD(sums, row), delta_of = LOAD(delta, row);
  for (int j0 = 0; j0 < limit; j0 += TILE) {
    const int count = min(TILE, limit - j0);
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD_TILE(k_tile, k, first_key + j0, count, WIDTH)
    LOAD_TILE(v_tile, v, first_key + j0, count, VALUES)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = 0; c < count; ++c) {
      DOT(product, own, k_tile, c, WIDTH)
      const float weight = exp(SCORE(product, first, i, j0 + c) - sums_of);
      DOT(towards, own_g, v_tile, c, VALUES)
      ADD_ROW(total, weight * (towards * KEPT(line, i, j0 + c) - delta_of), k_tile, c, WIDTH)
    }
  }
  if (i0 + ITEM < queries) STORE_ROW(dq, row, total, WIDTH, scale)
}
#endif

#ifdef ATTENTION_KEYS_BACKWARD_GPU
kernel void attention_keys_backward_gpu(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dk), OUT(dv), const int blocks,
                                        ATTENTION_PARAMETERS) {
  local float q_tile[TILE * WIDTH], g_tile[TILE * VALUES], sums_tile[TILE], delta_tile[TILE];
  const int block = (int)get_group_id(0), key_line = block / blocks, j0 = REMAINDER(block, blocks) * GROUP;
  const int j = min(j0 + ITEM, keys - 1), key = key_line * keys + j;
  LOAD_ROW(own, k, key, WIDTH, 1.0f)
  LOAD_ROW(own_v, v, key, VALUES, 1.0f)
  ZERO_ROW(total, WIDTH)
  ZERO_ROW(total_v, VALUES)
  for (int line = key_line * group; line < key_line * group + group; ++line) {
    const int first_row = line * queries, first = MASK_LINE(line);
    for (int i0 = causal ? j0 : 0; i0 < queries; i0 += TILE) {
      const int count = min(TILE, queries - i0);
      barrier(CLK_LOCAL_MEM_FENCE);
      LOAD_TILE(q_tile, q, first_row + i0, count, WIDTH)
      LOAD_TILE(g_tile, g, first_row + i0, count, VALUES)
      LOAD_TILE(sums_tile, sums, first_row + i0, count, 1)
      LOAD_TILE(delta_tile, delta, first_row + i0, count, 1)
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int c = 0; c < count; ++c) {
        const int i = i0 + c;
        DOT(product, own, q_tile, c, WIDTH)
        const float weight = exp(SCORE(product, first, i, j) - sums_tile[c]), kept = KEPT(line, i, j);
        DOT(towards, own_v, g_tile, c, VALUES)
        ADD_ROW(total_v, weight * kept, g_tile, c, VALUES)
        ADD_ROW(total, weight * (towards * kept - delta_tile[c]), q_tile, c, WIDTH)
      }
    }
  }
  if (j0 + ITEM >= keys) return;
  STORE_ROW(dk, key, total, WIDTH, scale)
  STORE_ROW(dv, key, total_v, VALUES, 1.0f)
}
#endif
