// y[t, n, c] = -g[n] times the share of the alignments that are in a state of class c at step t, which is the gradient of the loss. One
// step of one sequence per work-item. The shares of a step add up to 1, and are made to: what its logarithms have lost over many steps
// would be in all of them.
#include "clnet.clh"
#include "ctc.clh"

// Of the alignments that are in a state at this step; both sums have the step's own factor.
#define LOGARITHM(s) ctc_both(LOAD(beginnings, at * max_states + (s)), LOAD(ends, at * max_states + (s)), CTC_X(t, CTC_LABEL(s)))
static inline float ctc_both(const float beginning, const float end, const float own) {
  return beginning == -INFINITY || end == -INFINITY ? -INFINITY : beginning + end - own;
}

kernel void ctc_gradient(IN(x), IN(targets), IN(input_lengths), IN(target_lengths), IN(loss), IN(beginnings), IN(ends), IN(g),
                         OUT(y), const int batch, const int steps, const int classes, const int max_targets, const int blank) {
  const int at = (int)get_global_id(0);
  if (at >= batch * steps) return;
  const int n = at / steps, t = REMAINDER(at, steps), max_states = 2 * max_targets + 1, row = (t * batch + n) * classes;
  const float own_loss = LOAD(loss, n), scale = LOAD(g, n);
  // A loss that does not count has no gradient, however infinite it is.
  const float begin = isnan(own_loss) && scale != 0.0f ? NAN : 0.0f;
  for (int c = 0; c < classes; ++c) STORE(y, row + c, begin);
  if (isnan(own_loss) || scale == 0.0f || t >= LOAD(input_lengths, n)) return;
  const int states = 2 * (int)LOAD(target_lengths, n) + 1;
  float most = -INFINITY, all = 0;
  for (int s = 0; s < states; ++s) most = fmax(most, LOGARITHM(s));
  if (most == -INFINITY) return;
  for (int s = 0; s < states; ++s) all += exp(LOGARITHM(s) - most);
  for (int s = 0; s < states; ++s) {
    const int label = CTC_LABEL(s);
    float share = 0;
    // The first state of a class sums up all of them.
    int first = 1;
    for (int k = 0; k < s && first; ++k) first = CTC_LABEL(k) != label;
    for (int k = s; first && k < states; ++k) {
      if (CTC_LABEL(k) == label) share += exp(LOGARITHM(k) - most);
    }
    if (first) STORE(y, row + label, -scale * (share / all));
  }
}
