// y = a x b: vectors of three elements, `inner` apart; DENSE: 1. ROUND_EACH: so that a x a is 0.
#include "clnet.clh"

kernel void cross_product(IN(a), IN(b), OUT(y), const int lines, const int inner) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
#ifdef DENSE
  const int first = 3 * line, second = first + 1, third = first + 2;
#else
  const int first = line / inner * 3 * inner + REMAINDER(line, inner), second = first + inner, third = second + inner;
#endif
  const VALUE(a) a0 = LOAD(a, first), a1 = LOAD(a, second), a2 = LOAD(a, third);
  const VALUE(b) b0 = LOAD(b, first), b1 = LOAD(b, second), b2 = LOAD(b, third);
  STORE(y, first, a1 * b2 - a2 * b1);
  STORE(y, second, a2 * b0 - a0 * b2);
  STORE(y, third, a0 * b1 - a1 * b0);
}
