// Recurrences on GPUs. A work-group owns ROWS sequences and UNITS states with the columns of the product that make them: of the
// weights with the states before, on the way back with the gradients after. Each work-item sums EACH rows by four columns over a
// share of the terms. The parts meet in local memory, and there the cell is applied. WHOLE: the group owns all states and goes through all steps.
// What follows from a step stays in local memory and registers, as do the weights of KEPT terms of each item. Else a launch makes a
// step, and the states of all groups go through global memory, turned as the product reads them.
#include "recurrent.clh"

// Columns of a state, and the terms of their sums.
#if BACKWARD
#define PARTS 1
#define DEPTH (GATES * HIDDEN)
#else
#define PARTS GATES
#define DEPTH HIDDEN
#endif
#define VECTORS ((PARTS * UNITS + 3) / 4)
#define COLUMNS (4 * VECTORS)

#if PACK

// weight {GATES hidden, hidden} as {block of UNITS, term, column}, zeros where there is no such state. A work-item per element.
kernel void recurrent_pack_gpu(IN(weight), OUT(packed)) {
  const int i = (int)get_global_id(0), column = i % COLUMNS, k = i / COLUMNS % DEPTH, block = i / (COLUMNS * DEPTH);
  const int part = column / UNITS, unit = block * UNITS + column % UNITS;
  if (block >= (HIDDEN + UNITS - 1) / UNITS) return;
  float value = 0;
#if BACKWARD
  if (part == 0 && unit < HIDDEN) value = LOAD(weight, k * HIDDEN + unit);
#else
  if (part < GATES && unit < HIDDEN) value = LOAD(weight, (part * HIDDEN + unit) * HIDDEN + k);
#endif
  STORE(packed, i, value);
}

#elif BEGIN

// The initial states {batch, hidden} as {block of ROWS, unit, row}, zeros behind the last row. A work-item per element.
kernel void recurrent_begin_gpu(IN(h0), OUT(state), const int batch) {
  const int i = (int)get_global_id(0), row = i / (HIDDEN * ROWS) * ROWS + i % ROWS, unit = i / ROWS % HIDDEN;
  if (i >= (batch + ROWS - 1) / ROWS * ROWS * HIDDEN) return;
  STORE(state, i, row < batch ? LOAD(h0, row * HIDDEN + unit) : 0.0f);
}

#else

#define ROW_PARTS (ROWS / EACH)
#define LANES (VECTORS * ROW_PARTS)
// Of the terms each of SPLIT items takes CHUNK, whose states are one load, and so on; so many times all of them do.
#define CHUNK (4 / EACH)
#define SHARE (DEPTH / (SPLIT * CHUNK))
// Pairs of a row and a state that a work-item has.
#define PAIRS ((ROWS * UNITS + GROUP - 1) / GROUP)

// What a step's launch has besides. It gets its part of all sequences, so that its step is their first.
#if WHOLE
#define STEPWISE(text)
#define STATE_SPACE local
#define PLACE(t) (t)
#else
#define STEPWISE(text) text
#define STATE_SPACE global
#define PLACE(t) 0
#endif

// Adds a chunk's products of states and weights.
#if EACH == 1
#define ADD_CHUNK(sum, a, by) (sum)[0] += (((a).x * (by)[0] + (a).y * (by)[1]) + (a).z * (by)[2]) + (a).w * (by)[3]
#elif EACH == 2
#define ADD_CHUNK(sum, a, by) \
  (sum)[0] += (a).x * (by)[0] + (a).z * (by)[1], (sum)[1] += (a).y * (by)[0] + (a).w * (by)[1]
#else
#define ADD_CHUNK(sum, a, by) \
  (sum)[0] += (a).x * (by)[0], (sum)[1] += (a).y * (by)[0], (sum)[2] += (a).z * (by)[0], (sum)[3] += (a).w * (by)[0]
