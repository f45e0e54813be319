// One round of a running value: what is known of `width` elements up to each one becomes known of twice as many. x is {outer, extent,
// inner}.
//
// KIND 0, 1: the index of the largest, or smallest, element, the last one of equals; NaN is beyond all numbers. FIRST: nothing is known
// but the elements themselves. KIND 2: log(sum(exp(x))) of what x already holds.
#include "clnet.clh"

#if KIND == 1
#define REACHES(a, b) ((a) <= (b))
#else
#define REACHES(a, b) ((a) >= (b))
#endif

kernel void scan_doubling(IN(x),
#if KIND < 2 && !defined(FIRST)
                          IN(known),
#endif
                          OUT(y), const int all, const int extent, const int inner, const int width) {
  const int i = (int)get_global_id(0);
  if (i >= all) return;
  const int rest = i / inner, at = REMAINDER(rest, extent), before = i - width * inner;
#if KIND == 2
  float value = LOAD(x, i);
  if (at >= width) {
    const float other = LOAD(x, before), most = fmax(value, other), least = fmin(value, other);
    // Equal infinities are no distance; a NaN stays.
    if (value != value || other != other)
      value += other;
    else
      value = most == least ? most + 0.69314718f : most + log1p(exp(least - most));
  }
  STORE(y, i, value);
#else
#ifdef FIRST
#define KNOWN(i, at) (at)
#else
#define KNOWN(i, at) LOAD(known, i)
#endif
  const int first = i - at * inner;
  int best = KNOWN(i, at);
  if (at >= width) {
    const int other = KNOWN(before, at - width);
    const VALUE(x) value = LOAD(x, first + best * inner), earlier = LOAD(x, first + other * inner);
    best = value != value || REACHES(value, earlier) ? best : other;
  }
  STORE(y, i, best);
#endif
}
