// sums[n, t, s] = log of the probability of all beginnings that are in state s after step t; BACKWARDS, of all ends that begin there.
// Each includes the step itself. LANES work-items share a sequence. loss[n]: NaN where lengths or targets are none.
#include "clnet.clh"
#include "ctc.clh"

#if LANES > 1
#define STEP_ENDS barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define STEP_ENDS
#endif
#define AT(t, s) ((n * steps + (t)) * max_states + (s))

kernel void ctc_sums(IN(x), IN(targets), IN(input_lengths), IN(target_lengths), OUT(sums),
#ifndef BACKWARDS
                     OUT(loss),
#endif
                     const int batch, const int steps, const int classes, const int max_targets, const int blank) {
  const int n = (int)get_group_id(0), lane = (int)get_local_id(0), max_states = 2 * max_targets + 1;
  const VALUE(input_lengths) own_steps = LOAD(input_lengths, n);
  const VALUE(target_lengths) own_targets = LOAD(target_lengths, n);
  int valid = own_steps >= 0 && own_steps <= steps && own_targets >= 0 && own_targets <= max_targets;
  const int states = valid ? 2 * (int)own_targets + 1 : 0, length = valid ? (int)own_steps : 0;
  for (int s = 1; s < states; s += 2) {
    const VALUE(targets) label = LOAD(targets, n * max_targets + s / 2);
    valid = valid && label >= 0 && label < classes;
  }
  // Elements without a meaning are written, too.
  for (int i = lane; i < steps * max_states; i += LANES) STORE(sums, AT(0, i), valid ? -INFINITY : NAN);
  STEP_ENDS;
  for (int step = 0; valid && step < length; ++step) {
#ifdef BACKWARDS
    const int t = length - 1 - step, before = t + 1;
#else
    const int t = step, before = t - 1;
#endif
    for (int i = lane; i < states; i += LANES) {
#ifdef BACKWARDS
      const int s = states - 1 - i, one = s + 1, two = s + 2;
#else
      const int s = i, one = s - 1, two = s - 2;
#endif
      const int label = CTC_LABEL(s);
      float sum = -INFINITY;
      if (step == 0)
        sum = i < 2 ? 0.0f : -INFINITY;
      else
        sum = clnet_log_sum(LOAD(sums, AT(before, s)), i > 0 ? LOAD(sums, AT(before, one)) : -INFINITY,
                            i > 1 && s % 2 && label != CTC_LABEL(two) ? LOAD(sums, AT(before, two)) : -INFINITY);
      STORE(sums, AT(t, s), sum + CTC_X(t, label));
    }
    STEP_ENDS;
  }
#ifndef BACKWARDS
  if (lane > 0) return;
  float all = NAN;
  if (valid && length == 0)
    all = states == 1 ? 0.0f : -INFINITY;
  else if (valid)
    all = clnet_log_sum(LOAD(sums, AT(length - 1, states - 1)),
                        states > 1 ? LOAD(sums, AT(length - 1, states - 2)) : -INFINITY, -INFINITY);
  STORE(loss, n, -all);
#endif
}