#endif
#define STATES_AT(q) (*(const STATE_SPACE float4 *)(from + (q) * SPLIT * CHUNK * ROWS))
#define WEIGHTS_AT(q, j) (*(const global float4 *)(weights + ((q) * SPLIT * CHUNK + (j)) * COLUMNS))
// Chunks whose loads are asked for together: fewer where registers hold weights.
#if EACH == 1 && KEPT > 0
#define UNROLLED _Pragma("unroll 2")
#else
#define UNROLLED _Pragma("unroll 4")
#endif

// Where an item's share of the weights begins, of all that its group has, and its rows.
static inline int first_column(const int item) { return item % LANES / ROW_PARTS * 4; }
static inline int first_weight(const int item) { return item / LANES * CHUNK * COLUMNS + first_column(item); }
static inline int first_row(const int item) { return item % ROW_PARTS * EACH; }

// partial[split][row][column]: sums of an item's share of the states times its weights.
static inline void multiply(const int item, const STATE_SPACE float *states, const global float *restrict weights,
                            const float4 *kept, local float *partial) {
  if (item >= LANES * SPLIT) return;
  const int split = item / LANES;
  const STATE_SPACE float *from = states + split * CHUNK * ROWS + first_row(item);
  float4 total[EACH];
  for (int r = 0; r < EACH; ++r) total[r] = (float4)(0.0f);
#if KEPT > 0
  _Pragma("unroll") for (int q = 0; q < KEPT / CHUNK; ++q) {
    const float4 a = STATES_AT(q);
    ADD_CHUNK(total, a, kept + q * CHUNK);
  }
#endif
  for (int begin = KEPT / CHUNK; begin < SHARE; begin += CLNET_BLOCK / CHUNK) {
    const int end = BLOCK_END(begin, CLNET_BLOCK / CHUNK, SHARE);
    float4 sum[EACH];
    for (int r = 0; r < EACH; ++r) sum[r] = (float4)(0.0f);
    UNROLLED for (int q = begin; q < end; ++q) {
      const float4 a = STATES_AT(q);
      float4 by[CHUNK];
      for (int j = 0; j < CHUNK; ++j) by[j] = WEIGHTS_AT(q, j);
      ADD_CHUNK(sum, a, by);
    }
    for (int r = 0; r < EACH; ++r) total[r] += sum[r];
  }
  // What is left after the last whole round, term by term.
  for (int k = SHARE * SPLIT * CHUNK + split; k < DEPTH; k += SPLIT)
    for (int r = 0; r < EACH; ++r)
      total[r] += states[k * ROWS + first_row(item) + r] * *(const global float4 *)(weights + (k - split * CHUNK) * COLUMNS);
  local float *to = partial + (split * ROWS + first_row(item)) * COLUMNS + first_column(item);
  for (int r = 0; r < EACH; ++r) *(local float4 *)(to + r * COLUMNS) = total[r];
}

static inline float total_of(const local float *partial, const int r, const int column) {
  float sum = 0;
  for (int split = 0; split < SPLIT; ++split) sum += partial[(split * ROWS + r) * COLUMNS + column];
  return sum;
}

// The row and the state of a work-item's pair i, and its place among all states: `mine` where the group has such a pair, `there`
// where the batch has.
typedef struct {
  int r, u, row, unit, state;
  bool mine, there;
} Pair;
static inline Pair pair_of(const int item, const int i, const int batch) {
  Pair pair;
  const int index = item + i * GROUP;
  pair.r = index / UNITS;
  pair.u = index - pair.r * UNITS;
  pair.row = (int)get_global_id(1) * ROWS + pair.r;
  pair.unit = (int)get_global_id(0) / GROUP * UNITS + pair.u;
  pair.state = pair.row * HIDDEN + pair.unit;
  pair.mine = pair.r < ROWS && pair.unit < HIDDEN;
  pair.there = pair.mine && pair.row < batch;
  return pair;
}
#define FOR_PAIRS _Pragma("unroll") for (int i = 0; i < PAIRS; ++i)

