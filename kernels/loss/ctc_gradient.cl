// y[t, n, c] = -g[n] times the share of the alignments that are in a state of class c at step t, which is the gradient of the loss. One
// step of one sequence per work-item.
#include "clnet.clh"
#include "ctc.clh"

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
  for (int s = 0; s < states; ++s) {
    const int label = CTC_LABEL(s);
    float share = 0;
    // The first state of a class sums up all of them.
    int first = 1;
    for (int k = 0; k < s && first; ++k) first = CTC_LABEL(k) != label;
    for (int k = s; first && k < states; ++k) {
      const float a = LOAD(beginnings, at * max_states + k), b = LOAD(ends, at * max_states + k);
      if (CTC_LABEL(k) == label && a != -INFINITY && b != -INFINITY) share += exp(a + b + own_loss - CTC_X(t, label));
    }
    if (first) STORE(y, row + label, -scale * share);
  }
}
