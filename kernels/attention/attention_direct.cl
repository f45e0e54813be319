// The reference solver: scores are computed wherever they are used. A program has the kernel whose name in capitals is defined.
#include "attention.clh"

// sum of a[a0 + d] b[b0 + d] over d < count, as a new variable.
#define DOT(name, a, a0, b, b0, count) \
  float name = 0.0f;                   \
  for (int d_ = 0; d_ < (count); ++d_) name += LOAD(a, (a0) + d_) * LOAD(b, (b0) + d_);

// How many keys query i may see.
#define SEEN_KEYS(i) (causal ? min(keys, (i) + 1 + ahead) : keys)

// The logarithm of the sum of each row's exponentials; infinity where all are 0, so that the weights are.
#ifdef ATTENTION_SUMS_DIRECT
kernel void attention_sums_direct(IN(q), IN(k), OUT(sums), const int rows, ATTENTION_PARAMETERS) {
  const int row = (int)get_global_id(0), ahead = AHEAD;
  if (row >= rows) return;
  const int line = row / queries, i = REMAINDER(row, queries), first_key = line / group * keys, first = MASK_LINE(line);
  float most = -INFINITY, sum = 0.0f, lost = 0.0f;
  for (int j = 0; j < SEEN_KEYS(i); ++j) {
    DOT(product, q, row * width, k, (first_key + j) * width, width)
    most = fmax(most, SCORE(product, first, i, j));
  }
  // Not 0 by a condition on the score: LLVM 18 in PoCL 6.0 aborts over that.
  const float base = most == -INFINITY ? 0.0f : most;
  for (int j = 0; j < SEEN_KEYS(i); ++j) {
    DOT(product, q, row * width, k, (first_key + j) * width, width)
    ADD_BLOCK(float, sum, lost, exp(SCORE(product, first, i, j) - base));
  }
  STORE(sums, row, sum == 0.0f ? INFINITY : most + log(sum));
}
#endif

#ifdef ATTENTION_VALUES_DIRECT
kernel void attention_values_direct(IN(q), IN(k), IN(v), IN(sums), OUT(y), const int count, ATTENTION_PARAMETERS) {
  const int at = (int)get_global_id(0), ahead = AHEAD;
  if (at >= count) return;
  const int row = at / value_width, line = row / queries, i = REMAINDER(row, queries), first_key = line / group * keys;
  const int first = MASK_LINE(line);
  const float row_sum = LOAD(sums, row);
  float total = 0.0f, lost = 0.0f;
  for (int j = 0; j < SEEN_KEYS(i); ++j) {
    DOT(product, q, row * width, k, (first_key + j) * width, width)
    const float weight = exp(SCORE(product, first, i, j) - row_sum) * KEPT(line, i, j);
    ADD_BLOCK(float, total, lost, weight * LOAD(v, (first_key + j) * value_width + REMAINDER(at, value_width)));
  }
  STORE(y, at, total);
}
#endif

// The gradient of a score, of whose weight's kept value g v^T is the gradient; delta is each row's sum of gradient times output.
#define SCORE_GRADIENT(weight, line, row, i, key, j)                              \
  DOT(towards, g, (row) * value_width, v, (key) * value_width, value_width)       \
  const float score_gradient = weight * (towards * KEPT(line, i, j) - LOAD(delta, row));

#ifdef ATTENTION_BACKWARD_QUERIES_DIRECT
kernel void attention_backward_queries_direct(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dq), const int count,
                                              ATTENTION_PARAMETERS) {
  const int at = (int)get_global_id(0), ahead = AHEAD;
  if (at >= count) return;
  const int row = at / width, line = row / queries, i = REMAINDER(row, queries), first_key = line / group * keys;
  const int first = MASK_LINE(line);
  float total = 0.0f, lost = 0.0f;
  for (int j = 0; j < SEEN_KEYS(i); ++j) {
    DOT(product, q, row * width, k, (first_key + j) * width, width)
    const float weight = exp(SCORE(product, first, i, j) - LOAD(sums, row));
    SCORE_GRADIENT(weight, line, row, i, first_key + j, j)
    ADD_BLOCK(float, total, lost, score_gradient * LOAD(k, (first_key + j) * width + REMAINDER(at, width)));
  }
  STORE(dq, at, total * scale);
}
#endif

#ifdef ATTENTION_BACKWARD_KEYS_DIRECT
kernel void attention_backward_keys_direct(IN(q), IN(k), IN(v), IN(g), IN(sums), IN(delta), OUT(dk), const int count,
                                           ATTENTION_PARAMETERS) {
  const int at = (int)get_global_id(0), ahead = AHEAD;
  if (at >= count) return;
  const int key = at / width, j = REMAINDER(key, keys), first_line = key / keys * group;
  float total = 0.0f, lost = 0.0f;
  for (int line = first_line; line < first_line + group; ++line) {
    const int first = MASK_LINE(line);
    for (int i = 0; i < queries; ++i) {
      const int row = line * queries + i;
      DOT(product, q, row * width, k, key * width, width)
      const float weight = exp(SCORE(product, first, i, j) - LOAD(sums, row));
      SCORE_GRADIENT(weight, line, row, i, key, j)
      ADD_BLOCK(float, total, lost, score_gradient * LOAD(q, row * width + REMAINDER(at, width)));
    }
  }
  STORE(dk, at, total * scale);
}
#endif

#ifdef ATTENTION_BACKWARD_VALUES_DIRECT
kernel void attention_backward_values_direct(IN(q), IN(k), IN(g), IN(sums), OUT(dv), const int count, ATTENTION_PARAMETERS) {
  const int at = (int)get_global_id(0), ahead = AHEAD;
  if (at >= count) return;
  const int key = at / value_width, j = REMAINDER(key, keys), first_line = key / keys * group;
  float total = 0.0f, lost = 0.0f;
  for (int line = first_line; line < first_line + group; ++line) {
    const int first = MASK_LINE(line);
    for (int i = 0; i < queries; ++i) {
      const int row = line * queries + i;
      DOT(product, q, row * width, k, key * width, width)
      const float weight = exp(SCORE(product, first, i, j) - LOAD(sums, row)) * KEPT(line, i, j);
      ADD_BLOCK(float, total, lost, weight * LOAD(g, row * value_width + REMAINDER(at, value_width)));
    }
  }
  STORE(dv, at, total);
}
#endif