// What both ways begin with: local memory, the weights that stay in registers, and where the others are.
#if WHOLE
#define STATE_MEMORY local float states[DEPTH * ROWS] __attribute__((aligned(16)));
#define STATES_BEFORE states
#define SET_STATE(k, value) states[(k) * ROWS + pair.r] = (value)
#else
#define STATE_MEMORY
#define STATES_BEFORE (PTR(state) + (int)get_global_id(1) * DEPTH * ROWS)
#define SET_STATE(k, value) STORE(next, ((int)get_global_id(1) * DEPTH + (k)) * ROWS + pair.r, value)
#endif
#if KEPT > 0
#define KEEP_WEIGHTS          \
  float4 kept[KEPT];          \
  if (item < LANES * SPLIT) { \
    _Pragma("unroll") for (int q = 0; q < KEPT; ++q) kept[q] = WEIGHTS_AT(q / CHUNK, q % CHUNK); \
  }
#else
#define KEEP_WEIGHTS const float4 *kept = 0;
#endif
#define START                                                                                                                \
  local float partial[SPLIT * ROWS * COLUMNS] __attribute__((aligned(16)));                                                  \
  STATE_MEMORY                                                                                                               \
  const int item = (int)get_local_id(0);                                                                                     \
  const global float *weights = PTR(packed) + (int)get_global_id(0) / GROUP * DEPTH * COLUMNS + first_weight(item);          \
  KEEP_WEIGHTS

#if !BACKWARD

