// The adjoint of unfold_depth: y[n, c, d, i] is the sum of x[n, o, c, k, i] over all o and k with o * stride - before + k * dilation = d.
// ROWS: a work-item makes `rows` rows of `inner` elements in vectors of VW.
#include "clnet.clh"
#ifdef ROWS
#include "vector.clh"
#endif

// The row of x that kernel position k of a slice `place` steps behind the padding's begin comes from, or -1.
static inline int source(const int n, const int c, const int k, const int place, const int channels, const int out_depth,
                         const int size, const int stride, const int dilation) {
  const int at = place - k * dilation, o = stride == 1 ? at : at / stride;
  return at < 0 || o * stride != at || o >= out_depth ? -1 : ((n * out_depth + o) * channels + c) * size + k;
}

kernel void fold_depth(IN(x), OUT(y), const int count, const int rows, const int channels, const int inner, const int depth,
                       const int out_depth, const int size, const int stride, const int before, const int dilation) {
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / inner);
  for (int row = first; row < last; ++row) {
#else
  const int element = (int)get_global_id(0), row = element / inner;
  if (element >= count) return;
  {
#endif
    const int place = REMAINDER(row, depth) + before, c = REMAINDER(row / depth, channels), n = row / depth / channels;
#ifdef ROWS
    int i = 0;
    for (; i + VW <= inner; i += VW) {
      VFLOAT sum = 0;
      for (int k = 0; k < size; ++k) {
        const int from = source(n, c, k, place, channels, out_depth, size, stride, dilation);
        if (from >= 0) sum += VLOAD(x, from * inner + i);
      }
      VSTORE(y, row * inner + i, sum);
    }
    for (; i < inner; ++i) {
#else
    {
      const int i = element - row * inner;
#endif
      float sum = 0;
      for (int k = 0; k < size; ++k) {
        const int from = source(n, c, k, place, channels, out_depth, size, stride, dilation);
        if (from >= 0) sum += LOAD(x, from * inner + i);
      }
      STORE(y, row * inner + i, sum);
    }
  }
}
