// cummax.cl of lines of floats in one piece, a vector at a time: the best within the vector, and of what was best before it. A work-item
// has `lines_per_item` lines.
#include "scan_vectors.clh"

#ifdef LEAST
#define STAYS(b, a) (((b) != (b)) | ((b) <= (a)))
#else
#define STAYS(b, a) (((b) != (b)) | ((b) >= (a)))
#endif
typedef CLNET_CAT(long, VW) any_places __attribute__((aligned(8)));

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cummax_vectors_cpu(IN(x), OUT(y), const int lines, const int length,
                                                                              const int lines_per_item) {
  const int line0 = (int)get_global_id(0) * lines_per_item, line1 = BLOCK_END(line0, lines_per_item, lines);
  int numbers[VW];
  for (int i = 0; i < VW; ++i) numbers[i] = i;
  const VINT lane = CLNET_CAT(vload, VW)(0, numbers);
  for (int line = line0; line < line1; ++line) {
    const int first = line * length;
    float best = LOAD(x, first);
    int at = 0, step = 0;
    for (; step + VW <= length; step += VW) {
      VFLOAT v = VLOAD(x, first + step);
      VINT places = lane + step;
      // The later one of equals; lanes without an earlier one meet themselves.
#define KEEP_BEST(n)                                                                 \
  {                                                                                  \
    const VFLOAT earlier = LATER_##n(v, v);                                          \
    const VINT its_places = LATER_##n(places, places), stays = STAYS(v, earlier);    \
    v = select(earlier, v, stays);                                                   \
    places = select(its_places, places, stays);                                      \
  }
      EACH_STEP(KEEP_BEST)
      const VINT stays = STAYS(v, (VFLOAT)best);
      v = select((VFLOAT)best, v, stays);
      places = select((VINT)at, places, stays);
      *(global any_places *)(PTR(y) + first + step) = __builtin_convertvector(places, CLNET_CAT(long, VW));
      best = LAST(v), at = LAST(places);
    }
    SELDOM for (; step < length; ++step) {
      const float value = LOAD(x, first + step);
      const int stays = STAYS(value, best);
      best = stays ? value : best;
      at = stays ? step : at;
      STORE(y, first + step, at);
    }
  }
}
