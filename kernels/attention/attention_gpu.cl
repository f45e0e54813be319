// Attention for GPUs: a work-group has a block of TM rows (queries, or keys in the backward pass of keys and values) and goes over
// the other side in blocks of TN. A work-item holds RM x RN of a block's scores, then RM rows of its share of the columns of the
// result. Both sides come through local memory: a group's own rows stay there, of the others there is a slice at a time, TK
// elements of all rows for the scores and whole rows for the result. WIDTH and VALUES are elements of a row. A program has the
// kernel whose name in capitals is defined.
#include "attention.clh"

#define UNROLL _Pragma("unroll")
#define ITEM ((int)get_local_id(0))
#define COLUMNS (TN / RN)
#define GROUP (TM / RM * COLUMNS)
// The place in the block of an item's rows and columns: neighbours have neighbouring ones, whose banks differ.
#define ROW(i) (ITEM / COLUMNS + (i) * (TM / RM))
#define COLUMN(j) (ITEM % COLUMNS + (j) * COLUMNS)

// Rows of whole slices, and an odd number of vectors of 4 apart.
#define PADDED(width) (((width) + TK - 1) / TK * TK)
#define STRIDE(length) ((length) / 4 % 2 ? (length) : (length) + 4)
#define OWN_ROW(width) STRIDE(PADDED(width))
#define WEIGHTS_ROW STRIDE(TN)
// Columns of the result that an item holds, VECTOR of them side by side, and those that the group holds.
#define SHARE(width) (((width) + COLUMNS - 1) / COLUMNS)
#define HELD(width) (SHARE(width) <= 2 ? SHARE(width) : (SHARE(width) + 3) / 4 * 4)
#define VECTOR(width) (HELD(width) < 4 ? HELD(width) : 4)
#define ACROSS(width) (HELD(width) * COLUMNS)
#define HELD_COLUMN(d, width) \
  ((d) / VECTOR(width) * (COLUMNS * VECTOR(width)) + ITEM % COLUMNS * VECTOR(width) + (d) % VECTOR(width))
// Whole rows in a slice.
#define DEEP(width) (ACROSS(width) <= 64 ? 32 : ACROSS(width) <= 128 ? 16 : 8)
#define MOST_SLICE(a, b) ((a) > (b) ? (a) : (b))
#define SLICE MOST_SLICE(TN *STRIDE(TK), 2048)

#define LOCAL_FLOATS(name, count) local float name[count] __attribute__((aligned(16)));

// `columns` elements of `rows` rows of x from row `first` and element `from` on; 0 beyond `count` rows and `width`.
#define STAGE(tile, stride, rows, columns, x, first, count, width, from)                                             \
  _Pragma("unroll 4")                                                                                                \
  for (int e = ITEM; e < (rows) * (columns); e += GROUP) {                                                           \
    const int r = e / (columns), d = e - r * (columns);                                                              \
    tile[r * (stride) + d] =                                                                                         \
        r < (count) && ((width) % (columns) == 0 || (from) + d < (width)) ? LOAD(x, ((first) + r) * (width) + (from) + d) : 0.0f; \
  }
#define STAGE_OWN(tile, x, first, count, width) STAGE(tile, OWN_ROW(width), TM, PADDED(width), x, first, count, width, 0)

static __attribute__((always_inline)) inline void attention_take(float *to, const local float *from, const int count) {
  if (count == 4) {
    const float4 taken = *(const local float4 *)from;
    to[0] = taken.x, to[1] = taken.y, to[2] = taken.z, to[3] = taken.w;
  } else if (count == 2) {
    const float2 taken = *(const local float2 *)from;
    to[0] = taken.x, to[1] = taken.y;
  } else {
    to[0] = from[0];
  }
}

