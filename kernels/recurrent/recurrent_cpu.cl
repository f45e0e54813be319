// Recurrences on CPUs: a work-item takes some sequences through all steps. A panel of weights, read from the outer caches once per
// step, meets block after block of ROWS sequences, whose sums for all gates of UNITS vectors of states go from registers through the
// activations: all vectors at a time, or SPAN of them where registers are few.
#include "item.clh"
#include "recurrent.clh"
#include "transpose.clh"

#define LANES (UNITS * VW)

#if PACK

// weight {GATES hidden, hidden} in panels of LANES states: by panel, span of vectors, input, vector (gates, and units of each) and
// lane. Zeros stand for states that are missing.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void recurrent_pack_cpu(IN(weight), OUT(packed), const int hidden) {
  const int panel = (int)get_global_id(0), gate = (int)get_global_id(1);
  for (int v = 0; v < UNITS; ++v) {
    const int first = panel * LANES + v * VW, lanes = clamp(hidden - first, 0, VW), vector = gate * UNITS + v;
    const global float *from = PTR(weight) + (gate * hidden + (lanes > 0 ? first : 0)) * hidden;
    global float *to = PTR(packed) + panel * hidden * GATES * LANES + (vector / SPAN * hidden * SPAN + vector % SPAN) * VW;
    int k = 0;
    for (; k + VW <= hidden; k += VW) {
      VFLOAT x[VW];
      #pragma unroll
      for (int i = 0; i < VW; ++i) x[i] = i < lanes ? *(const global any_vector *)(from + i * hidden + k) : (VFLOAT)(0.0f);
      TRANSPOSE(x)
      #pragma unroll
      for (int i = 0; i < VW; ++i) *(global any_vector *)(to + (k + i) * SPAN * VW) = x[i];
    }
    SELDOM for (; k < hidden; ++k)
      SELDOM for (int i = 0; i < VW; ++i) to[k * SPAN * VW + i] = i < lanes ? from[i * hidden + k] : 0.0f;
  }
}

// For the way back: by panel of LANES inputs, gate, state and lane.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void recurrent_backward_pack_cpu(IN(weight), OUT(packed), const int hidden) {
  const int panel = (int)get_global_id(0), gate = (int)get_global_id(1);
  const global float *from = PTR(weight) + gate * hidden * hidden + panel * LANES;
  global float *to = PTR(packed) + (panel * GATES + gate) * hidden * LANES;
  const int lanes = min(LANES, hidden - panel * LANES);
  for (int k = 0; k < hidden; ++k)
    for (int i = 0; i < LANES; ++i) to[k * LANES + i] = i < lanes ? from[k * hidden + i] : 0.0f;
}

#else

#if BACKWARD
#define VECTORS UNITS
#else
#define VECTORS (GATES * UNITS)
#endif

static inline VFLOAT load_lanes(const global float *from, const int lanes) {
  if (lanes >= VW) return *(const global any_vector *)from;
  float part[VW];
  SELDOM for (int i = 0; i < VW; ++i) part[i] = i < lanes ? from[i] : 0.0f;
  return *(any_vector *)part;
}
static inline void store_lanes(global float *to, const int lanes, const VFLOAT value) {
  if (lanes >= VW) {
    *(global any_vector *)to = value;
    return;
  }
  float part[VW];
  *(any_vector *)part = value;
  SELDOM for (int i = 0; i < lanes; ++i) to[i] = part[i];
}

