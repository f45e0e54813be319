// Recurrences a step per launch, with one work-item per state: simple, and for any device.
#include "recurrent.clh"

// sum of a[i] * w[i * stride], in blocks.
static inline float product(const global float *a, const global float *w, const int stride, const int count) {
  float sum = 0, lost = 0;
  for (int begin = 0; begin < count; begin += CLNET_BLOCK) {
    float block = 0;
    const int end = BLOCK_END(begin, CLNET_BLOCK, count);
    for (int i = begin; i < end; ++i) block += a[i] * w[i * stride];
    ADD_BLOCK(float, sum, lost, block);
  }
  return sum;
}

#if !BACKWARD && !LAST

// Step t after step `prior`, which is -1 at first: x, y, gates and cells are those of step t, h_prior and c_prior of that one.
kernel void recurrent_step_direct(IN_SHARED(x), IN(h_prior), IN(h0), LSTM(IN(c_prior) COMMA IN(c0) COMMA) IN(weight), GRU(IN(bias) COMMA)
                                  LENGTHS_PARAMETER OUT(y) GATED(COMMA OUT_SHARED(gates) COMMA OUT(cells)), const int t, const int prior,
                                  const int steps, const int batch, const int hidden) {
  const int j = (int)get_global_id(0), n = (int)get_global_id(1);
  if (j >= hidden || n >= batch) return;
  const int length = LENGTH(n, steps), at = n * hidden + j;
  const bool initial = prior < 0 || prior >= length, valid = t < length;
  const global float *h = initial ? PTR(h0) + n * hidden : PTR(h_prior) + n * hidden;
  float sum[GATES];
  for (int g = 0; g < GATES; ++g)
    sum[g] = valid ? product(h, PTR(weight) + (g * hidden + j) * hidden, 1, hidden) : 0.0f;
  const global float *from = PTR(x) + n * GATES * hidden + j;
#if CELL == TANH_CELL
  STORE(y, at, valid ? clnet_tanh(from[0] + sum[0]) : 0.0f);
#elif CELL == RELU_CELL
  const float value = from[0] + sum[0];
  STORE(y, at, !valid || value < 0.0f ? 0.0f : value);
#else
  global float *to = PTR(gates) + n * GATES * hidden + j;
#if CELL == LSTM_CELL
  const float i = clnet_sigmoid(from[0] + sum[0]), f = clnet_sigmoid(from[hidden] + sum[1]);
  const float g = clnet_tanh(from[2 * hidden] + sum[2]), o = clnet_sigmoid(from[3 * hidden] + sum[3]);
  const float c = f * (initial ? LOAD(c0, at) : LOAD(c_prior, at)) + i * g;
  to[0] = valid ? i : 0.0f;
  to[hidden] = valid ? f : 0.0f;
  to[2 * hidden] = valid ? g : 0.0f;
  to[3 * hidden] = valid ? o : 0.0f;
  STORE(cells, at, valid ? c : 0.0f);
  STORE(y, at, valid ? o * clnet_tanh(c) : 0.0f);
#else
  const float q = sum[2] + LOAD(bias, j);
  const float r = clnet_sigmoid(from[0] + sum[0]), z = clnet_sigmoid(from[hidden] + sum[1]);
  const float fresh = clnet_tanh(from[2 * hidden] + r * q);
  to[0] = valid ? r : 0.0f;
  to[hidden] = valid ? z : 0.0f;
  to[2 * hidden] = valid ? fresh : 0.0f;
  STORE(cells, at, valid ? q : 0.0f);
  STORE(y, at, valid ? fresh + z * (h[j] - fresh) : 0.0f);
#endif
#endif
}

#elif !BACKWARD

// What is left after a sequence, of values of all steps.
kernel void recurrent_last_direct(IN(states), IN(initial), LENGTHS_PARAMETER OUT(last), const int reverse, const int steps, const int batch,
                                  const int hidden) {
  const int j = (int)get_global_id(0), n = (int)get_global_id(1);
  if (j >= hidden || n >= batch) return;
  const int length = LENGTH(n, steps), at = n * hidden + j;
  const int step = reverse ? 0 : length - 1;
  STORE(last, at, length > 0 ? LOAD(states, step * batch * hidden + at) : LOAD(initial, at));
}