// Adds the products of the group's own rows and of a slice to those that the item holds.
static __attribute__((always_inline)) inline void attention_multiply(float (*product)[RN], const local float *own, const int stride, const local float *slice) {
  // Not unrolled: compilers would fetch ahead into more registers than there are.
  _Pragma("unroll 1") for (int d = 0; d < TK; d += 4) {
    float left[RM][4], right[4];
    UNROLL for (int i = 0; i < RM; ++i) attention_take(left[i], own + ROW(i) * stride + d, 4);
    UNROLL for (int j = 0; j < RN; ++j) {
      attention_take(right, slice + COLUMN(j) * STRIDE(TK) + d, 4);
      UNROLL for (int i = 0; i < RM; ++i)
        UNROLL for (int e = 0; e < 4; ++e) product[i][j] = fma(left[i][e], right[e], product[i][j]);
    }
  }
}

// product += own rows * transposed rows of x. Begins with a barrier, behind which the slice of before is not read any more.
#define MULTIPLY(product, own, x, first, count, width)                                   \
  for (int from = 0; from < (width); from += TK) {                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    STAGE(slice, STRIDE(TK), TN, TK, x, first, count, width, from)                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    attention_multiply(product, own + from, OWN_ROW(width), slice);                      \
  }

// total += weights * rows of x. Begins with a barrier, behind which all weights are there.
#define ADD_ROWS(total, x, first, count, width)                                                                    \
  for (int from = 0; from < (count); from += DEEP(width)) {                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    STAGE(slice, ACROSS(width), DEEP(width), ACROSS(width), x, (first) + from, (count) - from, width, 0)           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    _Pragma("unroll 1") for (int c = 0; c < DEEP(width); c += 4) {                                                 \
      float left[RM][4], right[HELD(width)];                                                                       \
      UNROLL for (int i = 0; i < RM; ++i) attention_take(left[i], weights + ROW(i) * WEIGHTS_ROW + from + c, 4);   \
      UNROLL for (int e = 0; e < 4; ++e) {                                                                         \
        UNROLL for (int d = 0; d < HELD(width); d += VECTOR(width))                                                \
          attention_take(right + d, slice + (c + e) * ACROSS(width) + HELD_COLUMN(d, width), VECTOR(width));       \
        UNROLL for (int i = 0; i < RM; ++i)                                                                        \
          UNROLL for (int d = 0; d < HELD(width); ++d) total[i][d] = fma(left[i][e], right[d], total[i][d]);       \
      }                                                                                                            \
    }                                                                                                              \
  }

// Without UNROLL: PoCL 3.1 makes NaN of sums that unrolled loops set before a barrier.
#define ZEROS(name, count)     \
  float name[RM][count];       \
  for (int i = 0; i < RM; ++i) \
    for (int d = 0; d < (count); ++d) name[i][d] = 0.0f;
#define STORE_ROW(y, row, total, width, factor)                \
  UNROLL for (int d = 0; d < HELD(width); ++d)                 \
    if (HELD_COLUMN(d, width) < (width)) STORE(y, (row) * (width) + HELD_COLUMN(d, width), (total)[d] * (factor));