// As clnet_sigmoid and clnet_tanh.
static inline VFLOAT sigmoid_lanes(const VFLOAT x) {
  const VFLOAT e = exp(-fabs(x));
  return select((VFLOAT)(1.0f), e, x < 0.0f) / (1.0f + e);
}
static inline VFLOAT tanh_lanes(const VFLOAT x) {
  const VFLOAT size = fabs(x), z = x * x;
  const VFLOAT p = (((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z -
                   3.33332819422e-1f;
  const VFLOAT near = x + x * (z * p), far = 1.0f - 2.0f / (exp(2.0f * size) + 1.0f);
  return select(select(far, -far, x < 0.0f), near, size < 0.625f);
}

// total[r][v] = sum over k of a[r][k] times vector v of row k of the panel w, for r below a constant `rows`.
#define MULTIPLY(name, rows)                                                                                                      \
  static inline void name(const global float *const a[ROWS], const global float *w, const int depth, VFLOAT total[ROWS][VECTORS]) {\
    for (int r = 0; r < rows; ++r)                                                                                                \
      for (int v = 0; v < VECTORS; ++v) total[r][v] = (VFLOAT)(0.0f);                                                             \
    for (int first = 0; first < VECTORS; first += SPAN) {                                                                         \
      const global float *restrict span = w + first * depth * VW;                                                                 \
      for (int begin = 0; begin < depth; begin += CLNET_BLOCK) {                                                                  \
        const int end = BLOCK_END(begin, CLNET_BLOCK, depth);                                                                     \
        VFLOAT sum[rows][SPAN];                                                                                                   \
        UNROLLED for (int r = 0; r < rows; ++r)                                                                                   \
          UNROLLED for (int v = 0; v < SPAN; ++v) sum[r][v] = (VFLOAT)(0.0f);                                                     \
        for (int k = begin; k < end; ++k) {                                                                                       \
          VFLOAT right[SPAN];                                                                                                     \
          UNROLLED for (int v = 0; v < SPAN; ++v) right[v] = *(const global any_vector *)(span + (k * SPAN + v) * VW);            \
          UNROLLED for (int r = 0; r < rows; ++r) {                                                                               \
            const VFLOAT left = (VFLOAT)(a[r][k]);                                                                                \
            UNROLLED for (int v = 0; v < SPAN; ++v) sum[r][v] += left * right[v];                                                 \
          }                                                                                                                       \
        }                                                                                                                         \
        UNROLLED for (int r = 0; r < rows; ++r)                                                                                   \
          UNROLLED for (int v = 0; v < SPAN; ++v) total[r][first + v] += sum[r][v];                                               \
      }                                                                                                                           \
    }                                                                                                                             \
  }
#define UNROLLED _Pragma("unroll")

MULTIPLY(multiply, ROWS)
#if REST > 0
MULTIPLY(multiply_rest, REST)
#endif

// Of the last rows, REST or fewer, no more are multiplied than there are.
static inline void multiply_some(const global float *const a[ROWS], const global float *w, const int depth, const int rows,
                                 VFLOAT total[ROWS][VECTORS]) {
#if REST > 0
  if (rows <= REST) {
    multiply_rest(a, w, depth, total);
    return;
  }
#endif
  multiply(a, w, depth, total);
}

#if !BACKWARD

#define PARAMETERS                                                                                                  \
  IN_SHARED(x), IN_SHARED(h0), LSTM(IN_SHARED(c0) COMMA) IN(packed), GRU(IN(bias) COMMA) LENGTHS_PARAMETER          \
  OUT_SHARED(y), OUT(h) LSTM(COMMA OUT(c)) GATED(COMMA OUT_SHARED(gates) COMMA OUT_SHARED(cells)), INT(reverse),    \
  INT(steps), INT(batch), INT(hidden), INT(rows_each)
WORK_ITEM void recurrent_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int first = id0 * rows_each, end = min(batch, first + rows_each), width = GATES * hidden;
  for (int step = 0; step < steps; ++step) {
    const int t = reverse ? steps - 1 - step : step, prior = reverse ? t + 1 : t - 1;
    for (int j = 0; j < hidden; j += LANES)
      for (int n = first; n < end; n += ROWS) {
        const global float *a[ROWS];
        for (int r = 0; r < ROWS; ++r) {
          const int row = min(n + r, end - 1);
          a[r] = step == 0 || prior >= LENGTH(row, steps) ? PTR(h0) + row * hidden : PTR(y) + (prior * batch + row) * hidden;
        }
        VFLOAT total[ROWS][VECTORS];
        multiply_some(a, PTR(packed) + j * width, hidden, end - n, total);
        SELDOM for (int r = 0; r < min(ROWS, end - n); ++r)
          SELDOM for (int v = 0; v < UNITS; ++v) {
            const int unit = j + v * VW, lanes = hidden - unit;
            if (lanes <= 0) break;
            const int row = n + r, at = (t * batch + row) * hidden + unit, gate = (t * batch + row) * width + unit;
            const int length = LENGTH(row, steps);
            const VFLOAT none = (VFLOAT)(0.0f);
            if (t >= length) {
#if CELL == LSTM_CELL || CELL == GRU_CELL
              for (int g = 0; g < GATES; ++g) store_lanes(PTR(gates) + gate + g * hidden, lanes, none);
              store_lanes(PTR(cells) + at, lanes, none);
#endif
              store_lanes(PTR(y) + at, lanes, none);
              continue;
            }
            const VFLOAT x0 = load_lanes(PTR(x) + gate, lanes) + total[r][v];
#if CELL == TANH_CELL
            store_lanes(PTR(y) + at, lanes, tanh_lanes(x0));
#elif CELL == RELU_CELL
            store_lanes(PTR(y) + at, lanes, select(x0, none, x0 < 0.0f));
#elif CELL == LSTM_CELL
            const VFLOAT x1 = load_lanes(PTR(x) + gate + hidden, lanes) + total[r][UNITS + v];
            const VFLOAT x2 = load_lanes(PTR(x) + gate + 2 * hidden, lanes) + total[r][2 * UNITS + v];
            const VFLOAT x3 = load_lanes(PTR(x) + gate + 3 * hidden, lanes) + total[r][3 * UNITS + v];
            const VFLOAT i = sigmoid_lanes(x0), f = sigmoid_lanes(x1), g = tanh_lanes(x2), o = sigmoid_lanes(x3);
            const bool initial = step == 0 || prior >= length;
            const VFLOAT before = load_lanes(initial ? PTR(c0) + row * hidden + unit : PTR(cells) + (prior * batch + row) * hidden + unit, lanes);
            const VFLOAT next = f * before + i * g;
            store_lanes(PTR(gates) + gate, lanes, i);
            store_lanes(PTR(gates) + gate + hidden, lanes, f);
            store_lanes(PTR(gates) + gate + 2 * hidden, lanes, g);
            store_lanes(PTR(gates) + gate + 3 * hidden, lanes, o);
            store_lanes(PTR(cells) + at, lanes, next);
            store_lanes(PTR(y) + at, lanes, o * tanh_lanes(next));
#else
            const VFLOAT x1 = load_lanes(PTR(x) + gate + hidden, lanes) + total[r][UNITS + v];
            const VFLOAT q = load_lanes(PTR(bias) + unit, lanes) + total[r][2 * UNITS + v];
            const VFLOAT reset = sigmoid_lanes(x0), z = sigmoid_lanes(x1);
            const VFLOAT fresh = tanh_lanes(load_lanes(PTR(x) + gate + 2 * hidden, lanes) + reset * q);
            const bool initial = step == 0 || prior >= length;
            const VFLOAT before = load_lanes(initial ? PTR(h0) + row * hidden + unit : PTR(y) + (prior * batch + row) * hidden + unit, lanes);
            store_lanes(PTR(gates) + gate, lanes, reset);
            store_lanes(PTR(gates) + gate + hidden, lanes, z);
            store_lanes(PTR(gates) + gate + 2 * hidden, lanes, fresh);
            store_lanes(PTR(cells) + at, lanes, q);
            store_lanes(PTR(y) + at, lanes, fresh + z * (before - fresh));
#endif
          }
      }
  }
  for (int n = first; n < end; ++n) {
    const int length = LENGTH(n, steps), last = (reverse ? 0 : length - 1) * batch + n;
    const global float *from_h = length > 0 ? PTR(y) + last * hidden : PTR(h0) + n * hidden;
    for (int i = 0; i < hidden; ++i) STORE(h, n * hidden + i, from_h[i]);
#if CELL == LSTM_CELL
    const global float *from_c = length > 0 ? PTR(cells) + last * hidden : PTR(c0) + n * hidden;
    for (int i = 0; i < hidden; ++i) STORE(c, n * hidden + i, from_c[i]);
#endif
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_cpu(PARAMETERS) {
#include "arguments.clh"
  recurrent_cpu_item(IDS, PARAMETERS);
}

#else

// dh0 and dc0 hold what has arrived at the states between steps beside the product; `dproduct` is dgates but for a GRU.
#define PARAMETERS                                                                                                  \
  IN(dy), IN(dh), LSTM(IN(dc) COMMA IN_SHARED(c0) COMMA) GRU(IN_SHARED(y) COMMA IN_SHARED(h0) COMMA)                \
  GATED(IN(gates) COMMA IN_SHARED(cells)) SIMPLE(IN(y)), IN(packed), LENGTHS_PARAMETER OUT_SHARED(dh0)              \
  LSTM(COMMA OUT(dc0)), OUT_SHARED(dgates) GRU(COMMA OUT_SHARED(dproduct)), INT(reverse), INT(steps),               \
  INT(batch), INT(hidden), INT(rows_each)
WORK_ITEM void recurrent_backward_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int first = id0 * rows_each, end = min(batch, first + rows_each), width = GATES * hidden;
#if CELL == GRU_CELL
  const global float *products = PTR(dproduct);
#else
  const global float *products = PTR(dgates);
#endif
  for (int i = first * hidden; i < end * hidden; ++i) {
    STORE(dh0, i, LOAD(dh, i));
#if CELL == LSTM_CELL
    STORE(dc0, i, LOAD(dc, i));
#endif
  }
  for (int step = 0; step <= steps; ++step) {
    const int t = reverse ? step : steps - 1 - step, prior = reverse ? t + 1 : t - 1, after = reverse ? t - 1 : t + 1;
    for (int j = 0; j < hidden; j += LANES)
      for (int n = first; n < end; n += ROWS) {
        VFLOAT total[ROWS][VECTORS];
        if (step > 0) {
          const global float *a[ROWS];
          for (int r = 0; r < ROWS; ++r) a[r] = products + (after * batch + min(n + r, end - 1)) * width;
          multiply_some(a, PTR(packed) + j * width, width, end - n, total);
        } else {
          for (int r = 0; r < ROWS; ++r)
            for (int v = 0; v < VECTORS; ++v) total[r][v] = (VFLOAT)(0.0f);
        }
        SELDOM for (int r = 0; r < min(ROWS, end - n); ++r)
          SELDOM for (int v = 0; v < UNITS; ++v) {
            const int unit = j + v * VW, lanes = hidden - unit;
            if (lanes <= 0) break;
            const int row = n + r, state = row * hidden + unit, length = LENGTH(row, steps);
            const VFLOAT none = (VFLOAT)(0.0f), arrived = load_lanes(PTR(dh0) + state, lanes) + total[r][v];
            if (step == steps || t >= length) {
              store_lanes(PTR(dh0) + state, lanes, arrived);
              if (step == steps) continue;
              for (int g = 0; g < GATES; ++g) {
                const int gate = (t * batch + row) * width + g * hidden + unit;
                store_lanes(PTR(dgates) + gate, lanes, none);
#if CELL == GRU_CELL
                store_lanes(PTR(dproduct) + gate, lanes, none);
#endif
              }
              continue;
            }
            const int at = (t * batch + row) * hidden + unit, gate = (t * batch + row) * width + unit;
            const VFLOAT d = arrived + load_lanes(PTR(dy) + at, lanes);
#if CELL == TANH_CELL
            const VFLOAT value = load_lanes(PTR(y) + at, lanes);
            store_lanes(PTR(dgates) + gate, lanes, d * (1.0f - value * value));
            store_lanes(PTR(dh0) + state, lanes, none);
#elif CELL == RELU_CELL
            store_lanes(PTR(dgates) + gate, lanes, select(none, d, load_lanes(PTR(y) + at, lanes) > 0.0f));
            store_lanes(PTR(dh0) + state, lanes, none);
#else
            const bool initial = prior < 0 || prior >= length;
            const VFLOAT g0 = load_lanes(PTR(gates) + gate, lanes), g1 = load_lanes(PTR(gates) + gate + hidden, lanes),
                         g2 = load_lanes(PTR(gates) + gate + 2 * hidden, lanes), cell = load_lanes(PTR(cells) + at, lanes);
#if CELL == LSTM_CELL
            const VFLOAT o = load_lanes(PTR(gates) + gate + 3 * hidden, lanes), c = tanh_lanes(cell);
            const VFLOAT before = load_lanes(initial ? PTR(c0) + state : PTR(cells) + (prior * batch + row) * hidden + unit, lanes);
            const VFLOAT dcell = load_lanes(PTR(dc0) + state, lanes) + d * o * (1.0f - c * c);
            store_lanes(PTR(dgates) + gate, lanes, dcell * g2 * g0 * (1.0f - g0));
            store_lanes(PTR(dgates) + gate + hidden, lanes, dcell * before * g1 * (1.0f - g1));
            store_lanes(PTR(dgates) + gate + 2 * hidden, lanes, dcell * g0 * (1.0f - g2 * g2));
            store_lanes(PTR(dgates) + gate + 3 * hidden, lanes, d * c * o * (1.0f - o));
            store_lanes(PTR(dc0) + state, lanes, dcell * g1);
            store_lanes(PTR(dh0) + state, lanes, none);
#else
            const VFLOAT before = load_lanes(initial ? PTR(h0) + state : PTR(y) + (prior * batch + row) * hidden + unit, lanes);
            const VFLOAT dfresh = d * (1.0f - g1) * (1.0f - g2 * g2);
            const VFLOAT dr = dfresh * cell * g0 * (1.0f - g0), dz = d * (before - g2) * g1 * (1.0f - g1);
            store_lanes(PTR(dgates) + gate, lanes, dr);
            store_lanes(PTR(dgates) + gate + hidden, lanes, dz);
            store_lanes(PTR(dgates) + gate + 2 * hidden, lanes, dfresh);
            store_lanes(PTR(dproduct) + gate, lanes, dr);
            store_lanes(PTR(dproduct) + gate + hidden, lanes, dz);
            store_lanes(PTR(dproduct) + gate + 2 * hidden, lanes, dfresh * g0);
            store_lanes(PTR(dh0) + state, lanes, d * g1);
#endif
#endif
          }
      }
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_backward_cpu(PARAMETERS) {
#include "arguments.clh"
  recurrent_backward_cpu_item(IDS, PARAMETERS);
}

#endif

#endif
