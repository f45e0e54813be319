// Slices of volumes {n, channels, depth, inner} as channels of images: y[n, o, c, k, i] = x[n, c, o * stride - before + k * dilation, i],
// 0 where there is no such slice. ROWS: a work-item makes `rows` rows of `inner` elements.
#include "clnet.clh"

kernel void unfold_depth(IN(x), OUT(y), const int count, const int rows, const int channels, const int inner, const int depth,
                         const int out_depth, const int size, const int stride, const int before, const int dilation) {
#ifdef ROWS
  const int first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, count / inner);
  for (int row = first; row < last; ++row) {
#else
  const int element = (int)get_global_id(0), row = element / inner;
  if (element >= count) return;
  {
#endif
    const int k = REMAINDER(row, size), c = REMAINDER(row / size, channels), image = row / size / channels;
    const int slice = REMAINDER(image, out_depth) * stride - before + k * dilation;
    const bool inside = slice >= 0 && slice < depth;
    const int from = inside ? ((image / out_depth * channels + c) * depth + slice) * inner : 0;
#ifdef ROWS
    if (inside)
      for (int i = 0; i < inner; ++i) STORE(y, row * inner + i, LOAD(x, from + i));
    else
      for (int i = 0; i < inner; ++i) STORE(y, row * inner + i, 0.0f);
#else
    STORE(y, element, inside ? LOAD(x, from + element - row * inner) : 0.0f);
#endif
  }
}