#ifdef ATTENTION_GPU
kernel void attention_gpu(IN(q), IN(k), IN(v), OUT(y), OUT(sums), const int blocks, ATTENTION_PARAMETERS) {
  LOCAL_FLOATS(own, TM * OWN_ROW(WIDTH))
  LOCAL_FLOATS(slice, SLICE)
  LOCAL_FLOATS(weights, TM * WEIGHTS_ROW)
  LOCAL_FLOATS(peers, TM * COLUMNS)
  const int block = (int)get_group_id(0), line = block / blocks, i0 = REMAINDER(block, blocks) * TM;
  const int first_row = line * queries, first_key = line / group * keys;
  const int first = MASK_LINE(line), ahead = AHEAD, limit = causal ? min(keys, min(i0 + TM, queries) + ahead) : keys;
  STAGE_OWN(own, q, first_row + i0, queries - i0, WIDTH)
  ZEROS(total, HELD(VALUES))
  float most[RM], sum[RM];
  UNROLL for (int i = 0; i < RM; ++i) most[i] = -INFINITY, sum[i] = 0.0f;
  for (int j0 = 0; j0 < limit; j0 += TN) {
    const int count = min(TN, limit - j0);
    ZEROS(score, RN)
    MULTIPLY(score, own, k, first_key + j0, count, WIDTH)
    UNROLL for (int r = 0; r < RM; ++r) {
      const int i = min(i0 + ROW(r), queries - 1);
      float largest = -INFINITY;
      UNROLL for (int c = 0; c < RN; ++c) {
        const int j = j0 + COLUMN(c);
        score[r][c] = COLUMN(c) < count ? SCORE(score[r][c], first, i, j) : -INFINITY;
        largest = fmax(largest, score[r][c]);
      }
      peers[ROW(r) * COLUMNS + COLUMN(0)] = largest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int r = 0; r < RM; ++r) {
      const int i = i0 + ROW(r);
      float largest = most[r];
      _Pragma("unroll 2") for (int c = 0; c < COLUMNS; ++c) largest = fmax(largest, peers[ROW(r) * COLUMNS + c]);
      const float factor = largest == most[r] ? 1.0f : exp(most[r] - largest);
      most[r] = largest;
      sum[r] *= factor;
      UNROLL for (int d = 0; d < HELD(VALUES); ++d) total[r][d] *= factor;
      UNROLL for (int c = 0; c < RN; ++c) {
        const float weight = score[r][c] == -INFINITY ? 0.0f : exp(score[r][c] - largest);
        sum[r] += weight;
        weights[ROW(r) * WEIGHTS_ROW + COLUMN(c)] = weight * KEPT(line, i, j0 + COLUMN(c));
      }
    }
    ADD_ROWS(total, v, first_key + j0, count, VALUES)
  }
  UNROLL for (int r = 0; r < RM; ++r) peers[ROW(r) * COLUMNS + COLUMN(0)] = sum[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int r = 0; r < RM; ++r) {
    const int row = first_row + i0 + ROW(r);
    if (i0 + ROW(r) >= queries) continue;
    float all = 0.0f;
    _Pragma("unroll 2") for (int c = 0; c < COLUMNS; ++c) all += peers[ROW(r) * COLUMNS + c];
    const float factor = all == 0.0f ? 0.0f : 1.0f / all;
    STORE_ROW(y, row, total[r], VALUES, factor)
    if (COLUMN(0) == 0) {
      STORE(sums, row, all == 0.0f ? INFINITY : most[r] + log(all));
    }
  }
}
#endif

#ifdef ATTENTION_BACKWARD_QUERIES_GPU
kernel void attention_backward_queries_gpu(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dq), const int blocks,
                                           ATTENTION_PARAMETERS) {
  LOCAL_FLOATS(own, TM * OWN_ROW(WIDTH))
  LOCAL_FLOATS(own_g, TM * OWN_ROW(VALUES))
  LOCAL_FLOATS(slice, SLICE)
  LOCAL_FLOATS(weights, TM * WEIGHTS_ROW)
  const int block = (int)get_group_id(0), line = block / blocks, i0 = REMAINDER(block, blocks) * TM;
  const int first_row = line * queries, first_key = line / group * keys;
  const int first = MASK_LINE(line), ahead = AHEAD, limit = causal ? min(keys, min(i0 + TM, queries) + ahead) : keys;
  STAGE_OWN(own, q, first_row + i0, queries - i0, WIDTH)
  STAGE_OWN(own_g, g, first_row + i0, queries - i0, VALUES)
  ZEROS(total, HELD(WIDTH))
  for (int j0 = 0; j0 < limit; j0 += TN) {
    const int count = min(TN, limit - j0);
    ZEROS(score, RN)
    ZEROS(towards, RN)
    MULTIPLY(score, own, k, first_key + j0, count, WIDTH)
    MULTIPLY(towards, own_g, v, first_key + j0, count, VALUES)
    UNROLL for (int r = 0; r < RM; ++r) {
      const int i = min(i0 + ROW(r), queries - 1);
      const float sums_of = LOAD(sums, first_row + i), delta_of = LOAD(delta, first_row + i);
      UNROLL for (int c = 0; c < RN; ++c) {
        const int j = j0 + COLUMN(c);
        weights[ROW(r) * WEIGHTS_ROW + COLUMN(c)] =
            COLUMN(c) < count
                ? exp(SCORE(score[r][c], first, i, j) - sums_of) * (towards[r][c] * KEPT(line, i, j) - delta_of)
                : 0.0f;
      }
    }
    ADD_ROWS(total, k, first_key + j0, count, WIDTH)
  }
  UNROLL for (int r = 0; r < RM; ++r)
    if (i0 + ROW(r) < queries) {
      STORE_ROW(dq, first_row + i0 + ROW(r), total[r], WIDTH, scale)
    }
}
#endif

