// Running sums of lines in one piece, a vector at a time: sums within the vector, and with what all before it make. A work-item has
// `lines_per_item` lines.
#include "scan_vectors.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cumsum_vectors_cpu(IN(x), OUT(y), const int lines, const int length,
                                                                              const int lines_per_item) {
  const int line0 = (int)get_global_id(0) * lines_per_item, line1 = BLOCK_END(line0, lines_per_item, lines);
  for (int line = line0; line < line1; ++line) {
    const int first = line * length;
    const VFLOAT zero = 0;
    float sum = 0, lost = 0;
    int step = 0;
    for (; step + VW <= length; step += VW) {
#ifdef BACKWARDS
      const int i = first + length - VW - step;
#else
      const int i = first + step;
#endif
      VFLOAT v = VLOAD(x, i);
#define ADD_EARLIER(n) v += LATER_##n(zero, v);
      EACH_STEP(ADD_EARLIER)
      VSTORE(y, i, (v - lost) + sum);
      ADD_BLOCK(float, sum, lost, LAST(v));
    }
    SELDOM for (; step < length; ++step) {
#ifdef BACKWARDS
      const int i = first + length - 1 - step;
#else
      const int i = first + step;
#endif
      ADD_BLOCK(float, sum, lost, LOAD(x, i));
      STORE(y, i, sum);
    }
  }
}