#elif !LAST

// Step t, before which the recurrence went through step `prior` (-1: t was its first), and this kernel through one whose
// gradients before the product are `after`; all but dh, dc and what is initial are those of step t or `prior`.
kernel void recurrent_backward_step_direct(IN(dy), IN(dh), LSTM(IN(dc) COMMA IN(c_prior) COMMA IN(c0) COMMA)
                                           GRU(IN(h_prior) COMMA IN(h0) COMMA)
                                           GATED(IN(gates) COMMA IN(cells)) SIMPLE(IN(y)), IN(after), IN(weight), LENGTHS_PARAMETER
                                           OUT(dh0) LSTM(COMMA OUT(dc0)), OUT(dgates) GRU(COMMA OUT(dproduct)), const int t, const int prior,
                                           const int begins, const int steps, const int batch, const int hidden) {
  const int j = (int)get_global_id(0), n = (int)get_global_id(1);
  if (j >= hidden || n >= batch) return;
  const int length = LENGTH(n, steps), at = n * hidden + j, width = GATES * hidden;
  const bool valid = t < length;
  float d = begins ? LOAD(dh, at) : LOAD(dh0, at);
  if (!begins) d += product(PTR(after) + n * width, PTR(weight) + j, hidden, width);
  global float *to = PTR(dgates) + n * width + j;
#if CELL == LSTM_CELL
  float dcell = begins ? LOAD(dc, at) : LOAD(dc0, at);
#endif
  if (!valid) {
    for (int g = 0; g < GATES; ++g) to[g * hidden] = 0;
#if CELL == GRU_CELL
    for (int g = 0; g < GATES; ++g) STORE(dproduct, n * width + j + g * hidden, 0.0f);
#elif CELL == LSTM_CELL
    STORE(dc0, at, dcell);
#endif
    STORE(dh0, at, d);
    return;
  }
  d += LOAD(dy, at);
#if CELL == TANH_CELL
  const float value = LOAD(y, at);
  to[0] = d * (1.0f - value * value);
  STORE(dh0, at, 0.0f);
#elif CELL == RELU_CELL
  to[0] = LOAD(y, at) > 0.0f ? d : 0.0f;
  STORE(dh0, at, 0.0f);
#else
  const bool initial = prior < 0 || prior >= length;
  const global float *from = PTR(gates) + n * width + j;
#if CELL == LSTM_CELL
  const float i = from[0], f = from[hidden], g = from[2 * hidden], o = from[3 * hidden], c = clnet_tanh(LOAD(cells, at));
  dcell += d * o * (1.0f - c * c);
  to[0] = dcell * g * i * (1.0f - i);
  to[hidden] = dcell * (initial ? LOAD(c0, at) : LOAD(c_prior, at)) * f * (1.0f - f);
  to[2 * hidden] = dcell * i * (1.0f - g * g);
  to[3 * hidden] = d * c * o * (1.0f - o);
  STORE(dc0, at, dcell * f);
  STORE(dh0, at, 0.0f);
#else
  const float r = from[0], z = from[hidden], fresh = from[2 * hidden], h = initial ? LOAD(h0, at) : LOAD(h_prior, at);
  const float dfresh = d * (1.0f - z) * (1.0f - fresh * fresh);
  const float dr = dfresh * LOAD(cells, at) * r * (1.0f - r), dz = d * (h - fresh) * z * (1.0f - z);
  to[0] = dr;
  to[hidden] = dz;
  to[2 * hidden] = dfresh;
  STORE(dproduct, n * width + j, dr);
  STORE(dproduct, n * width + j + hidden, dz);
  STORE(dproduct, n * width + j + 2 * hidden, dfresh * r);
  STORE(dh0, at, d * z);
#endif
#endif
}

#else

kernel void recurrent_backward_last_direct(IN(after), IN(weight), INOUT(dh0), const int batch, const int hidden) {
  const int j = (int)get_global_id(0), n = (int)get_global_id(1);
  if (j >= hidden || n >= batch) return;
  const int width = GATES * hidden, at = n * hidden + j;
  STORE(dh0, at, LOAD(dh0, at) + product(PTR(after) + n * width, PTR(weight) + j, hidden, width));
}

#endif