#ifdef ATTENTION_BACKWARD_KEYS_GPU
kernel void attention_backward_keys_gpu(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dk), OUT(dv), const int blocks,
                                        ATTENTION_PARAMETERS) {
  LOCAL_FLOATS(own, TM * OWN_ROW(WIDTH))
  LOCAL_FLOATS(own_v, TM * OWN_ROW(VALUES))
  LOCAL_FLOATS(slice, SLICE)
  LOCAL_FLOATS(weights, TM * WEIGHTS_ROW)
  const int block = (int)get_group_id(0), key_line = block / blocks, j0 = REMAINDER(block, blocks) * TM;
  const int first_key = key_line * keys, ahead = AHEAD;
  STAGE_OWN(own, k, first_key + j0, keys - j0, WIDTH)
  STAGE_OWN(own_v, v, first_key + j0, keys - j0, VALUES)
  ZEROS(total, HELD(WIDTH))
  ZEROS(total_v, HELD(VALUES))
  for (int line = key_line * group; line < key_line * group + group; ++line) {
    const int first_row = line * queries, first = MASK_LINE(line);
    for (int i0 = causal ? max(j0 - ahead, 0) : 0; i0 < queries; i0 += TN) {
      const int count = min(TN, queries - i0);
      ZEROS(score, RN)
      ZEROS(towards, RN)
      MULTIPLY(score, own, q, first_row + i0, count, WIDTH)
      MULTIPLY(towards, own_v, g, first_row + i0, count, VALUES)
      UNROLL for (int c = 0; c < RN; ++c) {
        const int i = i0 + COLUMN(c);
        const bool inside = COLUMN(c) < count;
        const float sums_of = inside ? LOAD(sums, first_row + i) : INFINITY;
        const float delta_of = inside ? LOAD(delta, first_row + i) : 0.0f;
        UNROLL for (int r = 0; r < RM; ++r) {
          const int j = min(j0 + ROW(r), keys - 1);
          const float weight = inside ? exp(SCORE(score[r][c], first, i, j) - sums_of) : 0.0f;
          const float kept = KEPT(line, i, j);
          weights[ROW(r) * WEIGHTS_ROW + COLUMN(c)] = weight * kept;
          score[r][c] = weight * (towards[r][c] * kept - delta_of);
        }
      }
      ADD_ROWS(total_v, g, first_row + i0, count, VALUES)
      barrier(CLK_LOCAL_MEM_FENCE);
      UNROLL for (int r = 0; r < RM; ++r)
        UNROLL for (int c = 0; c < RN; ++c) weights[ROW(r) * WEIGHTS_ROW + COLUMN(c)] = score[r][c];
      ADD_ROWS(total, q, first_row + i0, count, WIDTH)
    }
  }
  UNROLL for (int r = 0; r < RM; ++r)
    if (j0 + ROW(r) < keys) {
      STORE_ROW(dk, first_key + j0 + ROW(r), total[r], WIDTH, scale)
      STORE_ROW(dv, first_key + j0 + ROW(r), total_v[r], VALUES, 1.0f)
    }
}
#endif
