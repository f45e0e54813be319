// Max pooling: the largest element of each window, and where in its plane it lies (h * w: the window is all padding). The first of
// equal elements is chosen; NaN wins.
#include "clnet.clh"
#include "pool2d.clh"

kernel void max_pool2d(IN(x), OUT(y), OUT(index), const int planes, POOL_PARAMETERS) {
#ifdef ROWS
  const int plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows, last = min(first + rows, out_h);
  if (plane >= planes) return;
  for (int oh = first; oh < last; ++oh)
    for (int ow = 0; ow < out_w; ++ow) {
#else
  const int plane = (int)get_global_id(1), oh = (int)get_global_id(0) / out_w, ow = (int)get_global_id(0) % out_w;
  if (plane >= planes || oh >= out_h) return;
  {
#endif
      const int start_h = START_H(oh), start_w = START_W(ow), count_h = COUNT_H(oh), count_w = COUNT_W(ow);
      const int from = plane * h * w, none = h * w;
      VALUE(x) best = 0;
      int at = none;
      for (int i = 0; i < count_h; ++i)
        for (int j = 0; j < count_w; ++j) {
          const int ih = start_h + i * DILATION_H, iw = start_w + j * DILATION_W;
          if (IN_EXTENT(ih, h) && IN_EXTENT(iw, w)) {
            const int here = ih * w + iw;
            const VALUE(x) value = LOAD(x, from + here);
            const bool take = at == none || value > best || value != value;
            best = take ? value : best;
            at = take ? here : at;
          }
        }
      const int to = (plane * out_h + oh) * out_w + ow;
      STORE(y, to, at == none ? -INFINITY : best);
      STORE(index, to, at);
    }
}