// Steps `first` to `end` of the recurrence. h and c are the states after the step made last.
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void recurrent_gpu(
    IN_SHARED(x), IN(h0), LSTM(IN(c0) COMMA) IN(packed), STEPWISE(IN(state) COMMA) GRU(IN(bias) COMMA) LENGTHS_PARAMETER
    OUT_SHARED(y), OUT(h) LSTM(COMMA OUT(c)) GATED(COMMA OUT_SHARED(gates) COMMA OUT(cells)) STEPWISE(COMMA OUT(next)),
    const int reverse, const int first, const int end, const int steps, const int batch) {
  START
  int length[PAIRS];
  float h_now[PAIRS], c_now[PAIRS];
  FOR_PAIRS {
    const Pair pair = pair_of(item, i, batch);
    length[i] = pair.there ? LENGTH(pair.row, steps) : 0;
    h_now[i] = c_now[i] = 0;
    if (pair.there) h_now[i] = first == 0 ? LOAD(h0, pair.state) : LOAD(h, pair.state);
#if CELL == LSTM_CELL
    if (pair.there) c_now[i] = first == 0 ? LOAD(c0, pair.state) : LOAD(c, pair.state);
#endif
#if WHOLE
    if (pair.mine) SET_STATE(pair.unit, h_now[i]);
#endif
  }
#if WHOLE
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  for (int step = first; step < end; ++step) {
    const int t = reverse ? steps - 1 - step : step;
    // Asked for before the product, which is not waited for then.
    float from_x[PAIRS][GATES];
    FOR_PAIRS {
      const Pair pair = pair_of(item, i, batch);
      for (int g = 0; g < GATES; ++g)
        from_x[i][g] = t < length[i] ? LOAD(x, ((PLACE(t) * batch + pair.row) * GATES + g) * HIDDEN + pair.unit) : 0.0f;
    }
    multiply(item, STATES_BEFORE, weights, kept, partial);
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_PAIRS {
      const Pair pair = pair_of(item, i, batch);
      if (pair.there) {
        const int at = PLACE(t) * batch * HIDDEN + pair.state;
        const bool valid = t < length[i];
        float sum[GATES];
        for (int g = 0; g < GATES; ++g) sum[g] = total_of(partial, pair.r, g * UNITS + pair.u);
        float value;
#if CELL == TANH_CELL
        value = clnet_tanh(from_x[i][0] + sum[0]);
#elif CELL == RELU_CELL
        value = from_x[i][0] + sum[0];
        if (value < 0.0f) value = 0;
#else
        float cell;
#if CELL == LSTM_CELL
        const float opened = clnet_sigmoid(from_x[i][0] + sum[0]), forget = clnet_sigmoid(from_x[i][1] + sum[1]);
        const float fresh = clnet_tanh(from_x[i][2] + sum[2]), shown = clnet_sigmoid(from_x[i][3] + sum[3]);
        const float gate[GATES] = {opened, forget, fresh, shown};
        cell = forget * c_now[i] + opened * fresh;
        if (valid) c_now[i] = cell;
        value = shown * clnet_tanh(cell);
#else
        cell = sum[2] + LOAD(bias, pair.unit);
        const float reset = clnet_sigmoid(from_x[i][0] + sum[0]), stay = clnet_sigmoid(from_x[i][1] + sum[1]);
        const float fresh = clnet_tanh(from_x[i][2] + reset * cell);
        const float gate[GATES] = {reset, stay, fresh};
        value = fresh + stay * (h_now[i] - fresh);
#endif
        for (int g = 0; g < GATES; ++g)
          STORE(gates, ((PLACE(t) * batch + pair.row) * GATES + g) * HIDDEN + pair.unit, valid ? gate[g] : 0.0f);
        STORE(cells, at, valid ? cell : 0.0f);
#endif
        STORE(y, at, valid ? value : 0.0f);
        if (valid) h_now[i] = value;
      }
      if (pair.mine) SET_STATE(pair.unit, h_now[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  FOR_PAIRS {
    const Pair pair = pair_of(item, i, batch);
    if (!pair.there) continue;
    STORE(h, pair.state, h_now[i]);
#if CELL == LSTM_CELL
    STORE(c, pair.state, c_now[i]);
#endif
  }
}

#else

// The state that step t began with, after step `prior` of the recurrence.
#if WHOLE
#define BEFORE(sequence, name) LOAD(sequence, prior * batch * HIDDEN + pair.state)
#else
#define BEFORE(sequence, name) LOAD(name, pair.state)
#endif

// Steps `first` to `end` of the way back; with `steps` as the last, after which only the product is missing. dh0 and dc0 are what
// has arrived at the states before the step made last.
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void recurrent_backward_gpu(
    IN(dy), IN(dh), LSTM(IN(dc) COMMA IN(c0) COMMA STEPWISE(IN(c_prior) COMMA)) GRU(IN(h0) COMMA IN(h_prior) COMMA)
    GATED(IN(gates) COMMA IN(cells)) SIMPLE(IN(y)), IN(packed), STEPWISE(IN(state) COMMA) LENGTHS_PARAMETER OUT(dh0)
    LSTM(COMMA OUT(dc0)), OUT(dgates) GRU(COMMA OUT(dproduct)) STEPWISE(COMMA OUT(next)), const int reverse, const int first,
    const int end, const int steps, const int batch) {
  START
  int length[PAIRS];
  float carry[PAIRS], dc_now[PAIRS];
  FOR_PAIRS {
    const Pair pair = pair_of(item, i, batch);
    length[i] = pair.there ? LENGTH(pair.row, steps) : 0;
    carry[i] = dc_now[i] = 0;
    if (pair.there) carry[i] = first == 0 ? LOAD(dh, pair.state) : LOAD(dh0, pair.state);
#if CELL == LSTM_CELL
    if (pair.there) dc_now[i] = first == 0 ? LOAD(dc, pair.state) : LOAD(dc0, pair.state);
#endif
  }
  for (int step = first; step < end; ++step) {
    const int t = reverse ? step : steps - 1 - step;
    // As on the way there.
    float arrived[PAIRS], cell[PAIRS], before[PAIRS], gate[PAIRS][GATES];
    FOR_PAIRS {
      const Pair pair = pair_of(item, i, batch);
      arrived[i] = cell[i] = before[i] = 0;
      for (int g = 0; g < GATES; ++g) gate[i][g] = 0;
      if (step < steps && t < length[i]) {
        const int at = PLACE(t) * batch * HIDDEN + pair.state;
        arrived[i] = LOAD(dy, at);
#if CELL == LSTM_CELL || CELL == GRU_CELL
        const int prior = step == steps - 1 ? -1 : reverse ? t + 1 : t - 1;
        const bool initial = prior < 0 || prior >= length[i];
        cell[i] = LOAD(cells, at);
        for (int g = 0; g < GATES; ++g) gate[i][g] = LOAD(gates, ((PLACE(t) * batch + pair.row) * GATES + g) * HIDDEN + pair.unit);
#if CELL == LSTM_CELL
        before[i] = initial ? LOAD(c0, pair.state) : BEFORE(cells, c_prior);
#else
        before[i] = initial ? LOAD(h0, pair.state) : BEFORE(h_prior, h_prior);
#endif
#else
        cell[i] = LOAD(y, at);
#endif
      }
    }
    if (step > 0) multiply(item, STATES_BEFORE, weights, kept, partial);
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_PAIRS {
      const Pair pair = pair_of(item, i, batch);
      if (pair.there && step > 0) carry[i] += total_of(partial, pair.r, pair.u);
      if (step == steps) continue;
      // Of the gates, and of the product with the states before, which a GRU multiplies by r.
      float d[GATES], last = 0;
      for (int g = 0; g < GATES; ++g) d[g] = 0;
      if (t < length[i]) {
        const float all = carry[i] + arrived[i];
#if CELL == TANH_CELL
        d[0] = all * (1.0f - cell[i] * cell[i]);
        carry[i] = 0;
#elif CELL == RELU_CELL
        d[0] = cell[i] > 0.0f ? all : 0.0f;
        carry[i] = 0;
#elif CELL == LSTM_CELL
        const float opened = gate[i][0], forget = gate[i][1], fresh = gate[i][2], shown = gate[i][3], c = clnet_tanh(cell[i]);
        const float dcell = dc_now[i] + all * shown * (1.0f - c * c);
        d[0] = dcell * fresh * opened * (1.0f - opened);
        d[1] = dcell * before[i] * forget * (1.0f - forget);
        d[2] = dcell * opened * (1.0f - fresh * fresh);
        d[3] = all * c * shown * (1.0f - shown);
        dc_now[i] = dcell * forget;
        carry[i] = 0;
#else
        const float reset = gate[i][0], stay = gate[i][1], fresh = gate[i][2];
        d[2] = all * (1.0f - stay) * (1.0f - fresh * fresh);
        d[1] = all * (before[i] - fresh) * stay * (1.0f - stay);
        d[0] = d[2] * cell[i] * reset * (1.0f - reset);
        last = d[2] * reset;
        carry[i] = all * stay;
#endif
      }
      for (int g = 0; g < GATES; ++g) {
        const int at = ((PLACE(t) * batch + pair.row) * GATES + g) * HIDDEN + pair.unit;
        const float product = CELL == GRU_CELL && g == 2 ? last : d[g];
        if (pair.there) STORE(dgates, at, d[g]);
#if CELL == GRU_CELL
        if (pair.there) STORE(dproduct, at, product);
#endif
        if (pair.mine) SET_STATE(g * HIDDEN + pair.unit, product);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  FOR_PAIRS {
    const Pair pair = pair_of(item, i, batch);
    if (!pair.there) continue;
    STORE(dh0, pair.state, carry[i]);
#if CELL == LSTM_CELL
    STORE(dc0, pair.state, dc_now[i]);
#endif
  }
}

#endif

#endif
