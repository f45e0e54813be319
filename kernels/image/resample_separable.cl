// y[o, j, k] = the sum over a of weights[a, j] x[o, places[a, j], k]. A tap of weight 0 is not there. INNER: neighbouring work-items
// differ in k, else, where there is only one k, in j.
#include "clnet.clh"

#ifdef TAPS
#define TAP_COUNT TAPS
#else
#define TAP_COUNT taps
#endif

kernel void resample_separable(IN(x), IN(places), IN(weights), OUT(y), const int outer, const int from, const int to, const int inner,
                               const int taps) {
#ifdef INNER
  const int k = (int)get_global_id(0), line = (int)get_global_id(1);
  if (k >= inner || line >= outer * to) return;
  const int o = line / to, j = REMAINDER(line, to), at = line * inner + k;
#else
  const int j = (int)get_global_id(0), o = (int)get_global_id(1), k = 0;
  if (j >= to || o >= outer) return;
  const int at = o * to + j;
#endif
  float sum = 0, lost = 0;
  for (int block = 0; block < TAP_COUNT; block = BLOCK_END(block, CLNET_BLOCK, TAP_COUNT)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, TAP_COUNT);
    float part = 0;
    for (int a = block; a < end; ++a) {
      const float weight = LOAD(weights, a * to + j);
      const float value = LOAD(x, (o * from + LOAD(places, a * to + j)) * inner + k);
      part += weight == 0.0f ? 0.0f : weight * value;
    }
    ADD_BLOCK(float, sum, lost, part);
  }
  STORE(y, at, sum);
}
